// The state transitions of a replay job, for both adapters. The table is total, so the compiler reports a missing case.

import type { ReplayJobChange, ReplayJobState } from '../port/replays.ts'

/** The new state, by the current state and the requested one. Null if the change is not possible. `finished` cannot be requested. */
export const REPLAY_TRANSITIONS: Record<ReplayJobState, Record<NonNullable<ReplayJobChange['state']>, ReplayJobState | null>> = {
  running: { running: 'running', paused: 'paused', cancelled: 'cancelled' },
  paused: { running: 'running', paused: 'paused', cancelled: 'cancelled' },
  finished: { running: null, paused: null, cancelled: null },
  cancelled: { running: null, paused: null, cancelled: 'cancelled' },
}

/** Whether a job in this state has ended, so that its rate can no longer be changed. */
export const IS_REPLAY_OVER: Record<ReplayJobState, boolean> = { running: false, paused: false, finished: true, cancelled: true }

/** How long a runner leads a job after its last step. Longer than the second in which a rate is counted, so that the rate is not exceeded when another runner takes over. */
export const LEAD_MS = 3_000
