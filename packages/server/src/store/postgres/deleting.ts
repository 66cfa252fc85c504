// Deletion requests and suppressions: a request is written as a whole, under the lock of the configuration, and its purge goes
// on in steps that any node takes up: see purging.ts. What is kept for a long time contains only pseudonyms of users.
//
// A request is announced like a change of the configuration. It is answered, and its delete messages can be claimed, when every live
// node has confirmed that it sends no more messages of the users (see deleted-users.ts) and, with suppression, that it has committed
// those that it was accepting. If a node does not confirm, the request waits until the node's lease has expired.

import { randomUUID } from 'node:crypto'
import { suppress, unsuppress } from '../configuration/suppressions.ts'
import type { DeletedUsers } from '../deletions/deleted-users.ts'
import { endStep } from '../deletions/deletion-ends.ts'
import type { DeletionQuestion } from '../deletions/deletion-question.ts'
import { DeletionReads } from '../deletions/deletion-reads.ts'
import { newPseudonymKey, pseudonymOf } from '../deletions/pseudonyms.ts'
import { resolve } from '../port/from-stored.ts'
import {
  type Audit,
  type DeletionDetail,
  type DeletionFilter,
  type DeletionStore,
  type DeletionSummary,
  type DeletionTarget,
  type FromStored,
  type NewDeletion,
  type NewSuppressions,
  type Page,
  type PageRequest,
  type SecretStore,
  StoreUnavailable,
  type Suppression,
  type SuppressionFilter,
} from '../store.ts'
import type { Change } from './cluster/configuration-change.ts'
import { LEASE_MS, type Membership } from './cluster/membership.ts'
import type { SharedConfiguration } from './cluster/shared-configuration.ts'
import type { Accepting } from './messages/accepting.ts'
import type { Claiming } from './messages/claiming.ts'
import { oweDeleteMessages } from './rows/delete-messages.ts'
import { deletionRows } from './rows/deletion-rows.ts'
import { Purging, TAIL } from './rows/purging.ts'
import { OLDEST, rowIdAt } from './schema/ids.ts'
import type { Parts } from './session/parts.ts'
import { writeText } from './session/texts.ts'

interface Tools {
  changes: SharedConfiguration
  secrets: SecretStore
  accepting: Accepting
  claiming: Claiming
  membership: Membership
  deleted: DeletedUsers
}

/** Requests are loaded for this long even after their purge, because a node that has not seen them yet may hold messages of the users. After its lease it holds nothing. */
const RECENT_MS = 300_000
/** How long requests are remembered: longer than RECENT_MS, and longer than a read that began before the end of a purge can take. */
const KEPT_MS = RECENT_MS + 60_000
/** For this long after a request, another node may be waiting for the confirmation of this one. */
const WAITED_FOR_MS = 2 * LEASE_MS
/** By then, a node that has not confirmed a request has lost its lease. */
const WAIT_MS = LEASE_MS + 5_000
/** The first pause between two questions, and the longest: many requests beside a dead node must not fill the connections. */
const ASK_AGAIN_MS = 20
const ASK_AGAIN_AT_MOST_MS = 250

export class Deleting implements DeletionStore {
  readonly #parts: Parts
  readonly #tools: Tools
  readonly #changes: SharedConfiguration
  readonly #reads: DeletionReads<string>
  readonly #purging: Purging
  /** When this node learned of each request that it remembers. */
  readonly #learnedAt = new Map<string, number>()
  #pseudonymKey: Promise<string> | undefined
  /** The configuration version that this node has, and the one that it has confirmed to the others. */
  #version = -1
  #told = -1
  #telling: Promise<void> | null = null

  constructor(parts: Parts, tools: Tools) {
    this.#parts = parts
    this.#tools = tools
    this.#changes = tools.changes
    this.#reads = new DeletionReads(deletionRows((text, values) => parts.database.query(text, values), parts.names))
    this.#purging = new Purging(parts)
  }

  async create(wanted: FromStored<NewDeletion>, audit?: Audit<NewDeletion & { id: string }>): Promise<DeletionDetail> {
    const id = `del_${randomUUID()}`
    const created = await this.#changes.change((change) => {
      const deletion = resolve(wanted, change.configuration)
      return this.#create(change, id, { ...deletion, userIds: [...new Set(deletion.userIds)] }, audit)
    })
    const { num, version, origins, destinationIds } = created
    this.#purging.begin(num)
    await this.#untilKnown(version)
    await this.#tools.claiming.free(origins, destinationIds)
    for (const destinationId of destinationIds) this.#parts.taker()?.wake(destinationId)
    const detail = await this.one(id)
    if (detail === undefined) throw new Error(`deletion ${id} is not there`)
    return detail
  }

  async #create(
    change: Change,
    id: string,
    deletion: NewDeletion,
    audit: Audit<NewDeletion & { id: string }> | undefined,
  ): Promise<{ num: string; version: number; origins: string[]; destinationIds: string[] }> {
    const { ids, names, nowMs } = this.#parts
    const { userIds } = deletion
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
    const { holder } = this.#tools.membership
    const origins = await oweDeleteMessages(change.ask, ids, { deletion: num, userIds, sources, atMs, holder })
    if (deletion.suppress)
      await suppress(
        change,
        nums.map(([sourceId]) => sourceId),
        userIds,
        atMs,
      )
    await change.ask(
      `INSERT INTO deletions (num, id, created_at, suppress, every_source, user_ids, sources, purge_end) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
      [
        num,
        id,
        atMs,
        deletion.suppress,
        deletion.sourceIds === null,
        JSON.stringify(userIds),
        JSON.stringify(sourceNums),
        await Purging.end(change.ask, ids.next(), deletion.suppress),
      ],
    )
    await change.note(audit?.({ ...deletion, id }, null))
    return { num, version: change.announce(), origins, destinationIds: [...destinationIds] }
  }

  async list(filter: DeletionFilter, page: PageRequest): Promise<Page<DeletionSummary>> {
    const question = await this.#named(filter)
    return this.#snapshot((reads) => reads.list(question, page))
  }

  one(id: string): Promise<DeletionDetail | undefined> {
    return this.#snapshot((reads) => reads.one(id))
  }

  async targets(id: string, filter: DeletionFilter, page: PageRequest): Promise<Page<DeletionTarget>> {
    const question = await this.#named(filter)
    return this.#snapshot((reads) => reads.targets(id, question, page))
  }

  suppressions(filter: SuppressionFilter, page: PageRequest): Promise<Page<Suppression>> {
    return this.#reads.suppressions(filter, page)
  }

  suppress(wanted: FromStored<NewSuppressions>, audit?: Audit<NewSuppressions>): Promise<number> {
    return this.#changes.change(async (change) => {
      const suppressions = resolve(wanted, change.configuration)
      const userIds = [...new Set(suppressions.userIds)]
      const sources = await this.#sources(change, suppressions.sourceIds)
      const added = await suppress(
        change,
        sources.map(([sourceId]) => sourceId),
        userIds,
        Math.floor(this.#parts.nowMs()),
      )
      if (added > 0) await change.note(audit?.(suppressions, null))
      return added
    })
  }

  unsuppress(userId: string, sourceId: string | null, audit?: Audit<{ userId: string; sourceId: string | null }>): Promise<number> {
    return this.#changes.change(async (change) => {
      const removed = await unsuppress(change, userId, sourceId)
      if (removed > 0) await change.note(audit?.(null, { userId, sourceId }))
      return removed
    })
  }

  async pseudonym(userId: string): Promise<string> {
    return pseudonymOf(userId, await this.#key())
  }

  /** Takes up the purges that can go on. Once a second: whichever node began one may be no more. */
  async resume(): Promise<void> {
    const open = await this.#purging.resume()
    const now = performance.now()
    for (const [num, learnedAt] of this.#learnedAt) {
      if (open.has(num) || now - learnedAt < KEPT_MS) continue
      this.#learnedAt.delete(num)
      this.#tools.deleted.remove(num)
    }
    await this.#tell()
  }

  /** Writes down which have ended, and puts pseudonyms in the place of users in those from before. */
  async end(beforeMs: number): Promise<void> {
    if (!(await this.#reads.areNamed())) return
    const key = await this.#key()
    let after: string | null = OLDEST
    while (after !== null && !this.#parts.isClosed()) {
      const from: string = after
      after = await this.#parts.database.transaction((ask) => endStep(deletionRows(ask, this.#parts.names), from, beforeMs, key))
    }
  }

  // ── What all nodes know ──

  /** Before anything is claimed. */
  load(): Promise<void> {
    return this.#tell()
  }

  /** This node has this version of the configuration now, and must learn of every request that was made before it. */
  follow(version: number): void {
    this.#version = version
    this.#parts.run(this.#tell())
  }

  /** If it fails, the next heartbeat tries again. Runs one at a time, and repeats if the version has changed meanwhile. */
  #tell(): Promise<void> {
    this.#telling ??= this.#tellOnce().finally(() => {
      this.#telling = null
    })
    return this.#telling
  }

  async #tellOnce(): Promise<void> {
    const { accepting, membership } = this.#tools
    while (this.#told !== this.#version && !this.#parts.isClosed()) {
      const version = this.#version
      await this.learn()
      await accepting.settled()
      const since = performance.now() - WAITED_FOR_MS
      await membership.tellVersion(
        version,
        [...this.#learnedAt.values()].some((at) => at > since),
      )
      this.#told = version
    }
  }

  /** Loads new requests. Afterwards this node sends none of the messages that they cover, unless one is in flight. */
  async learn(): Promise<void> {
    const { database, names, configuration } = this.#parts
    const { membership, deleted } = this.#tools
    const { rows } = await database.query<{
      num: string
      suppress: boolean
      every_source: boolean
      user_ids: string
      sources: string
      purge_end: string
    }>(
      `SELECT num, suppress, every_source, user_ids, sources, purge_end FROM deletions
       WHERE (purge_cursor < purge_end OR num > $1) AND NOT pseudonyms AND num <> ALL ($2::bigint[]) ORDER BY num`,
      [rowIdAt(membership.serverMs() - RECENT_MS), [...this.#learnedAt.keys()]],
    )
    // A source that was made since the configuration was read is not known by its name yet.
    const nums = rows.flatMap(({ sources }) => JSON.parse(sources) as string[])
    const nameOf = await names.idsOf(database, 'sources', nums)
    for (const { num, suppress, every_source, user_ids, sources, purge_end } of rows) {
      const mark = suppress ? String(BigInt(purge_end) - TAIL) : purge_end
      this.#learnedAt.set(num, performance.now())
      deleted.add(num, {
        sourceIds: every_source ? null : new Set((JSON.parse(sources) as string[]).map(nameOf)),
        userIds: new Set(JSON.parse(user_ids) as string[]),
        // After the mark, only messages of users who are still suppressed are purged: see purging.ts.
        covers: (segment, sourceId, { userId, previousId }) => {
          if ((segment as string) < mark) return true
          const suppressed = (segment as string) < purge_end ? configuration().suppressions.get(sourceId) : undefined
          return suppressed !== undefined && (suppressed.has(userId as string) || suppressed.has(previousId as string))
        },
      })
    }
  }

  /** Resolves when every live node has confirmed the version. */
  async #untilKnown(version: number): Promise<void> {
    const deadline = performance.now() + WAIT_MS
    let pauseMs = ASK_AGAIN_MS
    while (!(await this.#tools.membership.isKnown(version)) && performance.now() < deadline) {
      if (this.#parts.isClosed()) throw new StoreUnavailable('the node is being stopped, and other nodes do not know of the deletion yet')
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
      pauseMs = Math.min(ASK_AGAIN_AT_MOST_MS, 2 * pauseMs)
    }
  }

  /** An answer of several questions is of one moment. */
  #snapshot<T>(work: (reads: DeletionReads<string>) => Promise<T>): Promise<T> {
    const { database, names } = this.#parts
    return database.transaction((ask) => work(new DeletionReads(deletionRows(ask, names))), { readOnly: true })
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
    this.#pseudonymKey ??= this.#tools.secrets.keep('pseudonym_key', newPseudonymKey()).catch((error: unknown) => {
      this.#pseudonymKey = undefined
      throw error
    })
    return this.#pseudonymKey
  }
}
