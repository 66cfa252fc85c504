// Stores of earlier versions are opened by this one while senders call, and processes are killed during the migration.
// SQLite: files that earlier versions wrote (e2e/store/fixtures). PostgreSQL: the later steps of the schema are undone in a database that is in use.

import { globSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { createSecretBox, type SecretBox } from '../../../packages/server/src/secrets/secret-box.ts'
import { freePort } from '../../../packages/server/src/store/fixtures/free-port.ts'
import { ADVISORY_LOCKS } from '../../../packages/server/src/store/postgres/session/advisory-locks.ts'
import { MIGRATIONS } from '../../../packages/server/src/store/sqlite/schema/migrations.ts'
import { type Cluster, Node, SECRET_KEY } from '../../cluster/cluster.ts'
import { startTraffic } from '../../cluster/traffic.ts'
import { createWallClock } from '../../machine-faults/wall-clock.ts'
import { type Arrival, startReceiver } from '../../system/receiver.ts'
import { callControl, type LedgerRow, runService, type Service, startService, TOKEN } from '../../system/service.ts'
import { auditSystem } from '../rounds/audit.ts'
import type { Fault, Injection, RoundOptions, RoundResult } from '../rounds/fault.ts'
import { injected, logsOf } from '../rounds/round.ts'
import { type TalliedDestination, Tally, USUAL_DESTINATIONS } from '../system/destinations.ts'
import { numberedMessage } from '../system/numbered-message.ts'
import type { Random } from '../system/random.ts'
import { allAccepted, clusterOf, type System } from '../system/system.ts'

const HELD_AT_FIRST_MS = 40

// ── PostgreSQL ──

/** Settings of destinations that no version with schema 2 or earlier knew. */
const LATER_SETTINGS = ['subscribe', 'request', 'transformation', 'version', 'deadLetter', 'auth', 'tls', 'integration', 'filter', 'paused']

const onPostgres: Injection = {
  key: 'upgrade',
  title: 'A store in an earlier format is upgraded',
  how: 'SQLite: a file that an earlier version wrote (schema 1 to 5) is opened while senders are sending messages. PostgreSQL: all nodes are stopped, the database gets an earlier schema (1 to 3), and all nodes are started at the same time. Up to three processes are killed while they migrate the store.',
  note: 'On PostgreSQL, the database was not written by an earlier version: the later steps of the schema are undone in a database that is in use. Destinations with newer features, and nodes of different versions at the same time, are not covered.',
  stores: ['sqlite', 'postgres'],
  perRound: 8,
  system: () => ({
    integration: false,
    destinations: USUAL_DESTINATIONS.filter(({ name }) => name === 'one by one' || name === 'in batches'),
  }),
  async cause(system, random) {
    const { nodes } = system
    const cluster = clusterOf(system)
    const ends = await Promise.all(nodes.map((node) => node.stop()))
    for (const { code, stderr } of ends) if (code !== 0) throw new Error(`a node ended with ${code}:\n${stderr.slice(-1_500)}`)
    const schema = random.int(1, 3)
    await undoSteps(cluster, schema)
    const kills = random.int(0, 2)
    for (let kill = 1; kill <= kills; kill++) await killedWhileMigrating(cluster, random)
    await Promise.all([...nodes.map((node) => node.start()), ...(random.chance(0.5) ? [killedWhileMigrating(cluster, random)] : [])])
    await Promise.all(nodes.map((node) => node.becomes(200)))
  },
}

/** Undoes the steps of the schema after this one, while no node is running. */
async function undoSteps(cluster: Cluster, schema: number): Promise<void> {
  const run = (sql: string): Promise<unknown> => cluster.query(sql)
  await run('DROP TABLE switchyard.plans, switchyard.documents, switchyard.quarantine')
  await run('ALTER TABLE switchyard.segments DROP COLUMN violations')
  await run('ALTER TABLE switchyard.tokens DROP COLUMN limits')
  await run('ALTER TABLE switchyard.audit DROP COLUMN actor_about, DROP COLUMN sources')
  await run('ALTER TABLE switchyard.source_counts DROP COLUMN quarantined, DROP COLUMN released, DROP COLUMN deleted')
  if (schema < 3) {
    await run('DROP TABLE switchyard.destination_versions')
    const box = createSecretBox(SECRET_KEY)
    for (const { id, doc } of await cluster.query<{ id: string; doc: string }>('SELECT id, doc FROM switchyard.destinations'))
      await cluster.query('UPDATE switchyard.destinations SET doc = $2 WHERE id = $1', [id, earlierDoc(id, doc, schema, box)])
  }
  await cluster.query('UPDATE switchyard.schema_version SET step = $1, works_from = $2', [schema, schema === 1 ? 1 : 2])
}

function earlierDoc(id: string, text: string, schema: number, box: SecretBox): string {
  const doc = JSON.parse(text) as { sealedUrls: string[] }
  for (const name of LATER_SETTINGS) delete (doc as Record<string, unknown>)[name]
  if (schema > 1) return JSON.stringify(doc)
  const { sealedUrls, ...rest } = doc
  delete (rest as Record<string, unknown>)['sealedHeaders']
  return JSON.stringify({ ...rest, urls: sealedUrls.map((url, at) => box.open(url, `${id}.urls.${at}`)), headers: {} })
}

/** Starts one more node and kills it at a random moment; half of the time shortly after a process has begun to migrate. */
async function killedWhileMigrating(cluster: Cluster, random: Random): Promise<void> {
  const store = cluster.server.url('postgres')
  const run = runService({
    env: { SWITCHYARD_STORE: store, SWITCHYARD_SECRET_KEY: SECRET_KEY, SWITCHYARD_PORT: '0', SWITCHYARD_LOG: 'warn' },
  })
  const client = await cluster.server.client('postgres')
  const isMigrating = async (): Promise<boolean> => {
    const [high, low] = [BigInt(ADVISORY_LOCKS.schema) >> 32n, BigInt(ADVISORY_LOCKS.schema) & 0xffffffffn]
    const { rows } = await client.query(
      `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = ${high} AND objid = ${low}`,
    )
    return rows.length > 0
  }
  try {
    await killAtRandom(run, isMigrating, random)
  } finally {
    await client.end()
  }
}

async function killAtRandom(run: ReturnType<typeof runService>, isMigrating: () => Promise<boolean>, random: Random): Promise<void> {
  const mustMigrate = random.chance(0.7)
  const waitMs = mustMigrate ? random.int(0, HELD_AT_FIRST_MS) : random.int(0, 1_500)
  let isOver = false
  void run.ended.then(() => {
    isOver = true
  })
  const isReady = (): boolean => isOver || run.stdout().includes('listens on')
  if (mustMigrate) while (!isReady() && !(await isMigrating())) await sleep(1)
  await sleep(waitMs)
  run.kill('SIGKILL')
  const { code, stderr } = await run.ended
  if (code !== null) throw new Error(`the process that was to be killed ended with ${code}:\n${stderr.slice(-1_500)}`)
}

// ── SQLite ──

const FIXTURES = join(import.meta.dirname, '..', '..', 'store', 'fixtures')
const STORES = globSync('*.db.gz', { cwd: FIXTURES })
  .map((file) => basename(file, '.db.gz'))
  .sort()
/** The messages that are pending in each of these files, for the destinations `failing` and `silent`. */
const OWED_BEFORE = ['m-1', 'm-2', 'm-3', 'm-4', 'of a deletion']
const ACCEPTED_BEFORE = 4

/** The facts about a file that make-store.ts writes beside it, as far as they are used here. */
interface Facts {
  madeAt: string
  schema: number
  key: string
  sourceId: string
  writeKey: string
  destinations: Record<'good' | 'refusing' | 'failing' | 'silent', string>
  ledger: LedgerRow[]
}

async function roundOnSqlite({ random, say }: RoundOptions): Promise<RoundResult> {
  const name = random.pick(STORES)
  say(name)
  await using started = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-upgrade-'))
  started.defer(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'switchyard.db')
  const facts = JSON.parse(readFileSync(join(FIXTURES, `${name}.json`), 'utf8')) as Facts
  writeFileSync(file, gunzipSync(readFileSync(join(FIXTURES, `${name}.db.gz`))), { mode: 0o600 })
  writeFileSync(`${file}.key`, `${facts.key}\n`, { mode: 0o600 })
  // The service runs ten minutes after the file was made, so that no retry window has ended.
  const clock = started.use(createWallClock())
  clock.jump(Date.parse(facts.madeAt) + 600_000 - Date.now())
  const { execArgv } = clock

  const old = new Map<string, Set<string>>()
  const destinations: (TalliedDestination & { receiver: { url: string } })[] = []
  for (const row of facts.ledger) destinations.push(await startOldDestination(row, facts, { old, random, started }))
  pointTo(file, facts, new Map(destinations.map(({ id, receiver }) => [id, receiver.url])))

  // Senders know the address and call all the time; nothing listens there yet.
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const traffic = started.use(
    startTraffic({ targets: () => [url], writeKey: facts.writeKey, perSecond: 20, name: 'n', message: numberedMessage }),
  )
  const fromMs = performance.now()
  const env = { SWITCHYARD_PORT: String(port) }
  for (let kill = random.int(0, 3); kill > 0; kill--) {
    const run = runService({
      env: { ...env, SWITCHYARD_STORE: `sqlite:${file}`, SWITCHYARD_LOG: 'warn', SWITCHYARD_ADMIN_TOKEN: TOKEN },
      execArgv,
    })
    await killAtRandom(run, async () => hasWritten(file), random)
  }
  const service = started.use(await startService({ folder, log: 'warn', env, execArgv }))
  const toMs = performance.now()
  const system = systemOf(service, { facts, traffic, destinations, started })
  await traffic.more(random.int(20, 100))
  await system.caughtUp()
  const recoveredMs = performance.now() - toMs
  const audit = await auditSystem(system, { faults: [{ fromMs, toMs }], before: { ledger: facts.ledger, accepted: ACCEPTED_BEFORE } })

  const problems = [...audit.problems]
  for (const held of ['failing', 'silent'] as const) {
    const arrived = old.get(facts.destinations[held])
    const missing = OWED_BEFORE.filter((id) => !arrived?.has(id))
    if (missing.length > 0) problems.push(`${held}: messages that were pending in the file have not arrived: ${missing.join()}`)
  }
  const { code, stderr } = await service.stop()
  if (code !== 0) problems.push(`the service ended with ${code}: ${stderr.slice(-1_500)}`)
  if (schemaOf(file) !== MIGRATIONS.length) problems.push(`the file has schema ${schemaOf(file)} instead of ${MIGRATIONS.length}`)
  if (problems.length > 0) problems.push(name, logsOf(system))
  const firstMs = Math.min(...traffic.calls.filter(({ status }) => status === 200).map(({ startMs, ms }) => startMs + ms))
  const longestPauseMs = Math.max(audit.longestPauseMs ?? 0, firstMs - fromMs)
  return { ...audit, faults: 1, longestPauseMs, recoveredMs: [recoveredMs], problems }
}

/** A receiver for a destination of the file. Messages that were pending in the file are recorded in `old`, all others in the tally. */
async function startOldDestination(
  { destinationId: id }: LedgerRow,
  { destinations }: Facts,
  { old, random, started }: { old: Map<string, Set<string>>; random: Random; started: AsyncDisposableStack },
): Promise<TalliedDestination & { receiver: { url: string } }> {
  const tally = new Tally()
  const before = new Set<string>()
  old.set(id, before)
  const isRefusing = id === destinations.refusing
  // It gets one request at a time, and must keep up with the traffic.
  const isSilent = id === destinations.silent
  const isOld = (messageId: string | undefined): boolean => messageId === undefined || messageId.startsWith('m-')
  const idsOf = ({ messages }: Pick<Arrival, 'messages'>): string[] =>
    messages.flatMap(({ messageId }) => (messageId === undefined || isOld(messageId) ? [] : [messageId]))
  const receiver = started.use(
    await startReceiver(() => ({ after: sleep(random.int(0, isSilent ? 5 : 60)), status: isRefusing ? 404 : 200 }), {
      forgets: true,
      answered(arrival) {
        if (arrival.status !== 200) return
        for (const { messageId } of arrival.messages) if (isOld(messageId)) before.add(messageId ?? 'of a deletion')
        for (const messageId of idsOf(arrival)) tally.add(messageId, performance.now())
        tally.notify()
      },
    }),
  )
  const name = Object.entries(destinations).find(([, value]) => value === id)?.[0] ?? id
  return { name, id, tally, receiver, idsOf, expected: () => (isRefusing ? 'failed' : 'delivered'), inFlight: isSilent ? 1 : 50 }
}

/** Gives the destinations in the file the URLs of these receivers, and enables them, as the API of that version would have. */
function pointTo(file: string, { key }: Facts, urls: ReadonlyMap<string, string>): void {
  const box = createSecretBox(key)
  const database = new DatabaseSync(file)
  for (const [id, url] of urls) {
    const { doc: text } = database.prepare('SELECT doc FROM destinations WHERE id = ?').get(id) as { doc: string }
    const doc = JSON.parse(text) as { urls?: string[] }
    const changed = doc.urls === undefined ? { sealedUrls: [box.seal(url, `${id}.urls.0`)] } : { urls: [url] }
    database.prepare('UPDATE destinations SET doc = ? WHERE id = ?').run(JSON.stringify({ ...doc, ...changed, enabled: true }), id)
  }
  database.close()
}

function systemOf(
  service: Service,
  {
    facts,
    traffic,
    destinations,
    started,
  }: { facts: Facts; traffic: System['traffic']; destinations: TalliedDestination[]; started: AsyncDisposableStack },
): System {
  const node = new Node('node 1', service, undefined)
  return {
    store: 'sqlite',
    nodes: [node],
    node: () => node,
    cluster: undefined,
    sourceId: facts.sourceId,
    writeKey: facts.writeKey,
    traffic,
    destinations,
    warehouses: [],
    problems: [],
    urls: () => [service.url],
    api: (path, init) => callControl(service.url, TOKEN, path, init),
    caughtUp: (deadlineMs) => allAccepted(destinations, traffic.acknowledged, deadlineMs),
    loaded: () => Promise.resolve(),
    defer: (end) => started.defer(end),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  }
}

/** Whether a process has begun to change the file. */
function hasWritten(file: string): boolean {
  return (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0
}

function schemaOf(file: string): number {
  const database = new DatabaseSync(file)
  const { user_version: schema } = database.prepare('PRAGMA user_version').get() as { user_version: number }
  database.close()
  return schema
}

const upgrade = injected(onPostgres)

export const UPGRADE: readonly Fault[] = [
  { ...upgrade, round: (options) => (options.store === 'sqlite' ? roundOnSqlite(options) : upgrade.round(options)) },
]
