// Which messages a list of deliveries is asked for, where it is asked for a user or an event: the rows of deliveries do not
// say, so their segments are looked at, many at once and each once. A user is known from the keys, and most bodies are not read.

import { type Seed, sourceSeed, userHash } from '../../encoding/fingerprint.ts'
import { candidates } from '../../encoding/segment-keys.ts'
import { chosenIn, isOfMessages, MessageBudget } from '../../history/message-budget.ts'
import type { DeliveryFilter } from '../../store.ts'
import type { Ask } from '../session/database.ts'
import { contentOf } from './rows.ts'
import { type Place, readSegments } from './segments.ts'

const NONE: ReadonlySet<number> = new Set()
/** Keys asked for at once, which may be 60 KB of each. */
const SEGMENTS_PER_LOOK = 200

export class MessageChoice {
  readonly #ask: Ask
  readonly #filter: DeliveryFilter
  /** Of the user, by the source's row; undefined when any user is meant. */
  readonly #hashes: ReadonlyMap<string, number> | undefined
  readonly #budget = new MessageBudget()
  readonly #chosen = new Map<string, ReadonlySet<number>>()

  private constructor(ask: Ask, filter: DeliveryFilter, hashes: ReadonlyMap<string, number> | undefined) {
    this.#ask = ask
    this.#filter = filter
    this.#hashes = hashes
  }

  /** Undefined when every message is meant. `seed` has to be given with a user. */
  static async of(ask: Ask, filter: DeliveryFilter, seed: Seed | undefined): Promise<MessageChoice | undefined> {
    if (!isOfMessages(filter)) return undefined
    const { userId } = filter
    if (userId === undefined || seed === undefined) return new MessageChoice(ask, filter, undefined)
    const { rows } = await ask<{ num: string; id: string }>('SELECT num, id FROM sources')
    return new MessageChoice(ask, filter, new Map(rows.map(({ num, id }) => [num, userHash(userId, sourceSeed(id, seed))])))
  }

  /** In the order of the walk, as far as a page may read. */
  async look(places: readonly Pick<Place, 'segment'>[]): Promise<void> {
    const names = [...new Set(places.map(({ segment }) => segment))].filter((name) => !this.#chosen.has(name))
    for (let at = 0; at < names.length && !this.#budget.isSpent; at += SEGMENTS_PER_LOOK) {
      await this.#lookAt(names.slice(at, at + SEGMENTS_PER_LOOK))
    }
  }

  /** Undefined when it was not looked at, as enough has been read: then the page is over, with what it has. */
  has({ segment, index }: Place): boolean | undefined {
    return this.#chosen.get(segment)?.has(index)
  }

  async #lookAt(names: readonly string[]): Promise<void> {
    const possible = await this.#possibleIn(names)
    const toRead = names.filter((name) => possible?.get(name) !== NONE)
    // Known before the walk comes to them: those that need no reading, up to the first that would.
    const found = new Map<string, ReadonlySet<number>>()
    let unread: string | undefined
    for await (const row of readSegments(this.#ask, toRead)) {
      if (this.#budget.isSpent) {
        unread = row.seq
        break
      }
      this.#budget.spend(row.body.length)
      found.set(row.seq, chosenIn(contentOf(row), this.#filter, possible?.get(row.seq) as readonly number[] | undefined))
    }
    for (const name of names) {
      if (name === unread) return
      this.#chosen.set(name, found.get(name) ?? NONE)
    }
  }

  /** What the keys leave of each; NONE where nothing. */
  async #possibleIn(names: readonly string[]): Promise<ReadonlyMap<string, readonly number[] | typeof NONE> | undefined> {
    const hashes = this.#hashes
    if (hashes === undefined) return undefined
    const { rows } = await this.#ask<{ seq: string; source: string; keys: Buffer }>(
      'SELECT seq, source, keys FROM segments WHERE seq = ANY($1::bigint[])',
      [names],
    )
    const possible = new Map<string, readonly number[] | typeof NONE>(names.map((name) => [name, NONE]))
    for (const { seq, source, keys } of rows) {
      this.#budget.spend(keys.length)
      const indexes = candidates(keys, new Set([hashes.get(source) ?? 0]))
      if (indexes.length > 0) possible.set(seq, indexes)
    }
    return possible
  }
}
