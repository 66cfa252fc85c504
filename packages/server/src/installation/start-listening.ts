// Starts to accept requests: in the main thread, or in ingest threads, which pass on what they do not handle themselves.

import type { AddressInfo } from 'node:net'
import type { Config } from '../config.ts'
import { type Deciding, MAX_BODIES_BYTES } from '../ingest/ingest.ts'
import { IngestThreads } from '../ingest/threads/ingest-threads.ts'
import type { Log } from '../logging/log.ts'
import type { Store } from '../store/store.ts'
import type { HttpServer } from './http-server.ts'
import { ingestThreadCount } from './ingest-thread-count.ts'

export interface Listening {
  address: AddressInfo
  /** Null if the main thread reads all requests. */
  threads: IngestThreads | null
}

interface Parts {
  config: Config
  log: Log
  store: Pick<Store, 'onConfiguration'>
  deciding: Deciding
  bodyTimeoutMs: number
}

export async function startListening({ app }: HttpServer, { config, log, store, deciding, bodyTimeoutMs }: Parts): Promise<Listening> {
  const { host, port, trustedProxies } = config
  const { count, problem } = ingestThreadCount(config)
  if (problem !== null) log.warn(problem)
  if (count === 0) {
    await app.listen({ host, port })
    return { address: app.server.address() as AddressInfo, threads: null }
  }
  await app.ready()
  const opened = await IngestThreads.open({
    count,
    host,
    port,
    settings: { bodyTimeoutMs, maxBodiesBytes: MAX_BODIES_BYTES },
    trustedProxies,
    deciding,
    onConnection: (connection) => void app.server.emit('connection', connection),
    onLost: (err) => log.error({ err }, 'an ingest thread failed and is replaced; its connections were closed'),
  })
  store.onConfiguration(() => opened.threads.updateKeys())
  return opened
}
