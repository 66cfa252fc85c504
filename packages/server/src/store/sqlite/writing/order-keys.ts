// The keys of ordered destinations that are not free, inside the group's transaction: their states (model/order/key-states.ts), what their head is, and how
// many messages wait. A key that is free has no row.

import type { StatementSync } from 'node:sqlite'
import { type KeyEvent, type KeyState, nextKeyState } from '../../../model/order/key-states.ts'
import type { OrderKey } from '../../../model/order/order-key.ts'
import type { KeyChange } from '../../store.ts'
import type { Rows } from '../schema/rows.ts'

/**
 * If a destination has at most this many keys that are not free, a claim reads all of them in one statement. Otherwise, it looks up each key of its
 * messages. With one failing key of 1,000, looking up each key made half of all statements of the writing thread.
 */
const FEW_KEYS = 100

export class OrderKeys {
  readonly #state: StatementSync
  readonly #put: StatementSync
  readonly #delete: StatementSync
  readonly #wait: StatementSync
  readonly #hasWaiting: StatementSync
  readonly #few: StatementSync
  readonly #deleteAll: StatementSync

  constructor({ database }: Rows) {
    this.#state = database.prepare('SELECT state, skip FROM order_keys WHERE destination = ? AND key = ?')
    this.#put = database.prepare(
      `INSERT INTO order_keys (destination, key, state, since, segment, origin, idx, due, attempts, ended) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (destination, key) DO UPDATE SET state = excluded.state, segment = excluded.segment, origin = excluded.origin, idx = excluded.idx,
         due = excluded.due, attempts = excluded.attempts, ended = excluded.ended, skip = 0, since = CASE WHEN order_keys.state = 'draining' THEN excluded.since ELSE order_keys.since END`,
    )
    this.#delete = database.prepare('DELETE FROM order_keys WHERE destination = ? AND key = ?')
    this.#wait = database.prepare('UPDATE order_keys SET waiting = waiting + ? WHERE destination = ? AND key = ?')
    this.#hasWaiting = database.prepare('SELECT 1 FROM shipments WHERE destination = ? AND class = 4 AND due = ? LIMIT 1')
    this.#few = database.prepare(`SELECT key FROM order_keys WHERE destination = ? LIMIT ${FEW_KEYS + 1}`)
    this.#deleteAll = database.prepare('DELETE FROM order_keys WHERE destination = ?')
  }

  /** Tells which keys are free now. Null if all are. `leaving`: keys that count as not free. */
  freeKeys(destination: number, leaving: readonly OrderKey[]): ((key: OrderKey) => boolean) | null {
    const busy = (this.#few.all(destination) as { key: OrderKey }[]).map(({ key }) => key)
    if (busy.length === 0 && leaving.length === 0) return null
    if (busy.length <= FEW_KEYS) {
      const notFree = new Set([...busy, ...leaving])
      return (key) => !notFree.has(key)
    }
    const states = new Map<OrderKey, boolean>(leaving.map((key) => [key, false]))
    return (key) => {
      const isFree = states.get(key) ?? this.stateOf(destination, key) === 'free'
      states.set(key, isFree)
      return isFree
    }
  }

  stateOf(destination: number, key: OrderKey): KeyState {
    return (this.#state.get(destination, key) as { state: KeyState } | undefined)?.state ?? 'free'
  }

  /** Whether an operator ends the head when its attempt is over. */
  isSkipped(destination: number, key: OrderKey): boolean {
    return (this.#state.get(destination, key) as { skip: number } | undefined)?.skip === 1
  }

  /** Messages of the key were put behind those that wait. */
  arrived(destination: number, key: OrderKey, count: number, atMs: number): void {
    this.#apply(destination, key, 'arrived', atMs, null)
    this.#wait.run(count, destination, key)
  }

  /** Messages that waited have ended, or are attempted now. */
  left(destination: number, key: OrderKey, count: number): void {
    this.#wait.run(-count, destination, key)
  }

  /** Called after the rows were written. */
  change(destination: number, changes: readonly KeyChange[], atMs: number): void {
    for (const change of changes) this.#apply(destination, change.key, change.event, atMs, change)
  }

  deleteAll(destination: number): void {
    this.#deleteAll.run(destination)
  }

  #apply(destination: number, key: OrderKey, asked: KeyEvent, atMs: number, message: KeyChange | null): void {
    const event = asked === 'retry' && this.isSkipped(destination, key) ? 'skipped' : asked
    const before = this.stateOf(destination, key)
    let state = nextKeyState(before, event)
    if (event !== 'arrived' && this.#hasWaiting.get(destination, key) === undefined) state = nextKeyState(state, 'emptied')
    if (state === 'free') {
      if (before !== 'free') this.#delete.run(destination, key)
    } else if (event === 'retry' || event === 'hold' || event === 'resumed') {
      const { segment, origin, index, dueAtMs, attempts = 0, ended = null } = message as KeyChange
      const due = dueAtMs === undefined ? null : Math.ceil(dueAtMs)
      this.#put.run(destination, key, state, Math.floor(atMs), segment as number, origin as number, index, due, attempts, ended)
    } else if (state !== before) this.#put.run(destination, key, state, Math.floor(atMs), null, null, null, null, 0, null)
  }
}
