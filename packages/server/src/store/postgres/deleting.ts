// Deletion requests and suppressions: a request is written as a whole, under the lock of the configuration, and its purge goes
// on in steps that any node takes up: see purging.ts. Users stand by pseudonym in what is kept for long. Whatever any
// node purges, every node is told, so that what it has taken from the store is not sent.

import { randomUUID } from 'node:crypto'
import type { DeletionQuestion } from '../encoding/deletion-question.ts'
import { newPseudonymKey, pseudonymOf } from '../encoding/pseudonyms.ts'
import type {
  Audit,
  ClaimedShipment,
  ControlStore,
  DeletionDetail,
  DeletionFilter,
  DeletionSummary,
  DeletionTarget,
  NewDeletion,
  NewSuppressions,
  Page,
  PageRequest,
  Suppression,
  SuppressionFilter,
  Taker,
} from '../store.ts'
import type { Change } from './configuration-change.ts'
import type { Configuring } from './configuring.ts'
import { oweDeleteMessages } from './delete-messages.ts'
import { endStep } from './deletion-ends.ts'
import { purgedOfHeld } from './held-purges.ts'
import { OLDEST, rowIdAt } from './ids.ts'
import type { Parts } from './parts.ts'
import { PURGED_CHANNEL, type PurgedMessages, readPurged } from './purge-words.ts'
import { PurgedLately } from './purged-lately.ts'
import { Purging } from './purging.ts'
import { DeletionReads } from './read-deletions.ts'
import { listSuppressions } from './read-suppressions.ts'
import { writeText } from './texts.ts'

type Deletions = Pick<
  ControlStore,
  | 'createDeletion'
  | 'deletions'
  | 'deletion'
  | 'deletionTargets'
  | 'suppressions'
  | 'createSuppressions'
  | 'deleteSuppression'
  | 'pseudonym'
>

/** A purge that ended while this node did not listen was begun after this, or was known to be open. */
const UNHEARD_MS = 86_400_000

export class Deleting implements Deletions {
  readonly #parts: Parts
  readonly #configuring: Configuring
  readonly #reads: DeletionReads
  readonly #purging: Purging
  readonly #lately = new PurgedLately()
  #pseudonymKey: Promise<string> | undefined

  constructor(parts: Parts, { configuring }: { configuring: Configuring }) {
    this.#parts = parts
    this.#configuring = configuring
    this.#reads = new DeletionReads(parts.database)
    this.#purging = new Purging(parts, (purged) => this.#purged(purged))
    configuring.heed(PURGED_CHANNEL, {
      onWord: (word) => this.#purged(readPurged(word)),
      onReturn: () => parts.run(this.#catchUp()),
    })
  }

  async createDeletion(deletion: NewDeletion, audit?: Audit<NewDeletion & { id: string }>): Promise<DeletionDetail> {
    const id = `del_${randomUUID()}`
    const userIds = [...new Set(deletion.userIds)]
    const { num, destinationIds } = await this.#configuring.change((change) => this.#create(change, id, { ...deletion, userIds }, audit))
    // The delete messages after the purge, where it is a short one: else they could fill a batch with what they are to delete.
    const wake = (): void => {
      for (const destinationId of destinationIds) this.#parts.taker()?.wake(destinationId)
    }
    void this.#purging.begin(num).then(wake, wake)
    const detail = await this.#reads.one(id)
    if (detail === undefined) throw new Error(`deletion ${id} is not there`)
    return detail
  }

  async #create(
    change: Change,
    id: string,
    deletion: NewDeletion,
    audit: Audit<NewDeletion & { id: string }> | undefined,
  ): Promise<{ num: string; destinationIds: string[] }> {
    const { ids, names, nowMs } = this.#parts
    const { userIds, suppress } = deletion
    const num = ids.next()
    const atMs = Math.floor(nowMs())
    const nums = await this.#sources(change, deletion.sourceIds)
    const enabled = [...change.configuration.destinations.values()].filter((destination) => destination.enabled)
    const destinationIds = new Set<string>()
    const sources = nums.map(([sourceId, source]) => {
      const told = enabled.filter((destination) => destination.sourceIds.includes(sourceId))
      for (const destination of told) destinationIds.add(destination.id)
      return { source, destinations: told.map((destination) => names.num('destinations', destination.id) as string) }
    })
    const sourceNums = sources.map(({ source }) => source)
    await oweDeleteMessages(change.ask, ids, num, userIds, sources, atMs)
    if (suppress) await change.suppress(sourceNums, userIds, atMs)
    await change.ask(
      `INSERT INTO deletions (num, id, created_at, suppress, every_source, user_ids, sources, purge_end) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
      [
        num,
        id,
        atMs,
        suppress,
        deletion.sourceIds === null,
        JSON.stringify(userIds),
        JSON.stringify(sourceNums),
        await Purging.end(change.ask, ids.next(), suppress),
      ],
    )
    await change.note(audit?.({ ...deletion, id }, null))
    return { num, destinationIds: [...destinationIds] }
  }

  async deletions(filter: DeletionFilter, page: PageRequest): Promise<Page<DeletionSummary>> {
    return this.#reads.list(await this.#named(filter), page)
  }

  deletion(id: string): Promise<DeletionDetail | undefined> {
    return this.#reads.one(id)
  }

  async deletionTargets(id: string, filter: DeletionFilter, page: PageRequest): Promise<Page<DeletionTarget>> {
    return this.#reads.targets(id, await this.#named(filter), page)
  }

  suppressions(filter: SuppressionFilter, page: PageRequest): Promise<Page<Suppression>> {
    return listSuppressions(this.#parts.database, filter, page)
  }

  createSuppressions(suppressions: NewSuppressions, audit?: Audit<NewSuppressions>): Promise<number> {
    const userIds = [...new Set(suppressions.userIds)]
    return this.#configuring.change(async (change) => {
      const sources = await this.#sources(change, suppressions.sourceIds)
      const added = await change.suppress(
        sources.map(([, num]) => num),
        userIds,
        Math.floor(this.#parts.nowMs()),
      )
      if (added > 0) await change.note(audit?.(suppressions, null))
      return added
    })
  }

  deleteSuppression(userId: string, sourceId: string | null, audit?: Audit<{ userId: string; sourceId: string | null }>): Promise<number> {
    return this.#configuring.change(async (change) => {
      const num = sourceId === null ? null : await this.#parts.names.find({ query: change.ask }, 'sources', writeText(sourceId))
      const removed = num === undefined ? 0 : await change.unsuppress(userId, num)
      if (removed > 0) await change.note(audit?.(null, { userId, sourceId }))
      return removed
    })
  }

  async pseudonym(userId: string): Promise<string> {
    return pseudonymOf(userId, await this.#key())
  }

  /** Takes up the purges that can go on. Once a second: whichever node began one may be no more. */
  resume(): Promise<void> {
    return this.#purging.resume()
  }

  /** Writes down which have ended, and puts pseudonyms in the place of users in those from before. */
  async end(beforeMs: number): Promise<void> {
    if (!(await this.#reads.areNamed())) return
    const key = await this.#key()
    let after: string | null = OLDEST
    while (after !== null && !this.#parts.isClosed()) {
      const from: string = after
      after = await this.#parts.database.transaction((ask) => endStep(ask, from, beforeMs, key))
    }
  }

  // ── What was purged, wherever ──

  /** The taker, who is handed nothing that was purged while it was on its way. */
  guard(taker: Taker): Taker {
    return this.#lately.guard(taker)
  }

  /** What was claimed, without what was purged while it was being read. */
  without(claimed: readonly ClaimedShipment[]): ClaimedShipment[] {
    return claimed.map((shipment) => this.#lately.without(shipment))
  }

  #purged(purged: readonly PurgedMessages[]): void {
    this.#lately.add(purged)
    const taker = this.#parts.taker()
    for (const { segment, indexes } of purged) taker?.purged(segment, indexes)
  }

  /** Word of purges may have been lost. */
  async #catchUp(): Promise<void> {
    const { database, ids, isClosed } = this.#parts
    const own = ids.next()
    const { rows } = await database.query<{ any: boolean }>(
      'SELECT EXISTS (SELECT FROM deletions WHERE num > $1 OR purge_cursor < purge_end) AS any',
      [rowIdAt(Date.now() - UNHEARD_MS)],
    )
    if (isClosed() || !(rows[0]?.any || this.#purging.isAnyOpen)) return
    await purgedOfHeld(database, own, (purged) => this.#purged(purged))
  }

  // ── Names ──

  /** With their `num`; null: all there are. Throws for one that is not there. */
  async #sources(change: Change, sourceIds: readonly string[] | null): Promise<[id: string, num: string][]> {
    const sources: [string, string][] = []
    for (const id of new Set(sourceIds ?? change.configuration.sources.keys())) {
      const num = await this.#parts.names.find({ query: change.ask }, 'sources', writeText(id))
      if (num === undefined) throw new Error(`unknown source ${id}`)
      sources.push([id, num])
    }
    return sources
  }

  async #named({ userId, state }: DeletionFilter): Promise<DeletionQuestion> {
    return userId === undefined ? { state } : { state, user: { userId, pseudonym: await this.pseudonym(userId) } }
  }

  /** Made when it is first needed. */
  #key(): Promise<string> {
    this.#pseudonymKey ??= this.#configuring.keepSecret('pseudonym_key', newPseudonymKey()).catch((error: unknown) => {
      this.#pseudonymKey = undefined
      throw error
    })
    return this.#pseudonymKey
  }
}
