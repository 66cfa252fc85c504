// The schedule time that all nodes share (clock.ts), as it is saved in the database.

import { scheduleStart } from '../../../timing/clock.ts'
import { SCHEDULE_SETTING, SCHEDULE_WALL_SETTING, scheduleMark } from '../../encoding/schedule-mark.ts'
import type { Ask } from '../session/database.ts'
import { readSetting } from '../tables/sql.ts'

/** Returns the schedule time for a node that joins. `nowMs` is the present time of the server. */
export async function readScheduleTime(ask: Ask, nowMs: number): Promise<number> {
  const mark = scheduleMark(await readSetting(ask, SCHEDULE_SETTING), await readSetting(ask, SCHEDULE_WALL_SETTING))
  return scheduleStart(mark, nowMs)
}

/** Saves the schedule time of a node. Returns the latest of all nodes. */
export async function saveScheduleTime(ask: Ask, scheduleMs: number): Promise<number> {
  // The present time of the server is saved even if it is earlier than before: its clock may have been set back.
  const { rows } = await ask<{ name: string; value: string }>(
    `INSERT INTO settings AS s (name, value) VALUES ($1, $3), ($2, (extract(epoch FROM clock_timestamp()) * 1000)::bigint::text)
     ON CONFLICT (name) DO UPDATE SET value =
       CASE WHEN s.name = $1 THEN greatest(s.value::bigint, excluded.value::bigint)::text ELSE excluded.value END
     RETURNING s.name, s.value`,
    [SCHEDULE_SETTING, SCHEDULE_WALL_SETTING, String(Math.floor(scheduleMs))],
  )
  return Number(rows.find(({ name }) => name === SCHEDULE_SETTING)?.value)
}
