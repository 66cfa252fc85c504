// Deletion requests on several nodes. A purge runs in steps, and any node can take the next one: see rows/purging.ts.
//
// A request is announced like a change of the configuration. It is answered, and its delete messages can be claimed, when every live
// node has confirmed that it sends no more messages of the users (see deleted-users.ts) and, with suppression, that it has committed
// those that it was accepting. If a node does not confirm, the request waits until the node's lease has expired.

import type { JsonObject } from '@switchyard/protocol'
import { singleFlight } from '../../timing/single-flight.ts'
import { deleteKeys } from '../deletions/delete-messages.ts'
import type { DeletedUsers } from '../deletions/deleted-users.ts'
import { completeStep } from '../deletions/deletion-completion.ts'
import { type DeletionAnswers, DeletionReads } from '../deletions/deletion-reads.ts'
import { type DeletionDraft, Deletions } from '../deletions/deletions.ts'
import { insertRow } from '../encoding/sql.ts'
import { type SecretStore, type Settlement, StoreUnavailable } from '../store.ts'
import type { Change } from './cluster/configuration-change.ts'
import { LEASE_MS } from './cluster/membership.ts'
import type { SharedConfiguration } from './cluster/shared-configuration.ts'
import type { MessageContext, StoreContext } from './cluster/store-context.ts'
import type { Accepting } from './messages/accepting.ts'
import type { Claiming } from './messages/claiming.ts'
import { deletionRows, oweDeleteMessages } from './rows/deletion-rows.ts'
import { Purging, type RequestRow, TAIL } from './rows/purging.ts'
import { ADVISORY_LOCKS } from './session/advisory-locks.ts'
import type { Ask } from './session/database.ts'
import { OLDEST, rowIdAt } from './tables/ids.ts'
import { sqlOf } from './tables/sql.ts'

interface Tools {
  changes: SharedConfiguration
  secrets: SecretStore
  accepting: Accepting
  claiming: Claiming
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
/** The first pause between two checks, and the longest. While a node is dead, many waiting requests must not use up the connections. */
const FIRST_CHECK_PAUSE_MS = 20
const LONGEST_CHECK_PAUSE_MS = 250

interface Written {
  num: string
  /** The version of the configuration with which a node knows of the request. */
  version: number
  /** The row ids of the shipments of the delete messages. */
  origins: string[]
}

export class Deleting extends Deletions<Change, Written, string> {
  readonly #context: MessageContext
  readonly #tools: Tools
  readonly #purging: Purging
  /** When this node learned of each request that it remembers. */
  readonly #learnedAt = new Map<string, number>()
  /** The configuration version that this node has, and the one that it has confirmed to the others. */
  #version = -1
  #confirmed = -1

  constructor(context: MessageContext, tools: Tools) {
    super({ ...context, change: (work) => tools.changes.change(work), secrets: tools.secrets, reads: readsOf(context) }, OLDEST)
    this.#context = context
    this.#tools = tools
    this.#purging = new Purging(context)
  }

  protected async write(change: Change, draft: DeletionDraft): Promise<Written> {
    const { id, userIds, sourceIds, suppress, atMs, targets } = draft
    const { ids, idMap, membership } = this.#context
    const num = ids.next()
    const seed = await this.#context.seed()
    const sources = targets.map((target) => {
      const keyOf = deleteKeys(target, seed)
      return {
        source: idMap.num('sources', target.sourceId) as string,
        userIds: target.userIds,
        destinations: target.destinationIds.map((destinationId) => idMap.num('destinations', destinationId) as string),
        keyOf: (destination: string, message: JsonObject) => keyOf(idMap.id('destinations', destination) as string, message),
      }
    })
    const { holder } = membership
    const origins = await oweDeleteMessages(change.ask, ids, { deletion: num, sources, atMs, holder })
    const sql = sqlOf(change.ask)
    await insertRow(sql, 'deletions', {
      num,
      id,
      created_at: atMs,
      suppress: sql.flag(suppress),
      every_source: sql.flag(sourceIds === null),
      user_ids: JSON.stringify(userIds),
      sources: JSON.stringify(sources.map(({ source }) => source)),
      purge_end: await this.#purgeEnd(change.ask, suppress),
    })
    return { num, version: change.announce(), origins }
  }

  /**
   * From here to the commit, no settlement with data of users is written. Those before it are visible to the purge, and have row ids before
   * its end; those after it see the request.
   */
  async #purgeEnd(ask: Ask, suppress: boolean): Promise<string> {
    await ask('SELECT pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.deletions])
    return Purging.end(ask, this.#context.ids.next(), suppress)
  }

  protected async begin({ num, version, origins }: Written, _: DeletionDraft, destinationIds: ReadonlySet<string>): Promise<void> {
    this.#purging.begin(num)
    await this.#untilKnown(version)
    await this.#tools.claiming.free(origins, [...destinationIds])
  }

  protected completeStep(after: string, beforeMs: number, pseudonymKey: string): Promise<string | null> {
    const { database, idMap } = this.#context
    return database.transaction((ask) => completeStep(deletionRows(ask, idMap), after, beforeMs, pseudonymKey))
  }

  /** Continues the purges that can go on. Called once a second, because the node that began one may have died. */
  async resume(): Promise<void> {
    const open = await this.#purging.resume()
    const now = performance.now()
    for (const [num, learnedAt] of this.#learnedAt) {
      if (open.has(num) || now - learnedAt < KEPT_MS) continue
      this.#learnedAt.delete(num)
      this.#tools.deleted.remove(num)
    }
    await this.#confirm()
  }

  // ── Confirmation by all nodes ──

  /** Must be called before anything is claimed. */
  load(): Promise<void> {
    return this.#confirm()
  }

  /** This node has this version of the configuration now, and must learn of every request that was made before it. */
  follow(version: number): void {
    this.#version = version
    this.#context.run(this.#confirm())
  }

  /** If it fails, the next heartbeat tries again. Runs one at a time, and repeats if the version has changed meanwhile. */
  readonly #confirm = singleFlight(async (): Promise<void> => {
    const { accepting } = this.#tools
    while (this.#confirmed !== this.#version && !this.#context.isClosed()) {
      const version = this.#version
      await this.learn()
      await accepting.writesFinished()
      const since = performance.now() - WAITED_FOR_MS
      await this.#context.membership.confirmVersion(
        version,
        [...this.#learnedAt.values()].some((at) => at > since),
      )
      this.#confirmed = version
    }
  })

  /** Called in the transaction of settlements that may contain data of users, before anything is written. */
  async withoutUsers(ask: Ask, settlements: readonly Settlement[]): Promise<Settlement[]> {
    await ask('SELECT pg_advisory_xact_lock_shared($1)', [ADVISORY_LOCKS.deletions])
    await this.learn(ask)
    return settlements.map((settlement) => this.#tools.deleted.withoutUsers(settlement))
  }

  /** Loads new requests. Afterwards this node sends none of the messages that they cover, unless one is in flight. */
  async learn(ask: Ask = this.#context.database.ask): Promise<void> {
    const { idMap, configuration, membership } = this.#context
    const { deleted } = this.#tools
    const { rows } = await ask<RequestRow & { num: string }>(
      `SELECT num, suppress, every_source, user_ids, sources, purge_end FROM deletions
       WHERE (purge_cursor < purge_end OR num > $1) AND NOT pseudonyms AND num <> ALL ($2::bigint[]) ORDER BY num`,
      [rowIdAt(membership.serverMs() - RECENT_MS), [...this.#learnedAt.keys()]],
    )
    // A source that was created since the configuration was read is not in the map yet.
    if (rows.length === 0) return
    const nums = rows.flatMap(({ sources }) => JSON.parse(sources) as string[])
    const idOf = await idMap.idsOf(ask, 'sources', nums)
    for (const { num, suppress, every_source, user_ids, sources, purge_end } of rows) {
      const mark = suppress ? String(BigInt(purge_end) - TAIL) : purge_end
      this.#learnedAt.set(num, performance.now())
      deleted.add(num, {
        sourceIds: every_source ? null : new Set((JSON.parse(sources) as string[]).map(idOf)),
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
    let pauseMs = FIRST_CHECK_PAUSE_MS
    while (!(await this.#context.membership.isVersionConfirmed(version)) && performance.now() < deadline) {
      if (this.#context.isClosed())
        throw new StoreUnavailable('this node is stopping, and the other nodes have not confirmed the deletion yet')
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
      pauseMs = Math.min(LONGEST_CHECK_PAUSE_MS, 2 * pauseMs)
    }
  }
}

function readsOf({ database, idMap }: StoreContext): DeletionAnswers {
  const reads = (ask: Ask): DeletionReads<string> => new DeletionReads(deletionRows(ask, idMap))
  const atOnce = reads(database.ask)
  const inSnapshot = <T>(work: (reads: DeletionReads<string>) => Promise<T>): Promise<T> =>
    database.transaction((ask) => work(reads(ask)), { readOnly: true })
  return {
    list: (...args) => inSnapshot((rows) => rows.list(...args)),
    one: (id) => inSnapshot((rows) => rows.one(id)),
    targets: (...args) => inSnapshot((rows) => rows.targets(...args)),
    suppressions: (...args) => atOnce.suppressions(...args),
    hasUserIds: () => atOnce.hasUserIds(),
  }
}
