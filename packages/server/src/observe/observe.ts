// The observability stage: receives the events of ingest, delivery and the store, and turns them into the log, the metrics, the
// statistics over time and the live feed. It has no influence on how messages are processed. Its own errors are logged and go no
// further: a message is never rejected because it could not be counted.

import type { FastifyInstance } from 'fastify'
import type { DeliveryEvents } from '../delivery/events/events.ts'
import type { IngestEvents } from '../ingest/events.ts'
import type { Log } from '../logging/log.ts'
import type { PlanJudges } from '../plans/plan-judges.ts'
import { type Store, StoreUnavailable } from '../store/store.ts'
import type { Clock } from '../timing/clock.ts'
import { EventCatalog } from './event-catalog/event-catalog.ts'
import type { Watcher } from './events/events.ts'
import { LiveFeed } from './live.ts'
import { LiveRelay } from './live-relay.ts'
import { createEventLog } from './log-events.ts'
import type { MetricSources, Metrics } from './metrics.ts'
import { type MetricsRoute, registerMetrics } from './metrics-route.ts'
import { type Backlogs, Stats } from './stats.ts'
import { createStoreCounts } from './store-counts.ts'
import { Violations } from './violations/violations.ts'

export interface ObserverOptions {
  store: Store
  clock: Clock
  log: Log
  /** Created before the store is opened, so that it counts from the beginning. */
  metrics: Metrics
  version: string
  /** Whether accepted messages are counted for the event catalogue. */
  eventCatalog: boolean
  plans: Pick<PlanJudges, 'of'>
}

export interface ServedMetrics extends Pick<MetricsRoute, 'access' | 'authorize'>, Pick<MetricSources, 'states' | 'pacing'> {
  /** Turns the text of this process into that of all processes on the port. */
  combine?: ((own: () => Promise<string>) => MetricsRoute['text']) | undefined
}

export function createObserver({ store, clock, log, metrics, version, eventCatalog, plans }: ObserverOptions) {
  const wallMs = (): number => clock.wallMs()
  const stats = new Stats({ add: (rows) => store.books.addStats(rows), backlogs: () => backlogsIn(store), wallMs })
  const live = new LiveFeed({ wallMs })
  const { nodes, channel } = store
  const relay = nodes === undefined || channel === undefined ? null : new LiveRelay({ live, nodes, channel })
  // Also if nothing is counted: it drops what is old, and what belongs to deleted sources.
  const events = new EventCatalog({ store, wallMs, onError: reportUnwritten('the event catalogue') })
  const violations = new Violations({ store, plans, wallMs, onError: reportUnwritten('the violations of tracking plans') })
  const watchers: readonly Watcher[] = [createEventLog(log, wallMs), metrics, stats, live, violations, ...(eventCatalog ? [events] : [])]

  function reportUnwritten(what: string): (err: unknown) => void {
    return (err) => {
      // The store reports by itself that it is unavailable.
      if (!(err instanceof StoreUnavailable)) log.error({ err }, `${what} could not be written`)
    }
  }

  function emitter<K extends 'accepted' | 'rejected' | 'suppressed' | 'warned' | 'attempted' | 'delivered' | 'settled'>(kind: K) {
    const listening = watchers.filter((watcher) => watcher[kind] !== undefined)
    return (event: Parameters<NonNullable<Watcher[K]>>[0]): void => {
      for (const watcher of listening) {
        try {
          ;(watcher[kind] as (received: typeof event) => void)(event)
        } catch (err) {
          log.error({ err, kind }, 'an observer failed to process an event')
        }
      }
    }
  }

  const ingest: IngestEvents = {
    onAccepted: emitter('accepted'),
    onRejected: emitter('rejected'),
    onSuppressed: emitter('suppressed'),
    onWarned: emitter('warned'),
  }
  const delivery: DeliveryEvents = {
    attempted: emitter('attempted'),
    delivered: emitter('delivered'),
    settled: emitter('settled'),
    breaker: (destination, state) => {
      for (const watcher of watchers) watcher.breaker?.(destination, state)
    },
    trouble: (destination, error) => {
      for (const watcher of watchers) watcher.trouble?.(destination, error)
    },
  }
  return {
    ingest,
    delivery,
    live,
    flushStats: () => stats.flush(),
    flushEvents: () => events.refresh(),
    flushViolations: () => violations.flush(),
    recentViolations: (nowMs: number) => violations.recent(nowMs),
    registerMetrics(app: FastifyInstance, { access, authorize, states, pacing, combine = (own) => own }: ServedMetrics): void {
      const sources: MetricSources = {
        configuration: () => store.configuration(),
        states,
        pacing,
        counts: createStoreCounts(store),
        listeners: () => live.listeners,
        wallMs,
        version,
      }
      registerMetrics(app, { access, authorize, text: combine(() => metrics.text(sources)) })
    },
    /** Writes the latest counts. Call it before the store is closed. */
    async close() {
      relay?.close()
      live.close()
      metrics.close()
      await Promise.all([stats.close(), events.close(), violations.close()])
    },
  }
}

async function backlogsIn({ books }: Store): Promise<Backlogs> {
  const [ledger, oldest] = await Promise.all([books.ledger(), books.oldestPending()])
  return { ledger, oldest }
}
