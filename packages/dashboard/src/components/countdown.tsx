// A future time as a countdown that is updated every second.

import { Text, Tooltip } from '@mantine/core'
import { useEffect, useState } from 'react'
import { dateTime, duration } from '../text/format.ts'

/** The current time, updated every second by default. */
export function useNow(everyMs = 1_000): number {
  const [nowMs, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return nowMs
}

/** `in 12 s` after the prefix, or `due now` when the time has passed. Null means due now. */
export function Countdown({ at, size = 'sm', prefix = '' }: { at: string | null; size?: string; prefix?: string }) {
  const nowMs = useNow()
  if (at === null)
    return (
      <Text span size={size}>
        due now
      </Text>
    )
  const leftMs = Date.parse(at) - nowMs
  return (
    <Tooltip
      label={`${dateTime(at)} · ${new Date(at).toISOString().replace('T', ' ').replace('Z', ' UTC')}`}
      events={{ hover: true, focus: true, touch: true }}
    >
      <Text component="time" dateTime={at} span size={size} tabIndex={0} style={{ whiteSpace: 'nowrap', fontWeight: 'inherit' }}>
        {leftMs <= 0 ? 'due now' : `${prefix}in ${duration(Math.ceil(leftMs / 1_000) * 1_000)}`}
      </Text>
    </Tooltip>
  )
}
