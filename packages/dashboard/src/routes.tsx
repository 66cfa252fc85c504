// Every view and its address. A page is loaded when it is first looked at. The service answers exactly these addresses with the page
// (packages/server/src/dashboard/paths.ts); a test holds the two lists together.

import { type ComponentType, type LazyExoticComponent, lazy } from 'react'
import {
  DeletionIcon,
  DeliveryIcon,
  DestinationIcon,
  LiveIcon,
  MessageIcon,
  OverviewIcon,
  ReplayIcon,
  SettingsIcon,
  SignatureIcon,
  SourceIcon,
} from './parts/icons.tsx'

export interface View {
  /** As wouter writes it. */
  path: string
  page: LazyExoticComponent<ComponentType<Record<string, string>>>
}

const page = (load: () => Promise<{ default: ComponentType<never> }>): View['page'] =>
  lazy(load as () => Promise<{ default: ComponentType<Record<string, string>> }>)

export const VIEWS: readonly View[] = [
  { path: '/', page: page(() => import('./pages/overview/overview.tsx')) },
  { path: '/start', page: page(() => import('./pages/start/start.tsx')) },
  { path: '/live', page: page(() => import('./pages/live/live.tsx')) },
  { path: '/sources', page: page(() => import('./pages/sources/sources.tsx')) },
  { path: '/sources/:id', page: page(() => import('./pages/sources/source.tsx')) },
  { path: '/destinations', page: page(() => import('./pages/destinations/destinations.tsx')) },
  { path: '/destinations/:id', page: page(() => import('./pages/destinations/destination.tsx')) },
  { path: '/messages', page: page(() => import('./pages/messages/messages.tsx')) },
  { path: '/messages/:id', page: page(() => import('./pages/messages/message.tsx')) },
  { path: '/deliveries', page: page(() => import('./pages/deliveries/deliveries.tsx')) },
  { path: '/deliveries/:id', page: page(() => import('./pages/deliveries/delivery.tsx')) },
  { path: '/replays', page: page(() => import('./pages/replays/replays.tsx')) },
  { path: '/replays/:id', page: page(() => import('./pages/replays/replay.tsx')) },
  { path: '/deletions', page: page(() => import('./pages/deletions/deletions.tsx')) },
  { path: '/deletions/:id', page: page(() => import('./pages/deletions/deletion.tsx')) },
  { path: '/settings', page: page(() => import('./pages/settings/settings.tsx')) },
  { path: '/settings/:tab', page: page(() => import('./pages/settings/settings.tsx')) },
  { path: '/signature', page: page(() => import('./pages/signature/signature.tsx')) },
]

/** In the order of the way of a message. */
export const NAVIGATION = [
  { path: '/', label: 'Overview', Icon: OverviewIcon },
  { path: '/live', label: 'Live', Icon: LiveIcon },
  { path: '/sources', label: 'Sources', Icon: SourceIcon },
  { path: '/destinations', label: 'Destinations', Icon: DestinationIcon },
  { path: '/messages', label: 'Messages', Icon: MessageIcon },
  { path: '/deliveries', label: 'Deliveries', Icon: DeliveryIcon },
  { path: '/replays', label: 'Replays', Icon: ReplayIcon },
  { path: '/deletions', label: 'Deletions', Icon: DeletionIcon },
  { path: '/signature', label: 'Signature checker', Icon: SignatureIcon },
  { path: '/settings', label: 'Settings', Icon: SettingsIcon },
] as const
