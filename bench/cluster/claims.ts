// How long a claim takes with no backlog and with a million deliveries pending for a dead destination: two stores on one
// server, measured alternately.

import pg from 'pg'
import { createSecretBox } from '../../packages/server/src/secrets/secret-box.ts'
import { accept, newDestination, newSource, tracks } from '../../packages/server/src/store/conformance/fixtures.ts'
import { createPostgresStore, type PostgresStore } from '../../packages/server/src/store/postgres/store.ts'
import type { Postgres } from '../service/environment/databases.ts'

export interface ClaimsRun {
  pending: number
  /** The median time to claim and release one shipment, per round. */
  withoutMs: number[]
  withMs: number[]
}

const CLAIMS_PER_ROUND = 300
const WAITING = 50

export async function measureClaims(postgres: Postgres, pending: number, rounds: number): Promise<ClaimsRun> {
  const [without, withDead] = [await open(postgres, 'claims_without', 0), await open(postgres, 'claims_with', pending)]
  try {
    const run: ClaimsRun = { pending, withoutMs: [], withMs: [] }
    await Promise.all([time(without), time(withDead)])
    for (let round = 0; round < rounds; round += 1) {
      // Claims alternate between the two stores, so that a busy moment of the machine affects both.
      const samples = { without: [] as number[], with: [] as number[] }
      for (let nth = 0; nth < CLAIMS_PER_ROUND; nth += 1) {
        samples.without.push(await once(without))
        samples.with.push(await once(withDead))
      }
      run.withoutMs.push(median(samples.without))
      run.withMs.push(median(samples.with))
    }
    return run
  } finally {
    await without.store.close()
    await withDead.store.close()
    for (const name of ['claims_without', 'claims_with']) await postgres.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
  }
}

interface Opened {
  store: PostgresStore
  healthyId: string
}

async function open(postgres: Postgres, name: string, pending: number): Promise<Opened> {
  await postgres.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
  await postgres.query(`CREATE DATABASE ${name}`)
  const url = postgres.connectionString.replace(/\/[^/]*$/, `/${name}`)
  const store = await createPostgresStore({ url, secretBox: createSecretBox('a key for the benchmark'), retentionDays: 7 })
  const { id: sourceId } = await newSource(store)
  const { id: healthyId } = await newDestination(store, sourceId)
  const { id: deadId } = await newDestination(store, sourceId)
  if (pending > 0) await fill(url, deadId, pending)
  for (let nth = 0; nth < WAITING; nth += 1) await accept(store, sourceId, tracks(1), [healthyId])
  return { store, healthyId }
}

/** Inserts rows as accepting writes them, one message each, without the messages. A claim for another destination must not read them. */
async function fill(url: string, destinationId: string, count: number): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(
    `INSERT INTO switchyard.shipments (id, destination, due, first_attempt, count, attempt, bytes, parts)
     SELECT (extract(epoch FROM now()) * 1000 - 3600000)::bigint * 2097152 + n, d.num, CASE WHEN n % 2 = 0 THEN 0 ELSE n END,
       CASE WHEN n % 2 = 0 THEN NULL ELSE n END, 1, n % 2, 700, '[]'
     FROM generate_series(1, ${count}) n, switchyard.destinations d WHERE d.id = $1`,
    [destinationId],
  )
  await client.query('ANALYZE switchyard.shipments')
  await client.end()
}

async function time(opened: Opened): Promise<void> {
  for (let nth = 0; nth < CLAIMS_PER_ROUND; nth += 1) await once(opened)
}

async function once({ store, healthyId }: Opened): Promise<number> {
  const started = performance.now()
  const { shipments } = await store.delivery.claim({
    destinationId: healthyId,
    nowMs: Date.now(),
    maxFresh: 1,
    maxRetries: 1,
    maxBytes: 1e9,
  })
  const tookMs = performance.now() - started
  if (shipments.length !== 1) throw new Error(`${shipments.length} shipments were claimed`)
  store.delivery.release(shipments.map(({ shipment }) => shipment))
  return tookMs
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
