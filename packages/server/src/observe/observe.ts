// The stage that watches: hears what ingest, delivery and the store report, and makes of it the log, the metrics, the counts
// over time and the live feed. It changes nothing and is asked nothing on the way of a message. What goes wrong in here is
// logged and goes no further: a message is not refused because it could not be counted.

import type { FastifyInstance } from 'fastify'
import type { DeliveryEvents } from '../delivery/events.ts'
import type { IngestEvents } from '../ingest/events.ts'
import type { Log } from '../logging/log.ts'
import type { Store } from '../store/store.ts'
import type { Clock } from '../timing/clock.ts'
import type { Watcher } from './events.ts'
import { LiveFeed } from './live.ts'
import { LiveRelay } from './live-relay.ts'
import { createEventLog } from './log-events.ts'
import type { MetricSources, Metrics } from './metrics.ts'
import { type MetricsAccess, type MetricsRoute, registerMetrics } from './metrics-route.ts'
import { Stats } from './stats.ts'
import { StoreCountsReader } from './store-counts.ts'

export interface ObserverOptions {
  store: Store
  clock: Clock
  log: Log
  /** What was counted before there was a store to observe. */
  metrics: Metrics
  version: string
}

export interface Observer {
  ingest: IngestEvents
  delivery: DeliveryEvents
  live: LiveFeed
  flushStats(): Promise<void>
  registerMetrics(
    app: FastifyInstance,
    options: { access: MetricsAccess; authorize: MetricsRoute['authorize']; states: MetricSources['states'] },
  ): void
  /** Before the store is closed: writes what was counted last. */
  close(): Promise<void>
}

export function createObserver({ store, clock, log, metrics, version }: ObserverOptions): Observer {
  const wallMs = (): number => clock.wallMs()
  const stats = new Stats({ add: (rows) => store.books.addStats(rows), wallMs })
  const live = new LiveFeed({ wallMs })
  const { nodes, channel } = store
  const relay = nodes === undefined || channel === undefined ? null : new LiveRelay({ live, nodes, channel })
  const watchers: readonly Watcher[] = [createEventLog(log, wallMs), metrics, stats, live]

  function told<K extends 'accepted' | 'rejected' | 'suppressed' | 'attempted' | 'delivered' | 'settled'>(kind: K) {
    const hearing = watchers.filter((watcher) => watcher[kind] !== undefined)
    return (event: Parameters<NonNullable<Watcher[K]>>[0]): void => {
      for (const watcher of hearing) {
        try {
          ;(watcher[kind] as (heard: typeof event) => void)(event)
        } catch (err) {
          log.error({ err, kind }, 'an observer failed to process an event')
        }
      }
    }
  }

  return {
    ingest: { onAccepted: told('accepted'), onRejected: told('rejected'), onSuppressed: told('suppressed') },
    delivery: {
      attempted: told('attempted'),
      delivered: told('delivered'),
      settled: told('settled'),
      breaker: (destination, state) => {
        for (const watcher of watchers) watcher.breaker?.(destination, state)
      },
      trouble: (destination, error) => {
        for (const watcher of watchers) watcher.trouble?.(destination, error)
      },
    },
    live,
    flushStats: () => stats.flush(),
    registerMetrics(app, { access, authorize, states }) {
      const counts = new StoreCountsReader(store.books)
      const sources: MetricSources = {
        configuration: () => store.configuration(),
        states,
        counts: () => counts.read(),
        listeners: () => live.listeners,
        wallMs,
        version,
      }
      registerMetrics(app, { access, authorize, text: () => metrics.text(sources) })
    },
    async close() {
      relay?.close()
      live.close()
      metrics.close()
      await stats.close()
    },
  }
}
