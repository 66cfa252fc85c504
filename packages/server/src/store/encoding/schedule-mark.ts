// The settings that hold the mark of schedule time: see clock.ts.

import type { ScheduleMark } from '../../timing/clock.ts'

export const SCHEDULE_SETTING = 'schedule_ms'
export const SCHEDULE_WALL_SETTING = 'schedule_wall_ms'

export function scheduleMark(schedule: string | undefined, wall: string | undefined): ScheduleMark | null {
  if (schedule === undefined) return null
  // A version that saved only schedule time had started it at wall time.
  return { scheduleMs: Number(schedule), wallMs: Number(wall ?? schedule) }
}
