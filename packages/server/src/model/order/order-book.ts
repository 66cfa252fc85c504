// What a store does with ordered messages, in memory and without anything else: the rows, the keys that are not free, and the order in which rows are
// given out. The adapters do the same with SQL. Tests compare both with it and check it against a simple oracle. Invariants: a waiting message is
// given out only if its key is draining and no fresh row before it is left; a message of a key that is not free is moved behind those that wait.

import { type KeyEvent, type KeyState, mayStartFrom, nextKeyState, type OrderedRow } from './key-states.ts'
import type { OrderKey } from './order-key.ts'

export interface BookMessage {
  readonly id: number
  readonly key: OrderKey
}

export interface BookRow {
  id: number
  row: OrderedRow
  /** The place in the order of acceptance. */
  ord: number
  dueAt: number
  messages: readonly BookMessage[]
}

export interface ClaimLimits {
  now: number
  heads: number
  fresh: number
  waiting: number
  /** Keys with messages on their way back. Other messages of these keys are put behind them, and do not start. */
  leaving?: readonly OrderKey[]
}

/** What became of the messages of a row. Messages that are in none of the lists stay in it. */
export interface BookOutcome {
  ended: readonly BookMessage[]
  /** Each is a head: the messages of one request, which are attempted again together. */
  retry: readonly (readonly BookMessage[])[]
  retryAt: number
  /** Ended messages that hold their keys. */
  hold: readonly BookMessage[]
}

export class OrderBook {
  #rows: BookRow[] = []
  readonly #keys = new Map<OrderKey, KeyState>()
  readonly #claimed = new Set<number>()
  #lastId = 0
  #lastOrd = 0

  stateOf(key: OrderKey): KeyState {
    return this.#keys.get(key) ?? 'free'
  }

  get rows(): readonly BookRow[] {
    return this.#rows
  }

  get nextDueAt(): number | null {
    const due = this.#rows.filter(({ id, row }) => row === 'head' && !this.#claimed.has(id)).map(({ dueAt }) => dueAt)
    return due.length === 0 ? null : Math.min(...due)
  }

  accept(messages: readonly BookMessage[]): void {
    this.#insert({ row: 'fresh', ord: ++this.#lastOrd, dueAt: 0, messages })
  }

  claim({ now, heads, fresh, waiting, leaving = [] }: ClaimLimits): BookRow[] {
    const claimed = this.#free('head')
      .filter(({ dueAt }) => dueAt <= now)
      .sort((a, b) => a.dueAt - b.dueAt)
      .slice(0, heads)
    const unclaimed = this.#free('fresh').sort(byOrd)
    let taken = 0
    for (; taken < Math.min(unclaimed.length, fresh); taken++) {
      const left = this.#moveWaiting(unclaimed[taken] as BookRow, leaving)
      if (left !== null) claimed.push(left)
    }
    const frontier = unclaimed[taken]?.ord ?? Number.POSITIVE_INFINITY
    const drained = this.#free('waiting')
      .filter(({ ord, messages }) => {
        const { key } = messages[0] as BookMessage
        return ord < frontier && !leaving.includes(key) && mayStartFrom(this.stateOf(key)) === 'waiting'
      })
      .sort(byOrd)
      .slice(0, waiting)
    claimed.push(...drained)
    for (const { id } of claimed) this.#claimed.add(id)
    return claimed.map(({ id, row, ord, dueAt, messages }) => ({ id, row, ord, dueAt, messages }))
  }

  release(id: number): void {
    this.#claimed.delete(id)
  }

  /** Returns false if the row is not claimed. */
  settle(id: number, { ended, retry, retryAt, hold }: BookOutcome): boolean {
    const row = this.#rows.find((other) => other.id === id)
    if (row === undefined || !this.#claimed.has(id)) return false
    const gone = new Set([...ended, ...retry.flat(), ...hold])
    const { row: kind } = row
    row.messages = row.messages.filter((message) => !gone.has(message))
    if (row.messages.length === 0) this.#remove(id)
    for (const messages of retry) this.#insert({ row: 'head', ord: row.ord, dueAt: retryAt, messages })
    const events = new Map<OrderKey, KeyEvent>()
    // A key of a fresh row is free until a message of it fails.
    if (kind !== 'fresh') for (const { key } of ended) events.set(key, kind === 'head' ? 'ended' : 'advanced')
    for (const { key } of hold) events.set(key, 'hold')
    for (const { key } of retry.flat()) events.set(key, 'retry')
    for (const [key, event] of events) this.#apply(key, event)
    return true
  }

  /** An operator ends the head of a waiting key, or releases a held one. Returns the messages that ended, or false if the key does neither. */
  skip(key: OrderKey): readonly BookMessage[] | false {
    const state = this.stateOf(key)
    if (state !== 'waiting' && state !== 'held') return false
    const head = this.#free('head').find(({ messages }) => messages.some((message) => message.key === key))
    if (state === 'waiting' && head === undefined) return false
    const ended = head?.messages.filter((message) => message.key === key) ?? []
    if (head !== undefined) {
      head.messages = head.messages.filter((message) => message.key !== key)
      if (head.messages.length === 0) this.#remove(head.id)
    }
    this.#apply(key, 'skipped')
    return ended
  }

  /** The process that held everything has died. */
  crash(): void {
    this.#claimed.clear()
  }

  /**
   * Moves messages behind those that wait if their key is not free, or has messages on their way back. Returns what is left of the row; null if
   * nothing is.
   */
  #moveWaiting(row: BookRow, leaving: readonly OrderKey[]): BookRow | null {
    const moved = new Map<OrderKey, BookMessage[]>()
    for (const message of row.messages) {
      if (this.stateOf(message.key) === 'free' && !leaving.includes(message.key)) continue
      moved.set(message.key, [...(moved.get(message.key) ?? []), message])
    }
    for (const [key, messages] of moved) {
      this.#insert({ row: 'waiting', ord: row.ord, dueAt: 0, messages })
      this.#apply(key, 'arrived')
    }
    row.messages = row.messages.filter(({ key }) => !moved.has(key))
    if (row.messages.length > 0) return row
    this.#remove(row.id)
    return null
  }

  #apply(key: OrderKey, event: KeyEvent): void {
    let state = nextKeyState(this.stateOf(key), event)
    const waits = this.#rows.some(({ row, messages }) => row === 'waiting' && messages[0]?.key === key)
    if (!waits) state = nextKeyState(state, 'emptied')
    if (state === 'free') this.#keys.delete(key)
    else this.#keys.set(key, state)
  }

  #free(kind: OrderedRow): BookRow[] {
    return this.#rows.filter(({ id, row }) => row === kind && !this.#claimed.has(id))
  }

  #insert(row: Omit<BookRow, 'id'>): void {
    this.#rows.push({ ...row, id: ++this.#lastId })
  }

  #remove(id: number): void {
    this.#rows = this.#rows.filter((row) => row.id !== id)
    this.#claimed.delete(id)
  }
}

function byOrd(a: BookRow, b: BookRow): number {
  return a.ord - b.ord || a.id - b.id
}
