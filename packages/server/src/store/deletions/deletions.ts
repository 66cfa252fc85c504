// Deletion requests and suppressions: the scope of a request, the rows that are written with it in one change of the configuration, and its
// end. The adapter runs the purge and decides when the delete messages may be claimed. Rows that are kept for a long time contain only
// pseudonyms of users.

import { kindOf } from '../../destinations/kinds.ts'
import { newId } from '../../model/new-id.ts'
import type { ConfigurationChange } from '../configuration/configuration-rows.ts'
import type { Awaitable } from '../encoding/sql.ts'
import { resolve } from '../port/from-stored.ts'
import type { Configuration, DeletionFilter, DeletionStore, NewDeletion, RowId, SecretStore, ShipmentConsumer } from '../store.ts'
import type { DeletionAnswers, DeletionQuery } from './deletion-reads.ts'
import { newPseudonymKey, pseudonymOf } from './pseudonyms.ts'

/** A request before it is written. */
export interface DeletionDraft extends Omit<NewDeletion, 'hashedUserIds'> {
  id: string
  atMs: number
  /** The sources concerned, each with its enabled destinations, which are sent one delete message per user. */
  targets: readonly {
    sourceId: string
    userIds: readonly string[]
    destinationIds: readonly string[]
    /** `order.by` of those that are ordered. */
    orders: ReadonlyMap<string, string>
  }[]
}

interface Deps<Change> {
  change: <T>(work: (change: Change) => Promise<T>) => Promise<T>
  secrets: Pick<SecretStore, 'getOrCreate'>
  /** Each answer comes from one snapshot. */
  reads: DeletionAnswers
  nowMs: () => number
  consumer: () => ShipmentConsumer | null
  isClosed: () => boolean
}

export abstract class Deletions<Change extends ConfigurationChange, Written, Id extends RowId> implements DeletionStore {
  readonly #deps: Deps<Change>
  readonly #oldest: Id
  #pseudonymKey: Promise<string> | undefined

  constructor(deps: Deps<Change>, oldest: Id) {
    this.#deps = deps
    this.#oldest = oldest
  }

  /** Writes the request and its delete messages, which cannot be claimed yet. */
  protected abstract write(change: Change, draft: DeletionDraft): Awaitable<Written>
  /** Called after the commit. Starts the purge, and makes the delete messages claimable once no more messages of the users are sent. */
  protected abstract begin(written: Written, draft: DeletionDraft, destinationIds: ReadonlySet<string>): Promise<void>
  /** See deletion-completion.ts. */
  protected abstract completeStep(after: Id, beforeMs: number, pseudonymKey: string): Promise<Id | null>

  create: DeletionStore['create'] = async (wanted, audit) => {
    const id = newId('del')
    const { draft, written } = await this.#deps.change(async (change) => {
      const { hashedUserIds = new Map<string, readonly string[]>(), ...asked } = resolve(wanted, change.configuration)
      const deletion = { ...asked, userIds: [...new Set(asked.userIds)] }
      const sourceIds = affectedSourceIds(change.configuration, deletion.sourceIds)
      const atMs = Math.floor(this.#deps.nowMs())
      // Only some integrations can delete a user. For the others, the delivery would only be cancelled.
      const enabled = [...change.configuration.destinations.values()].filter(
        (destination) => destination.enabled && kindOf(destination).deletesUsers(destination),
      )
      const orders = new Map(enabled.flatMap(({ id: destinationId, order }) => (order == null ? [] : [[destinationId, order.by]])))
      const targets = sourceIds.map((sourceId) => ({
        sourceId,
        userIds: hashedUserIds.get(sourceId) ?? deletion.userIds,
        destinationIds: enabled.filter((destination) => destination.sourceIds.includes(sourceId)).map((destination) => destination.id),
        orders,
      }))
      // Also those of hashed users as they were given: messages from before the source hashed user ids are purged too.
      const userIds = [...new Set([...deletion.userIds, ...targets.flatMap((target) => target.userIds)])]
      const draft = { ...deletion, userIds, id, atMs, targets }
      if (deletion.suppress) await suppress(change, sourceIds, deletion.userIds, atMs)
      const written = await this.write(change, draft)
      // From all sources: at worst, an action runs once more.
      await change.tables.dropStateOf(userIds)
      await change.note(audit?.({ ...deletion, id }, null))
      return { draft, written }
    })
    const destinationIds = new Set(draft.targets.flatMap((target) => target.destinationIds))
    await this.begin(written, draft, destinationIds)
    for (const destinationId of destinationIds) this.#deps.consumer()?.wake(destinationId)
    const detail = await this.one(id)
    if (detail === undefined) throw new Error(`deletion ${id} does not exist after its commit`)
    return detail
  }

  list: DeletionStore['list'] = async (filter, page) => this.#deps.reads.list(await this.#query(filter), page)
  one: DeletionStore['one'] = (id) => this.#deps.reads.one(id)
  targets: DeletionStore['targets'] = async (id, filter, page) => this.#deps.reads.targets(id, await this.#query(filter), page)
  suppressions: DeletionStore['suppressions'] = (filter, page) => this.#deps.reads.suppressions(filter, page)
  pseudonym: DeletionStore['pseudonym'] = async (userId) => pseudonymOf(userId, await this.#key())

  suppress: DeletionStore['suppress'] = (wanted, audit) =>
    this.#deps.change(async (change) => {
      const suppressions = resolve(wanted, change.configuration)
      const sourceIds = affectedSourceIds(change.configuration, suppressions.sourceIds)
      const added = await suppress(change, sourceIds, [...new Set(suppressions.userIds)], Math.floor(this.#deps.nowMs()))
      if (added > 0) await change.note(audit?.(suppressions, null))
      return added
    })

  unsuppress: DeletionStore['unsuppress'] = (userId, sourceIds, audit) =>
    this.#deps.change(async (change) => {
      const removed = await unsuppress(change, userId, sourceIds)
      if (removed > 0) await change.note(audit?.(null, { userId, sourceIds }))
      return removed
    })

  /** Records which requests have ended, and replaces the users of those created before `beforeMs` with pseudonyms. */
  async end(beforeMs: number): Promise<void> {
    if (!(await this.#deps.reads.hasUserIds())) return
    const key = await this.#key()
    let after: Id | null = this.#oldest
    while (after !== null && !this.#deps.isClosed()) after = await this.completeStep(after, beforeMs, key)
  }

  async #query({ userId, ...filter }: DeletionFilter): Promise<DeletionQuery> {
    return userId === undefined ? filter : { ...filter, user: { userId, pseudonym: await this.pseudonym(userId) } }
  }

  /** Created when it is first needed. */
  #key(): Promise<string> {
    this.#pseudonymKey ??= this.#deps.secrets.getOrCreate('pseudonym_key', newPseudonymKey()).catch((error: unknown) => {
      this.#pseudonymKey = undefined
      throw error
    })
    return this.#pseudonymKey
  }
}

/** The ids of the given sources, or of all sources if `sourceIds` is null. Throws if a source does not exist. */
function affectedSourceIds({ sources }: Configuration, sourceIds: readonly string[] | null): string[] {
  const ids = [...new Set(sourceIds ?? sources.keys())]
  for (const id of ids) if (!sources.has(id)) throw new Error(`unknown source ${id}`)
  return ids
}

/**
 * `sourceIds` and `userIds` have no duplicates. Returns how many pairs were not suppressed before. Suppressions are part of the configuration, so no
 * query is needed to find out who is already suppressed.
 */
export async function suppress(
  change: ConfigurationChange,
  sourceIds: readonly string[],
  userIds: readonly string[],
  atMs: number,
): Promise<number> {
  const { suppressions } = change.configuration
  let added = 0
  for (const sourceId of sourceIds) for (const userId of userIds) if (!suppressions.get(sourceId)?.has(userId)) added++
  if (added > 0) await change.suppress(sourceIds, userIds, atMs)
  return added
}

/** If `sourceIds` is null, for all sources. Returns the number of sources in which the user was suppressed. */
export async function unsuppress(change: ConfigurationChange, userId: string, asked: readonly string[] | null): Promise<number> {
  const { suppressions } = change.configuration
  const sourceIds = (asked ?? [...suppressions.keys()]).filter((id) => suppressions.get(id)?.has(userId))
  if (sourceIds.length > 0) await change.unsuppress(sourceIds, userId)
  return sourceIds.length
}
