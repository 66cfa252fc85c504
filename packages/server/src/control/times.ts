// Times that people read, from the two clocks that the service keeps.

import { isoTime } from '@switchyard/protocol'
import type { Clock } from '../timing/clock.ts'

/** A time of the schedule by the wall clock: as far from now as it is by the schedule's own. */
export function dueTime(clock: Clock, scheduleMs: number): string {
  return isoTime(dueMs(clock, scheduleMs))
}

export function dueMs(clock: Clock, scheduleMs: number): number {
  return Math.round(clock.wallMs() + scheduleMs - clock.scheduleMs())
}
