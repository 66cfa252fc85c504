// Checks whether anything grows or slows down in PostgreSQL over time. Messages arrive at a steady rate; half of them are
// delivered from memory and half are claimed, some are retried, all are settled. Prints every 15 seconds: dead rows, sizes, and
// the times of claims and settlements. With --old-snapshot, another session keeps an old snapshot open during the middle third,
// in which the server cannot vacuum deleted rows.
//
//   node bench/cluster/table-bloat.ts [minutes] [--rate=batches per second] [--old-snapshot]

import { parseArgs } from 'node:util'
import type { Client } from 'pg'
import { createSecretBox } from '../../packages/server/src/secrets/secret-box.ts'
import { accept, newDestination, newSource, settlementOf, tracks } from '../../packages/server/src/store/conformance/fixtures.ts'
import { PostgresServer } from '../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { createPostgresStore, type PostgresStore } from '../../packages/server/src/store/postgres/store.ts'
import type { ClaimedShipment } from '../../packages/server/src/store/store.ts'

const TABLES = ['shipments', 'deltas', 'ledger', 'nodes'] as const
const REPORT_MS = 15_000
const TICK_MS = 20
const BATCH = 10
/** One in this many claimed shipments fails once and is retried. */
const RETRIED = 20
const RETRY_AFTER_MS = 2_000

class Times {
  #ms: number[] = []

  async of<T>(work: Promise<T>): Promise<T> {
    const started = performance.now()
    const result = await work
    this.#ms.push(performance.now() - started)
    return result
  }

  /** The median and the 99th percentile since the last call. */
  told(): string {
    const sorted = this.#ms.sort((a, b) => a - b)
    this.#ms = []
    const at = (part: number): string => (sorted[Math.floor((sorted.length - 1) * part)] ?? 0).toFixed(1)
    return `${at(0.5)} / ${at(0.99)}`
  }
}

async function run(minutes: number, rate: number, withOldSnapshot: boolean): Promise<void> {
  const server = await PostgresServer.start({ fsync: true })
  try {
    const store = await createPostgresStore({ url: server.url(), secretBox: createSecretBox('a key for a bench'), retentionDays: 7 })
    const looking = await server.client()
    const old = await server.client()
    try {
      const traffic = await createLoad(store, rate)
      const startedAt = performance.now()
      const elapsedMs = (): number => performance.now() - startedAt
      const third = (minutes * 60_000) / 3
      let isOld = false
      console.log(`${rate} batches of ${BATCH} per second, each to two destinations; sizes in MB, times in ms (median / p99)`)
      console.log(HEAD)
      while (elapsedMs() < minutes * 60_000) {
        await new Promise((resolve) => setTimeout(resolve, REPORT_MS))
        const wanted = withOldSnapshot && elapsedMs() > third && elapsedMs() < 2 * third
        if (wanted !== isOld) {
          await old.query(wanted ? 'BEGIN ISOLATION LEVEL REPEATABLE READ' : 'COMMIT')
          if (wanted) await old.query('SELECT count(*) FROM switchyard.nodes')
          isOld = wanted
        }
        console.log(await report(looking, elapsedMs(), traffic, isOld))
      }
      await traffic.stop()
      const [ledger, recount] = [await store.books.ledger(), await store.books.recount()]
      if (JSON.stringify(ledger) !== JSON.stringify(recount))
        throw new Error(`the ledger and its recount differ: ${JSON.stringify({ ledger, recount })}`)
      const { rows } = await looking.query<{ name: string; bytes: string }>(
        `SELECT indexrelname AS name, pg_relation_size(indexrelid) AS bytes FROM pg_stat_user_indexes
         WHERE schemaname = 'switchyard' AND relname = ANY ($1) ORDER BY relname, indexrelname`,
        [TABLES],
      )
      for (const { name, bytes } of rows) console.log(`${name}: ${(Number(bytes) / 2 ** 20).toFixed(1)} MB`)
      console.log(
        `accepted ${traffic.accepted()} messages; the ledger matches its recount; pending: ${ledger.reduce((sum, { pending }) => sum + pending, 0)}`,
      )
    } finally {
      await looking.end()
      await old.end()
      await store.close()
    }
  } finally {
    await server.dispose()
  }
}

interface Load {
  accepts: Times
  claims: Times
  settles: Times
  accepted: () => number
  stop: () => Promise<void>
}

async function createLoad(store: PostgresStore, rate: number): Promise<Load> {
  const { id: sourceId } = await newSource(store)
  const { id: taken } = await newDestination(store, sourceId)
  const { id: claimed } = await newDestination(store, sourceId)
  const load = { accepts: new Times(), claims: new Times(), settles: new Times() }
  const working = new Set<Promise<void>>()
  let accepted = 0
  let problem: unknown
  const start = (work: Promise<void>): void => {
    const one: Promise<void> = work
      .catch((error: unknown) => {
        problem ??= error
      })
      .finally(() => working.delete(one))
    working.add(one)
  }
  const settle = async ({ shipment }: ClaimedShipment, retried: boolean): Promise<void> => {
    const dueAtMs = Date.now() + RETRY_AFTER_MS
    const settlement = settlementOf([shipment], retried ? 'retry' : 'delivered', { dueAtMs, firstAttemptAtMs: Date.now() })
    await load.settles.of(store.delivery.settle(settlement))
  }
  store.delivery.attach({
    reserve: (destinationId) => destinationId === taken,
    deliver: (shipment) => start(settle(shipment, false)),
    cancelReservation: () => {},
    dropMessages: () => {},
    wake: () => {},
  })
  let claiming = false
  let claimedSoFar = 0
  const claim = async (): Promise<void> => {
    claiming = true
    try {
      const request = { destinationId: claimed, nowMs: Date.now(), maxFresh: 200, maxRetries: 50, maxBytes: 1e9 }
      const { shipments } = await load.claims.of(store.delivery.claim(request))
      for (const each of shipments) start(settle(each, each.shipment.attempt === 0 && ++claimedSoFar % RETRIED === 0))
    } finally {
      claiming = false
    }
  }
  let due = 0
  let last = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    due += ((now - last) / 1000) * rate
    last = now
    for (; due >= 1; due--) {
      start(
        load.accepts.of(accept(store, sourceId, tracks(BATCH), [taken, claimed])).then(() => {
          accepted += BATCH
        }),
      )
    }
    if (!claiming) start(claim())
  }, TICK_MS)
  return {
    ...load,
    accepted: () => accepted,
    async stop() {
      clearInterval(timer)
      // A task that ends may start another one.
      while (working.size > 0) await Promise.all(working)
      if (problem !== undefined) throw problem
    },
  }
}

const HEAD = `   s snapshot ${TABLES.map((table) => `${table.padStart(9)}: dead  table  index`).join(' | ')} |    accept |     claim |    settle`

async function report(client: Client, elapsedMs: number, { accepts, claims, settles }: Load, isOld: boolean): Promise<string> {
  const { rows } = await client.query<{ name: string; dead: string; table: string; index: string }>(
    `SELECT relname AS name, n_dead_tup AS dead, pg_table_size(relid) AS table, pg_indexes_size(relid) AS index
     FROM pg_stat_user_tables WHERE schemaname = 'switchyard' AND relname = ANY ($1)`,
    [TABLES],
  )
  const columns = TABLES.map((table) => {
    const { dead, table: tableBytes, index } = rows.find(({ name }) => name === table) ?? { dead: '0', table: '0', index: '0' }
    const megabytes = (bytes: string): string => (Number(bytes) / 2 ** 20).toFixed(1).padStart(6)
    return `${dead.padStart(15)} ${megabytes(tableBytes)} ${megabytes(index)}`
  })
  const seconds = String(Math.round(elapsedMs / 1000)).padStart(4)
  const times = [accepts, claims, settles].map((each) => each.told().padStart(10))
  return `${seconds} ${(isOld ? 'old' : '').padStart(8)} ${columns.join(' | ')} |${times.join(' |')}`
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rate: { type: 'string', default: '100' }, 'old-snapshot': { type: 'boolean', default: false } },
})
await run(Number(positionals[0] ?? 3), Number(values.rate), values['old-snapshot'])
