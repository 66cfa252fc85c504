// What a replay job can come to, for every adapter alike: a total table, so that the compiler asks about each new state.

import type { ReplayJobState } from '../port/replays.ts'

/** What somebody can ask of a job. It finishes by itself. */
export type AskedReplayState = Exclude<ReplayJobState, 'finished'>

/** From a state, by what is asked for. Null: it cannot come to that any more. */
export const REPLAY_TRANSITIONS: Record<ReplayJobState, Record<AskedReplayState, ReplayJobState | null>> = {
  running: { running: 'running', paused: 'paused', cancelled: 'cancelled' },
  paused: { running: 'running', paused: 'paused', cancelled: 'cancelled' },
  finished: { running: null, paused: null, cancelled: null },
  cancelled: { running: null, paused: null, cancelled: 'cancelled' },
}

/** Whether a job in this state is at its end, so that its rate means nothing any more. */
export const IS_REPLAY_OVER: Record<ReplayJobState, boolean> = { running: false, paused: false, finished: true, cancelled: true }

/** How long after its last step a runner leads a job. More than the second that a rate is kept in, so that none is exceeded when another takes over. */
export const LEAD_MS = 3_000
