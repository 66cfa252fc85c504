// Records how messages differ from tracking plans. They are counted in memory when a request was accepted, and written to the store's
// documents every few seconds and at shutdown. If a write fails, its counts are written again later. After a crash, the counts since the last
// write are missing here; the violations of each message are stored with the message.

import type { AcceptedEvent } from '../../ingest/events.ts'
import type { PlanJudges } from '../../plans/plan-judges.ts'
import type { Store, StoredDocument } from '../../store/store.ts'
import { countsUntil, FORGET_AFTER_MS, HOUR_MS, sum } from '../event-catalog/event-documents.ts'
import type { Watcher } from '../events/events.ts'
import {
  addToViolation,
  countedViolation,
  MAX_VIOLATIONS_PER_SOURCE,
  MESSAGES_KEPT,
  partsOfKey,
  VIOLATION,
  type ViolationCounts,
  type ViolationDelta,
  violationKey,
  violationsOfPlan,
} from './violation-documents.ts'

export interface RecentViolations {
  planId: string
  violations: number
  /** The rule that was violated most often; null if it is none of the plan: names of other events come from senders, and this is sent in alerts. */
  planRule: string | null
  /** When the first of them was found, at the earliest: a kind of violation may have been found long before. */
  firstMs: number
}

export interface ViolationOptions {
  store: Pick<Store, 'documents' | 'configuration' | 'onConfiguration'>
  plans: Pick<PlanJudges, 'of'>
  onError: (error: unknown) => void
  wallMs: () => number
  flushEveryMs?: number
  maxPerSource?: number
}

const FLUSH_EVERY_MS = 5_000
const DOCUMENTS_AT_ONCE = 100
/** In memory, while the store is unavailable. More are counted together. */
const MAX_TALLIES = 5_000

export class Violations implements Watcher {
  readonly #options: ViolationOptions
  readonly #max: number
  readonly #timer: NodeJS.Timeout
  #tallies = new Map<string, ViolationDelta>()
  #flushing: Promise<void> = Promise.resolve()
  #forgottenAtMs = Number.NEGATIVE_INFINITY

  constructor(options: ViolationOptions) {
    this.#options = options
    this.#max = options.maxPerSource ?? MAX_VIOLATIONS_PER_SOURCE
    this.#timer = setInterval(() => void this.flush(), options.flushEveryMs ?? FLUSH_EVERY_MS)
    this.#timer.unref()
    let { plans } = options.store.configuration()
    options.store.onConfiguration((changed) => {
      const gone = [...plans.values()].flatMap(({ id, sourceIds }) =>
        changed.plans.has(id)
          ? sourceIds.filter((sourceId) => !changed.sources.has(sourceId)).map((sourceId) => violationsOfPlan(id, sourceId))
          : [violationsOfPlan(id)],
      )
      plans = changed.plans
      if (gone.length > 0) this.#flushing = this.#flushing.then(() => this.#drop(gone))
    })
  }

  accepted({ sourceId, content, repeated }: AcceptedEvent): void {
    const { violations, items, receivedAtMs } = content
    if (violations === undefined) return
    const plan = this.#options.plans.of(this.#options.store.configuration(), sourceId)
    if (plan === null) return
    const duplicates = new Set(repeated)
    for (const [index, found] of Object.entries(violations)) {
      if (duplicates.has(Number(index))) continue
      const messageId = String(items[Number(index)]?.['messageId'])
      const counted = new Set<string>()
      for (const given of found) {
        const violation = countedViolation(given)
        const key = violationKey(plan.planId, sourceId, violation)
        // Elements of one array count once per message.
        if (counted.has(key)) continue
        counted.add(key)
        this.#add(
          plan.planId,
          sourceId,
          this.#tallies.has(key) || this.#tallies.size < MAX_TALLIES ? violation : null,
          receivedAtMs,
          messageId,
        )
      }
    }
  }

  /** Resolves when everything counted so far is stored, or when storing it has failed for now. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.then(() => this.#write())
    return this.#flushing
  }

  /** The violations in this hour and the one before, by source id. Sources without any are missing. */
  async recent(nowMs: number): Promise<Map<string, RecentViolations>> {
    const { store } = this.#options
    const hour = Math.floor(nowMs / HOUR_MS)
    const bySource = new Map<string, RecentViolations & { most: number }>()
    for (const planId of store.configuration().plans.keys()) {
      let after: StoredDocument | undefined
      do {
        const query = { prefix: violationsOfPlan(planId), order: 'newest', after, limit: DOCUMENTS_AT_ONCE } as const
        const page = await store.documents.list(VIOLATION, query)
        for (const { key, doc } of page) {
          const { violation, hours, firstMs } = doc as ViolationCounts
          const count = sum(countsUntil(hours, hour, 2))
          const { sourceId } = partsOfKey(key)
          const own = bySource.get(sourceId) ?? { planId, violations: 0, planRule: null, firstMs: Number.POSITIVE_INFINITY, most: 0 }
          if (count === 0) continue
          own.violations += count
          own.firstMs = Math.min(own.firstMs, firstMs)
          if (violation !== null && count > own.most) {
            own.most = count
            own.planRule = violation.code === 'unplanned_event' ? null : violation.rule
          }
          bySource.set(sourceId, own)
        }
        after = page.length < DOCUMENTS_AT_ONCE ? undefined : page.at(-1)
      } while (after !== undefined && after.atMs >= (hour - 1) * HOUR_MS)
    }
    return bySource
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }

  #add(planId: string, sourceId: string, violation: ViolationDelta['violation'], atMs: number, messageId: string): void {
    const key = violationKey(planId, sourceId, violation)
    const hour = Math.floor(atMs / HOUR_MS)
    const own = this.#tallies.get(key)
    if (own === undefined) {
      const hours = new Map([[hour, 1]])
      this.#tallies.set(key, { planId, sourceId, violation, firstMs: atMs, lastMs: atMs, hours, messageIds: [messageId] })
      return
    }
    own.lastMs = Math.max(own.lastMs, atMs)
    own.hours.set(hour, (own.hours.get(hour) ?? 0) + 1)
    own.messageIds = [messageId, ...own.messageIds.slice(0, MESSAGES_KEPT - 1)]
  }

  /** Does not reject: its errors are reported. */
  async #write(): Promise<void> {
    const { store, onError, wallMs } = this.#options
    const { plans, sources } = store.configuration()
    const deltas = [...this.#tallies].filter(([, { planId, sourceId }]) => plans.has(planId) && sources.has(sourceId))
    this.#tallies = new Map()
    let written = 0
    try {
      for (; written < deltas.length; written += DOCUMENTS_AT_ONCE)
        await this.#writeSome(new Map(deltas.slice(written, written + DOCUMENTS_AT_ONCE)))
      if (plans.size > 0 && wallMs() - this.#forgottenAtMs >= HOUR_MS) await this.#forget()
    } catch (error) {
      for (const [key, delta] of deltas.slice(written)) this.#putBack(key, delta)
      onError(error)
    }
  }

  async #writeSome(deltas: ReadonlyMap<string, ViolationDelta>): Promise<void> {
    const otherKeys = new Set([...deltas.values()].map(({ planId, sourceId }) => violationKey(planId, sourceId, null)))
    await this.#options.store.documents.update(VIOLATION, [...new Set([...deltas.keys(), ...otherKeys])], (stored) => {
      const changes = new Map<string, ViolationCounts>()
      const current = (key: string): ViolationCounts | undefined =>
        changes.get(key) ?? (stored.get(key)?.doc as ViolationCounts | undefined)
      for (const [key, delta] of deltas) {
        const { planId, sourceId, violation, firstMs, lastMs } = delta
        const otherKey = violationKey(planId, sourceId, null)
        const other = current(otherKey)
        const documents = other?.documents ?? 0
        const isNew = violation !== null && !stored.has(key)
        if (violation === null || (isNew && documents >= this.#max)) {
          changes.set(otherKey, addToViolation(other, { ...delta, violation: null }))
          continue
        }
        changes.set(key, addToViolation(current(key), delta))
        if (isNew) {
          const none = addToViolation(undefined, { ...delta, violation: null, firstMs, lastMs, hours: new Map(), messageIds: [] })
          changes.set(otherKey, { ...(other ?? none), documents: documents + 1 })
        }
      }
      return new Map([...changes].map(([key, doc]) => [key, { doc, atMs: doc.lastMs }]))
    })
  }

  #putBack(key: string, delta: ViolationDelta): void {
    const newer = this.#tallies.get(key)
    if (newer === undefined) {
      this.#tallies.set(key, delta)
      return
    }
    newer.firstMs = Math.min(newer.firstMs, delta.firstMs)
    for (const [hour, count] of delta.hours) newer.hours.set(hour, (newer.hours.get(hour) ?? 0) + count)
    newer.messageIds = [...newer.messageIds, ...delta.messageIds].slice(0, MESSAGES_KEPT)
  }

  async #drop(prefixes: readonly string[]): Promise<void> {
    const { store, onError } = this.#options
    for (const prefix of prefixes) await store.documents.drop(VIOLATION, { prefix }).catch(onError)
  }

  /** Drops what is old, and counts the documents of full sources again, so that there is room for new violations. */
  async #forget(): Promise<void> {
    const { store, wallMs } = this.#options
    this.#forgottenAtMs = wallMs()
    await store.documents.drop(VIOLATION, { beforeMs: wallMs() - FORGET_AFTER_MS })
    for (const { id, sourceIds } of store.configuration().plans.values()) {
      for (const sourceId of sourceIds) {
        const otherKey = violationKey(id, sourceId, null)
        const other = await store.documents.get(VIOLATION, otherKey)
        if (((other?.doc as ViolationCounts | undefined)?.documents ?? 0) < this.#max) continue
        const kept = await store.documents.list(VIOLATION, { prefix: violationsOfPlan(id, sourceId), order: 'key', limit: this.#max + 1 })
        const documents = kept.filter(({ key }) => key !== otherKey).length
        await store.documents.update(VIOLATION, [otherKey], (stored) => {
          const now = stored.get(otherKey)
          return new Map(now === undefined ? [] : [[otherKey, { atMs: now.atMs, doc: { ...now.doc, documents } }]])
        })
      }
    }
  }
}
