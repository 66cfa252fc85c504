// The smaller topics of the store for a caller that is limited to sources: the quarantine, replays, deletions with suppressions, and documents.

import { EVENT_COUNTS, EVENT_PROPERTIES, eventKeyPrefix, sourceOfKey } from '../../observe/event-catalog/event-documents.ts'
import { partsOfKey, VIOLATION, violationsOfPlan } from '../../observe/violations/violation-documents.ts'
import { resolve } from '../../store/port/from-stored.ts'
import { SAVED_QUERIES } from '../../store/port/saved-queries.ts'
import { WAREHOUSE_HISTORY, WAREHOUSE_SCHEMAS, WAREHOUSE_TABLES } from '../../store/port/warehouse-tables.ts'
import { WAREHOUSE_UPKEEP } from '../../store/port/warehouse-upkeep.ts'
import type {
  DeletionStore,
  DocumentStore,
  HistoryStore,
  OrderStore,
  QuarantineStore,
  ReplayJob,
  ReplayStore,
  Store,
} from '../../store/store.ts'
import { outOfReach, unreachable } from './out-of-reach.ts'
import type { Scope } from './scope.ts'

export function limitedQuarantine({ quarantine }: Store, scope: Scope): QuarantineStore {
  const { sourceIds } = scope
  const find: QuarantineStore['find'] = async (ids) => (await quarantine.find(ids)).filter(({ content }) => scope.has(content.sourceId))
  const own = async (ids: readonly string[]): Promise<Set<string>> => new Set((await find(ids)).map(({ id }) => id))
  return {
    list: (filter, page) => quarantine.list({ ...filter, sourceIds }, page),
    find,
    async release(messages, audit) {
      const ids = await own(messages.map(({ id }) => id))
      return quarantine.release(
        messages.filter(({ id }) => ids.has(id)),
        audit,
      )
    },
    delete: async (ids, audit) => quarantine.delete([...(await own(ids))], audit),
    expire: unreachable('the end of the quarantine'),
  }
}

/** The routes are only for callers who have all sources of the destination. A key may have messages of each. */
export function limitedOrder(store: Store, scope: Scope): OrderStore {
  const { order } = store
  const whole = (destinationId: string): string => (scope.hasWhole(store.configuration(), destinationId) ? destinationId : '')
  return {
    read: (id, page) => order.read(whole(id), page),
    counts: (id) => order.counts(whole(id)),
    allCounts: unreachable('the counts for metrics'),
    crowded: (id, maxWaiting) => order.crowded(whole(id), maxWaiting),
    skip: (id, ...args) => order.skip(whole(id), ...args),
    retryNow: (id, ...args) => order.retryNow(whole(id), ...args),
  }
}

/** `history` is limited. A job of a limited caller has its sources, and other jobs do not exist for it. */
export function limitedReplays({ replays }: Store, history: HistoryStore, scope: Scope): ReplayStore {
  const { sourceIds } = scope
  const exists = ({ selection }: ReplayJob): boolean => selection.sourceIds !== undefined && scope.hasAll(selection.sourceIds)
  const one: ReplayStore['one'] = async (id) => {
    const job = await replays.one(id)
    return job !== undefined && exists(job) ? job : undefined
  }
  return {
    replay: async (deliveryId, ...args) =>
      (await history.delivery(deliveryId)) === undefined ? { ok: false, reason: 'not_found' } : replays.replay(deliveryId, ...args),
    count: (selection) => replays.count({ ...selection, sourceIds }),
    create: (job, audit) => replays.create({ ...job, selection: { ...job.selection, sourceIds } }, audit),
    update: async (id, change, audit) =>
      (await one(id)) === undefined ? { ok: false, reason: 'not_found' } : replays.update(id, change, audit),
    list: (filter, page) => replays.list({ ...filter, sourceIds }, page),
    one,
    step: unreachable('a step of a replay job'),
  }
}

export function limitedDeletions({ deletions }: Store, scope: Scope): DeletionStore {
  const { sourceIds } = scope
  const one: DeletionStore['one'] = async (id) => {
    const found = await deletions.one(id)
    return found !== undefined && scope.hasAll(found.sourceIds) ? found : undefined
  }
  return {
    create: unreachable('deleting users'),
    list: (filter, page) => deletions.list({ ...filter, sourceIds }, page),
    one,
    targets: async (id, filter, page) => ((await one(id)) === undefined ? { data: [], next: null } : deletions.targets(id, filter, page)),
    suppressions: (filter, page) => deletions.suppressions({ ...filter, sourceIds }, page),
    suppress: (wanted, audit) =>
      deletions.suppress((configuration) => {
        const limited = scope.limit(configuration)
        const { userIds, sourceIds: asked } = resolve(wanted, limited)
        return { userIds, sourceIds: (asked ?? [...limited.sources.keys()]).filter(scope.has) }
      }, audit),
    unsuppress: (userId, asked, audit) => deletions.unsuppress(userId, asked?.filter(scope.has) ?? sourceIds, audit),
    pseudonym: (userId) => deletions.pseudonym(userId),
  }
}

/** Only the kinds that the routes read directly. Incidents, mutes and the settings of alerts are read through alerts. */
export function limitedDocuments(store: Store, scope: Scope): DocumentStore {
  const { documents } = store
  const ofSources = {
    exists: (key: string): boolean => scope.has(sourceOfKey(key)),
    prefixes: (): string[] => scope.sourceIds.map(eventKeyPrefix),
  }
  const kinds: Readonly<Record<string, { exists: (key: string) => boolean; prefixes: () => string[] } | undefined>> = {
    [EVENT_COUNTS]: ofSources,
    [EVENT_PROPERTIES]: ofSources,
    [VIOLATION]: {
      exists: (key) => plans().has(partsOfKey(key).planId) && scope.has(partsOfKey(key).sourceId),
      prefixes: () => [...plans().keys()].flatMap((planId) => scope.sourceIds.map((sourceId) => violationsOfPlan(planId, sourceId))),
    },
    get [WAREHOUSE_SCHEMAS]() {
      return ofDestinations
    },
    get [WAREHOUSE_TABLES]() {
      return ofDestinations
    },
    get [WAREHOUSE_UPKEEP]() {
      return ofDestinations
    },
    get [WAREHOUSE_HISTORY]() {
      return ofDestinations
    },
    get [SAVED_QUERIES]() {
      return ofDestinations
    },
  }
  const ofDestinations = {
    exists: (key: string): boolean => scope.hasWhole(store.configuration(), key.split(' ', 1)[0] as string),
    prefixes: (): string[] =>
      [...store.configuration().destinations.keys()].map((id) => `${id} `).filter((key) => ofDestinations.exists(key)),
  }
  const plans = () => scope.limit(store.configuration()).plans
  const kindOf = (kind: string) => kinds[kind] ?? outOfReach(`a document of the kind ${kind}`)
  return {
    get: async (kind, key) => (kindOf(kind).exists(key) ? documents.get(kind, key) : undefined),
    list: (kind, query) => documents.list(kind, { ...query, prefixes: kindOf(kind).prefixes() }),
    update: (kind, keys, change) => {
      // Saved queries are the only documents that callers change themselves, and they name the keys.
      const may = kind === SAVED_QUERIES && keys.length > 0 && keys.every((key) => kindOf(kind).exists(key))
      return may ? documents.update(kind, keys, change) : outOfReach(`changing a document of the kind ${kind}`)
    },
    drop: unreachable('deleting documents'),
  }
}
