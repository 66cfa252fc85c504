// The states of a key of an ordered destination, as a total table: what the key is after an event, and which of its messages may start. Both stores
// apply the table in the transaction that records an outcome. What runs in memory is decided by delivery/lanes/queues/key-queues.ts. Pure.

/**
 * `free`: the next message in the order of acceptance may start. `waiting`: the head failed and will be attempted again. `held`: the head failed for
 * good, and nothing starts until an operator acts. `draining`: the first waiting message is next. A free key has no row in the store.
 */
export type KeyState = 'free' | 'waiting' | 'held' | 'draining'

/**
 * `retry`: a message was attempted and will be attempted again. `ended`: the head has ended, and the key goes on. `advanced`: a message that waited has
 * ended. It may be recorded after a later one has become the head, because settlements are recorded in any order, and does not end that one.
 * `hold`: it failed or expired, and the destination holds keys then. `arrived`: a message was put behind those that wait. `emptied`: no message waits
 * any more. `skipped`: an operator ended the head or released the key. `resumed`: an operator put the failed head back.
 */
export type KeyEvent = 'retry' | 'ended' | 'advanced' | 'hold' | 'arrived' | 'emptied' | 'skipped' | 'resumed'

/** The three kinds of rows: see docs/decisions/0110-order.md. */
export type OrderedRow = 'fresh' | 'head' | 'waiting'

const TRANSITIONS: Readonly<Record<KeyState, Readonly<Record<KeyEvent, KeyState>>>> = {
  free: {
    retry: 'waiting',
    ended: 'free',
    advanced: 'free',
    hold: 'held',
    arrived: 'draining',
    emptied: 'free',
    skipped: 'free',
    resumed: 'free',
  },
  waiting: {
    retry: 'waiting',
    ended: 'draining',
    advanced: 'waiting',
    hold: 'held',
    arrived: 'waiting',
    emptied: 'waiting',
    skipped: 'draining',
    resumed: 'waiting',
  },
  // What was in flight when the key became held may end later. It does not release the key.
  held: {
    retry: 'held',
    ended: 'held',
    advanced: 'held',
    hold: 'held',
    arrived: 'held',
    emptied: 'held',
    skipped: 'draining',
    resumed: 'waiting',
  },
  draining: {
    retry: 'waiting',
    ended: 'draining',
    advanced: 'draining',
    hold: 'held',
    arrived: 'draining',
    emptied: 'free',
    skipped: 'draining',
    resumed: 'draining',
  },
}

/** The row whose first message of the key may start; null if none may. */
const MAY_START: Readonly<Record<KeyState, OrderedRow | null>> = { free: 'fresh', waiting: 'head', held: null, draining: 'waiting' }

export function nextKeyState(state: KeyState, event: KeyEvent): KeyState {
  return TRANSITIONS[state][event]
}

export function mayStartFrom(state: KeyState): OrderedRow | null {
  return MAY_START[state]
}
