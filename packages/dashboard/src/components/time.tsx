// A time, relative or absolute in the viewer's time zone; the tooltip has the local time and UTC.

import { Text, Tooltip } from '@mantine/core'
import { ago, dateTime, preciseTime } from '../text/format.ts'

/** With `precise`, shows milliseconds. */
export function Time({
  at,
  relative = false,
  precise = false,
  size = 'sm',
}: {
  at: string | null | undefined
  relative?: boolean
  precise?: boolean
  size?: string
}) {
  if (at === null || at === undefined)
    return (
      <Text span size={size} c="dimmed">
        –
      </Text>
    )
  return (
    <Tooltip
      label={`${dateTime(at)} · ${new Date(at).toISOString().replace('T', ' ').replace('Z', ' UTC')}`}
      events={{ hover: true, focus: true, touch: true }}
    >
      <Text component="time" dateTime={at} span size={size} tabIndex={0} style={{ whiteSpace: 'nowrap' }}>
        {relative ? ago(at) : precise ? preciseTime(at) : dateTime(at)}
      </Text>
    </Tooltip>
  )
}
