// What a replay job can come to, for every adapter alike: a total table, so that the compiler asks about each new state.

import type { ReplayJobChange, ReplayJobState } from '../port/replays.ts'

/** The new state, by the current state and the requested one. Null: the change is not possible. Nobody can request `finished`. */
export const REPLAY_TRANSITIONS: Record<ReplayJobState, Record<NonNullable<ReplayJobChange['state']>, ReplayJobState | null>> = {
  running: { running: 'running', paused: 'paused', cancelled: 'cancelled' },
  paused: { running: 'running', paused: 'paused', cancelled: 'cancelled' },
  finished: { running: null, paused: null, cancelled: null },
  cancelled: { running: null, paused: null, cancelled: 'cancelled' },
}

/** Whether a job in this state is at its end, so that its rate means nothing any more. */
export const IS_REPLAY_OVER: Record<ReplayJobState, boolean> = { running: false, paused: false, finished: true, cancelled: true }

/** How long after its last step a runner leads a job. More than the second that a rate is kept in, so that none is exceeded when another takes over. */
export const LEAD_MS = 3_000
