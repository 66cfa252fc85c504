// The service under test, in this process, for tests that replace the clock, the resolver or the certificate authorities. Everything
// else is real: the store (see test-store.ts), the ports, the sockets.
//
//   await using service = await startInProcess({ host: '0.0.0.0', lookup: async () => ['10.0.0.1'] })
//   await service.api('/ledger')                    as in service.ts
//   await service.later(60_000)                     moves the clock by a minute; attempts that are due by then are made
//   await service.restart({ laterMs: 5 * HOUR_MS }) stopped, and started on the same store five hours later

import { type App, type AppParts, createApp } from '../../packages/server/src/app.ts'
import { readConfig } from '../../packages/server/src/config.ts'
import { createLog } from '../../packages/server/src/logging/log.ts'
import { newStoreLocation, type StoreLocation } from '../../packages/server/src/store/fixtures/test-store.ts'
import { type Clock, createClock, LONGEST_PAUSE_MS } from '../../packages/server/src/timing/clock.ts'
import { callControl, TOKEN } from './service.ts'

export interface InProcessOptions extends Pick<AppParts, 'lookup' | 'ca' | 'onRoute' | 'bodyTimeoutMs' | 'integrations' | 'catalog'> {
  host?: string
  /** Where its store is, which is kept; by default a new one, which is removed. */
  place?: Pick<StoreLocation, 'env'>
  allowAddresses?: string
  /** Stops the wall clock at this time. Timers go on. */
  wallMs?: number
  /** Receives the lines of the log. */
  onLog?: (line: string) => void
}

export interface InProcessService extends AsyncDisposable {
  url: string
  api<T = unknown>(path: string, init?: { method?: string; body?: unknown }): Promise<T>
  /** The time by its clock. */
  now(): number
  later(ms: number): Promise<void>
  restart(options?: { laterMs?: number }): Promise<void>
}

export async function startInProcess(options: InProcessOptions = {}): Promise<InProcessService> {
  const { host = '127.0.0.1', allowAddresses, wallMs, lookup, ca, onRoute, bodyTimeoutMs, integrations, catalog, onLog } = options
  const own = options.place === undefined ? await newStoreLocation() : null
  const env = (options.place ?? own)?.env
  let aheadMs = 0
  let scheduleAheadMs = 0
  const clock = (scheduleStartMs: number): Clock => {
    const real = createClock(scheduleStartMs)
    const startedAheadMs = scheduleAheadMs
    // The stored schedule time may already be ahead of the real time. Then only the difference is added.
    const behindMs = Math.max(0, Date.now() + scheduleAheadMs - real.scheduleMs())
    return {
      wallMs: () => (wallMs ?? real.wallMs()) + aheadMs,
      scheduleMs: () => real.scheduleMs() + behindMs + scheduleAheadMs - startedAheadMs,
    }
  }

  const start = (): Promise<App> => {
    const read = readConfig({
      SWITCHYARD_HOST: host,
      SWITCHYARD_PORT: '0',
      ...env,
      SWITCHYARD_ADMIN_TOKEN: TOKEN,
      ...(allowAddresses === undefined ? {} : { SWITCHYARD_ALLOW_ADDRESSES: allowAddresses }),
    })
    if (read.kind !== 'config') throw new Error(JSON.stringify(read))
    const stream = { isTTY: true, write: onLog } as unknown as NodeJS.WriteStream
    return createApp(read.config, onLog ? createLog('debug', { stream }) : createLog('silent'), {
      clock,
      ...(lookup ? { lookup } : {}),
      ...(ca ? { ca } : {}),
      ...(onRoute ? { onRoute } : {}),
      ...(bodyTimeoutMs ? { bodyTimeoutMs } : {}),
      ...(integrations ? { integrations } : {}),
      ...(catalog ? { catalog } : {}),
    })
  }

  let app = await start()
  const service: InProcessService = {
    url: app.url,
    api: (path, init) => callControl(app.url, TOKEN, path, init),
    now: () => (wallMs ?? Date.now()) + aheadMs,
    async later(ms) {
      aheadMs += ms
      scheduleAheadMs += ms
      // Timers do not notice the change. A change of its settings makes a destination check the time.
      const { data } = await service.api<{ data: { id: string; maxInFlight: number }[] }>('/destinations?limit=1000')
      for (const { id, maxInFlight } of data) {
        for (const changed of [maxInFlight === 1 ? 2 : maxInFlight - 1, maxInFlight])
          await service.api(`/destinations/${id}`, { method: 'PATCH', body: { maxInFlight: changed } })
      }
    },
    async restart({ laterMs = 0 } = {}) {
      await app.close()
      aheadMs += laterMs
      scheduleAheadMs += Math.min(laterMs, LONGEST_PAUSE_MS)
      app = await start()
      service.url = app.url
    },
    async [Symbol.asyncDispose]() {
      await app.close()
      await own?.remove()
    },
  }
  return service
}
