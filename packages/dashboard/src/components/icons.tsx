// The icons, drawn as lines on a 24 × 24 grid. They are decorative: a text beside the icon or an aria-label always has the meaning.

import type { ReactNode } from 'react'

function icon(paths: ReactNode) {
  return function Icon({ size = 18 }: { size?: number }) {
    return (
      <svg
        width={size}
        height={size}
        viewBox="0 0 24 24"
        fill="none"
        stroke="currentColor"
        strokeWidth={1.8}
        strokeLinecap="round"
        strokeLinejoin="round"
        aria-hidden="true"
      >
        {paths}
      </svg>
    )
  }
}

export const OverviewIcon = icon(<path d="M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z" />)
export const MapIcon = icon(<path d="M3 5h5v4H3zM3 15h5v4H3zM16 10h5v4h-5zM8 7h3c3 0 2 5 5 5M8 17h3c3 0 2-5 5-5" />)
export const LiveIcon = icon(<path d="M3 12h4l3-8 4 16 3-8h4" />)
export const SourceIcon = icon(<path d="M4 6h9M4 12h6M4 18h9M16 8l4 4-4 4" />)
export const DestinationIcon = icon(
  <path d="M12 21s-7-6-7-11a7 7 0 0 1 14 0c0 5-7 11-7 11zM12 12.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5z" />,
)
export const EventIcon = icon(<path d="M4 6h2M4 12h2M4 18h2M10 6h10M10 12h10M10 18h6" />)
export const AlertIcon = icon(<path d="M6 16V11a6 6 0 0 1 12 0v5l2 2H4zM10 21h4" />)
export const PlanIcon = icon(<path d="M6 4h12v16H6zM9 9l1 1 2-2M9 15l1 1 2-2M15 9h0M15 15h0" />)
export const MessageIcon = icon(<path d="M4 5h16v11H9l-5 4z" />)
export const DeliveryIcon = icon(<path d="M3 7l9-4 9 4v10l-9 4-9-4zM3 7l9 4 9-4M12 11v10" />)
export const SqlIcon = icon(
  <path d="M4 6c0-1.700 3.600-3 8-3s8 1.300 8 3-3.600 3-8 3-8-1.300-8-3zM4 6v12c0 1.700 3.600 3 8 3s8-1.300 8-3V6M4 12c0 1.700 3.600 3 8 3s8-1.300 8-3" />,
)
export const ReplayIcon = icon(<path d="M4 12a8 8 0 1 0 2.500-5.800M4 4v4h4" />)
export const DeletionIcon = icon(<path d="M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v6M14 11v6" />)
export const SettingsIcon = icon(<path d="M4 7h10M18 7h2M4 17h2M10 17h10M14 4v6M6 14v6" />)
export const SignatureIcon = icon(<path d="M12 3l8 3v6c0 5-4 8-8 9-4-1-8-4-8-9V6zM9 12l2 2 4-4" />)
export const SearchIcon = icon(<path d="M10.500 17a6.500 6.500 0 1 0 0-13 6.500 6.500 0 0 0 0 13zM15.500 15.500L20 20" />)
export const SunIcon = icon(
  <path d="M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.400 1.400M17.600 17.600L19 19M19 5l-1.400 1.400M6.400 17.600L5 19" />,
)
export const MoonIcon = icon(<path d="M20 14.500A8 8 0 1 1 9.500 4a6.500 6.500 0 0 0 10.500 10.500z" />)
export const UserIcon = icon(<path d="M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 20a8 8 0 0 1 16 0" />)
export const LogoutIcon = icon(<path d="M14 4H5v16h9M10 12h11M17 8l4 4-4 4" />)
export const CopyIcon = icon(<path d="M9 9h11v11H9zM5 15H4V4h11v1" />)
export const CheckIcon = icon(<path d="M5 12l5 5 9-10" />)
export const PlusIcon = icon(<path d="M12 5v14M5 12h14" />)
export const PauseIcon = icon(<path d="M8 5v14M16 5v14" />)
export const PlayIcon = icon(<path d="M7 4l13 8-13 8z" />)
export const StopIcon = icon(<path d="M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM5.600 5.600l12.800 12.800" />)
export const PowerIcon = icon(<path d="M12 3v9M7 6.500a8 8 0 1 0 10 0" />)
export const DocsIcon = icon(<path d="M5 4h11l3 3v13H5zM9 9h6M9 13h6M9 17h4" />)
export const EyeIcon = icon(<path d="M2 12s4-7 10-7 10 7 10 7-4 7-10 7-10-7-10-7zM12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6z" />)
export const EyeOffIcon = icon(<path d="M2 12s4-7 10-7 10 7 10 7-4 7-10 7-10-7-10-7zM12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM4 4l16 16" />)
