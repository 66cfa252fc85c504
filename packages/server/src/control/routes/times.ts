// Converts schedule time, which is monotonic, to wall time for display.

import { isoTime } from '@switchyard/protocol'
import type { Clock } from '../../timing/clock.ts'

/** Converts a schedule time to wall time: it is as far from the present on both clocks. */
export function dueTime(clock: Clock, scheduleMs: number): string {
  return isoTime(dueMs(clock, scheduleMs))
}

export function dueMs(clock: Clock, scheduleMs: number): number {
  return Math.round(clock.wallMs() + scheduleMs - clock.scheduleMs())
}
