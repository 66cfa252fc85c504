// `switchyard migrate-store` migrates a SQLite installation that contains some of everything to PostgreSQL. Afterwards the API shows the
// same data, pending deliveries are delivered, and unfinished work resumes.

import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { generateSecret, verifyWebhook } from '@switchyard/webhook'
import { SQLITE_ONLY } from '../../packages/server/src/store/fixtures/test-store.ts'
import { createDatabase, type TestDatabase } from '../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { movedRowId } from '../../packages/server/src/store/postgres/tables/ids.ts'
import { type Result, startSwitchyard } from '../system/command-line.ts'
import { SECRET_KEY, startNode } from '../system/nodes-in-process.ts'
import { type Receiver, startReceiver } from '../system/receiver.ts'
import { callControl, runService, type Service, startService, track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import type { Reachable } from '../system/wiring.ts'

const SHARED_SECRET = 'SECRET-shared-é'
const SIGNING_SECRET = generateSecret()

/** Keeps the PostgreSQL server that the tests share running. */
let serverUser: TestDatabase
before(async () => {
  serverUser = await createDatabase()
})
after(() => serverUser.drop())

interface Paged {
  data: { id: string }[]
  next: string | null
}

async function all(service: Reachable, path: string): Promise<{ id: string; [field: string]: unknown }[]> {
  const data: { id: string }[] = []
  for (let cursor: string | null = null; ; ) {
    const page: Paged = await service.api(
      `${path}${path.includes('?') ? '&' : '?'}limit=50${cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
    )
    data.push(...page.data)
    if (page.next === null) return data
    cursor = page.next
  }
}

/** Everything that the API returns. The last use of tokens is left out, because reading it is a use. */
async function everything(service: Reachable): Promise<Record<string, unknown>> {
  const [messages, deliveries, deletions] = [
    await all(service, '/messages'),
    await all(service, '/deliveries'),
    await all(service, '/deletions'),
  ]
  const each = (path: string, things: readonly { id: string }[]): Promise<unknown[]> =>
    Promise.all(things.map(({ id }) => service.api(`${path}/${id}`)))
  const found: Record<string, unknown> = {
    ledger: await service.api('/ledger'),
    recount: await service.api('/ledger?recount=true'),
    sources: await all(service, '/sources'),
    destinations: await all(service, '/destinations'),
    apps: await all(service, '/oauth-apps'),
    tokens: (await all(service, '/tokens')).map((token) => Object.assign(token, { lastUsedAt: null })),
    suppressions: await all(service, '/suppressions'),
    totals: await service.api('/stats/totals'),
    rejections: await service.api('/rejections'),
    audit: (await all(service, '/audit')).filter(({ action }) => action !== 'store.migrate'),
    replays: await all(service, '/replays'),
    messages,
    stories: await each('/messages', messages),
    deliveries,
    attempts: await each('/deliveries', deliveries),
    deletions,
    deletionDetails: await each('/deletions', deletions),
    targets: await Promise.all(deletions.map(({ id }) => all(service, `/deletions/${id}/targets`))),
  }
  // The time of the next attempt depends on the process's clock and can differ by a millisecond. The signature covers the delivery id,
  // which changes.
  return JSON.parse(JSON.stringify(found), (key, value: unknown) => {
    if (key === 'webhook-signature') return 'v1,…'
    const { nextAttemptAt, what } = (value ?? {}) as { nextAttemptAt?: unknown; what?: unknown }
    if (typeof nextAttemptAt === 'string') return { ...(value as object), nextAttemptAt: nextAttemptAt.slice(0, 17) }
    return what === 'waiting' ? { ...(value as object), at: null } : value
  }) as Record<string, unknown>
}

/** Replaces row ids by those after the migration. */
function moved<T>(value: T): T {
  const text = JSON.stringify(value).replaceAll(
    /(?<![\w-])(\d{16})(-\d+)?(?![\w-])/g,
    (_, row: string, index = '') => `${movedRowId(row)}${index}`,
  )
  return JSON.parse(text) as T
}

function migrateStore(file: string, url: string, ...args: string[]): Promise<Result> {
  return startSwitchyard(null, ['migrate-store', '--from', `sqlite:${file}`, ...args], {
    env: { SWITCHYARD_STORE: url, SWITCHYARD_SECRET_KEY: SECRET_KEY },
  }).ended
}

interface Filled {
  good: string
  failing: string
  deleted: string
  token: string
  /** A paused replay. */
  job: string
}

const REPLAYED = 20

/** Creates some of everything, through the public APIs. */
async function fill(service: Service, good: Receiver, failing: Receiver): Promise<Filled> {
  const settings = { sharedSecret: SHARED_SECRET, signingSecrets: [SIGNING_SECRET] }
  const ids: Filled = {
    good: await service.destination({ urls: [`${good.url}a`, `${good.url}b`], name: 'good', ...settings }),
    failing: await service.destination({ urls: [failing.url], name: 'failing' }),
    deleted: await service.destination({ urls: [good.url], name: 'deleted', sharedSecret: 'SECRET-gone' }),
    token: '',
    job: '',
  }
  await service.destination({ urls: [good.url], name: 'batches', batch: { size: 5, lingerMs: 50 } })
  await service.destination({ urls: [good.url], name: 'paused', sourceIds: [], paused: true })
  failing.answer = ({ messages }) => ({ status: messages.some(({ messageId }) => messageId?.startsWith('refused')) ? 404 : 500 })
  // First, because repeated failures make a destination back off.
  await service.send([track('refused-1'), track('refused-2')])
  await eventually(
    () => service.deliveries(`destinationId=${ids.failing}&state=failed`),
    ({ length }) => length === 2,
  )
  for (let nth = 0; nth < 8; nth++) {
    await service.send(
      Array.from({ length: 3 }, (_, at) => track(`m-${nth}-${at}`, { userId: `u-${at}` })),
      {
        headers: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
      },
    )
  }
  // Only duplicates, twice; a new message and a duplicate; an invalid message; text that PostgreSQL cannot store.
  for (let nth = 0; nth < 2; nth++) await service.send([track('m-1-0'), track('m-1-1')])
  await service.send([track('m-1-1'), track('new-1'), track('new-1')])
  await service.send([{ type: 'track', messageId: 'wrong', userId: 'u', event: '' }, track('nul', { userId: 'a\0b', event: '\ud800' })])
  await service.post('/v1/track', '{"no', { 'content-type': 'application/json' })
  await service.api(`/destinations/${ids.deleted}`, { method: 'DELETE' })
  const deletedSource = await service.api<{ id: string; writeKeys: string[] }>('/sources', {
    method: 'POST',
    body: { name: 'deleted source' },
  })
  await service.api(`/sources/${deletedSource.id}`, { method: 'DELETE' })

  const [refused] = await service.deliveries(`destinationId=${ids.failing}&state=failed`)
  await service.api(`/deliveries/${refused?.id}/replay`, { method: 'POST' })
  const [delivered] = await service.deliveries(`destinationId=${ids.good}&state=delivered`)
  await service.api(`/deliveries/${delivered?.id}/replay`, { method: 'POST' })
  await service.api('/replays', { method: 'POST', body: { destinationId: ids.failing, states: ['failed'] } })
  // An unfinished replay, of so many that it is paused before it ends, on a busy machine too.
  const replayable = () => service.deliveries(`destinationId=${ids.good}&state=delivered`)
  const some = (await eventually(replayable, ({ length }) => length >= REPLAYED)).slice(-REPLAYED)
  const body = { deliveryIds: some.map(({ id }) => id), ratePerSecond: 1 }
  ids.job = (await service.api<{ id: string }>('/replays', { method: 'POST', body })).id
  await eventually(
    () => service.api<{ done: number }>(`/replays/${ids.job}`),
    ({ done }) => done > 0,
  )
  await service.api(`/replays/${ids.job}`, { method: 'PATCH', body: { state: 'paused' } })

  await service.api('/deletions', { method: 'POST', body: { userIds: ['u-2'], suppress: true } })
  await service.api('/deletions', { method: 'POST', body: { userIds: ['a\0b'], suppress: false } })
  await service.api('/suppressions', { method: 'POST', body: { userIds: ['nul\0user', 'v'] } })
  await service.send([track('kept out', { userId: 'v' })])
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const { id: app } = await service.api<{ id: string }>('/oauth-apps', {
    method: 'POST',
    body: { name: 'Backend', sourceIds: [service.sourceId] },
  })
  await service.api(`/oauth-apps/${app}/keys`, {
    method: 'POST',
    body: { publicKeyPem: publicKey.export({ type: 'spki', format: 'pem' }) },
  })
  ids.token = (await service.api<{ token: string }>('/tokens', { method: 'POST', body: { name: 'ops', role: 'viewer' } })).token
  await callControl(service.url, ids.token, '/sources')
  return ids
}

/** Waits until nothing changes any more: the failing destination is paused, and everything else is delivered. */
async function still(service: Service, { failing }: Filled): Promise<void> {
  await service.api(`/destinations/${failing}`, { method: 'PATCH', body: { enabled: false } })
  await eventually(
    () => service.ledger(),
    (ledger) => ledger.every(({ destinationId, pending }) => destinationId === failing || pending === 0),
    { what: 'everything else delivered' },
  )
}

test('all data is there after the migration, and pending deliveries are delivered', { skip: SQLITE_ONLY }, async () => {
  const database = await createDatabase({ isEmpty: true })
  await using good = await startReceiver()
  await using failing = await startReceiver()
  await using service = await startService({ log: 'error' })
  try {
    const ids = await fill(service, good, failing)
    await still(service, ids)
    const before = await everything(service)
    const pending = (await service.deliveries('state=pending')).map(({ messageId }) => messageId)
    assert.ok(pending.length >= 20, 'some deliveries are still pending')
    const arrivedBefore = good.arrivals.length

    const busy = await migrateStore(service.file, database.url)
    assert.equal(busy.code, 1, busy.stdout + busy.stderr)
    assert.match(busy.stderr, /in use by another Switchyard process/)
    await service.stop()

    const dry = await migrateStore(service.file, database.url, '--dry-run', '--json')
    assert.equal(dry.code, 0, dry.stderr)
    const counted = JSON.parse(dry.stdout) as { rows: number; tables: Record<string, number> }
    assert.ok((counted.tables['segments'] ?? 0) > 10)
    assert.deepEqual(await database.query("SELECT to_regnamespace('switchyard')::text AS found"), [{ found: null }])

    const done = await migrateStore(service.file, database.url)
    assert.equal(done.code, 0, done.stdout + done.stderr)
    assert.match(
      done.stdout,
      new RegExp(`^Migrated ${counted.rows} rows \\(\\d+ messages\\) to 127\\.0\\.0\\.1:\\d+/\\w+, at \\d+ rows per second\\.$`, 'm'),
    )
    assert.match(
      done.stdout,
      /the row counts of all tables, and the ledgers of \d+ destinations \(stored and recounted\), are the same in both stores/,
    )
    for (const text of [done.stdout, done.stderr]) assert.doesNotMatch(text, /switchyard-test|SECRET-/)
    const bytes = (await database.bytes()).toString('latin1')
    for (const secret of [SIGNING_SECRET, 'SECRET-shared', 'SECRET-gone']) assert.ok(!bytes.includes(secret), secret)

    const refused = await runService({ env: { SWITCHYARD_STORE: `sqlite:${service.file}`, SWITCHYARD_PORT: '0' } }).ended
    assert.notEqual(refused.code, 0)
    assert.match(refused.stderr + refused.stdout, /was migrated to PostgreSQL at 127\.0\.0\.1:\d+.*migrate-store --from sqlite:.* --undo/)
    const again = await migrateStore(service.file, database.url)
    assert.equal(again.code, 0, again.stderr)
    assert.match(again.stdout, /was already migrated to/)

    const node = await startNode(database.url)
    try {
      const after = await everything(node)
      const { audit, ...rest } = before as { audit: { id: string; subject: string }[] }
      for (const [name, value] of Object.entries(moved(rest))) assert.deepEqual(after[name], value, name)
      // The audit log keeps the ids of the time.
      assert.deepEqual(
        after['audit'],
        audit.map((entry) => Object.assign(entry, { id: moved(entry.id), subject: moved(entry.subject) })),
      )
      const { data: tokens } = await node.api<{ data: { name: string; lastUsedAt: string | null }[] }>('/tokens')
      assert.ok(tokens.find(({ name }) => name === 'ops')?.lastUsedAt, 'the time of its last use is migrated')
      await callControl(node.url, ids.token, '/sources')
      await assert.rejects(callControl(node.url, ids.token, '/sources', { method: 'POST', body: { name: 'no' } }), /: 403 /)

      // Lookups by old ids still work.
      const [old] = before['deliveries'] as { id: string }[]
      assert.equal(
        (await node.api<{ id: string }>(`/deliveries/${old?.id}`)).id,
        movedRowId((old?.id ?? '').split('-')[0] as string) + (old?.id ?? '').slice(16),
      )
      const replayed = (before['deliveries'] as { id: string; state: string; destinationId: string }[]).find(
        ({ state, destinationId }) => state === 'delivered' && destinationId === ids.good,
      )
      const { id: replayId } = await node.api<{ id: string }>(`/deliveries/${replayed?.id}/replay`, { method: 'POST' })
      assert.equal((await node.api<{ replayOf: string }>(`/deliveries/${replayId}`)).replayOf, moved(replayed?.id))
      const [message] = before['messages'] as { id: string; messageId: string }[]
      assert.equal((await node.api<{ messageId: string }>(`/messages/${message?.id}`)).messageId, message?.messageId)

      // Earlier messages are still recognised as duplicates, and suppressed users are still suppressed.
      const totals = async () =>
        (await node.api<{ data: { sourceId: string; duplicates: number; suppressed: number }[] }>('/stats/totals')).data.find(
          ({ sourceId }) => sourceId === service.sourceId,
        )
      const counts = await totals()
      const send = (messages: object[]): Promise<Response> =>
        fetch(`${node.url}/v1/batch`, {
          method: 'POST',
          headers: { authorization: `Basic ${btoa(`${service.writeKey}:`)}`, 'content-type': 'application/json' },
          body: JSON.stringify({ batch: messages }),
        })
      assert.equal((await send([track('m-3-1'), track('after the migration'), track('kept out too', { userId: 'v' })])).status, 200)
      await good.until(() => good.byMessageId.has('after the migration'))
      await eventually(
        totals,
        (now) => now?.duplicates === (counts?.duplicates ?? 0) + 1 && now.suppressed === (counts?.suppressed ?? 0) + 1,
      )

      // Secrets still sign requests.
      const [arrival] = good.byMessageId.get('after the migration')?.filter(({ path }) => path === '/a') ?? []
      assert.equal(
        arrival?.headers['x-signature'],
        createHmac('sha1', SHARED_SECRET)
          .update(arrival?.bytes ?? '')
          .digest('hex'),
      )
      assert.ok(verifyWebhook({ body: arrival?.bytes ?? '', headers: arrival?.headers ?? {} }, { signingSecrets: [SIGNING_SECRET] }).ok)

      // Pending deliveries arrive, and the replay resumes.
      failing.answer = () => undefined
      await node.api(`/destinations/${ids.failing}`, { method: 'PATCH', body: { enabled: true } })
      await failing.until(() =>
        pending.every(
          (id) =>
            id === null ||
            failing.arrivals.some(({ status, messages }) => status === 200 && messages.some(({ messageId }) => messageId === id)),
        ),
      )
      const nothingPending = () =>
        eventually(
          async () => (await node.api<{ data: { pending: number }[] }>('/ledger')).data,
          (rows) => rows.every((row) => row.pending === 0),
        )
      await nothingPending()
      assert.ok((await node.api<{ done: number }>(`/replays/${ids.job}`)).done < REPLAYED)
      await node.api(`/replays/${ids.job}`, { method: 'PATCH', body: { state: 'running', ratePerSecond: null } })
      await eventually(
        () => all(node, '/replays'),
        (jobs) => jobs.every(({ state }) => state === 'finished'),
      )
      // A job finishes when it has queued all deliveries; they are sent after that.
      await nothingPending()
      const recount = await node.api('/ledger?recount=true')
      assert.deepEqual(recount, await node.api('/ledger'))
      assert.ok(good.arrivals.length > arrivedBefore)
      const twice = [...good.byMessageId].filter(([id, arrivals]) =>
        arrivals.some(({ number, headers }) => number > arrivedBefore && id !== 'after the migration' && headers['x-replay'] === undefined),
      )
      assert.deepEqual(
        twice.map(([id]) => id),
        [],
        'nothing that was delivered before the migration is sent again',
      )
    } finally {
      await node.close()
    }
  } finally {
    await database.drop()
  }
})

test('a database that is not empty, unreachable or in use is rejected with an error that does not contain the password', {
  skip: SQLITE_ONLY,
}, async () => {
  const database = await createDatabase({ isEmpty: true })
  await using service = await startService({ log: 'error' })
  try {
    await service.stop()
    const node = await startNode(database.url)
    const busy = await migrateStore(service.file, database.url)
    assert.match(busy.stderr, /Nodes are running on this database/)
    await node.close()
    const full = await migrateStore(service.file, database.url)
    assert.match(full.stderr, /The database already contains a Switchyard store\. .*DROP SCHEMA switchyard CASCADE/)
    assert.deepEqual([busy.code, full.code], [1, 1])
    // The service can still start on the file.
    const next = await service.restart()
    await next.stop()

    const usage = async (...args: string[]): Promise<string> => {
      const { code, stderr } = await startSwitchyard(null, ['migrate-store', ...args], { env: { SWITCHYARD_SECRET_KEY: SECRET_KEY } }).ended
      assert.equal(code, 2, stderr)
      return stderr
    }
    const target = ['--from', `sqlite:${service.file}`, '--to', database.url]
    const short = await startSwitchyard(null, ['migrate-store', ...target], { env: { SWITCHYARD_SECRET_KEY: 'short' } }).ended
    assert.equal(short.code, 2)
    assert.match(short.stderr, /^SWITCHYARD_SECRET_KEY has 5 characters, and needs at least 16\./)
    assert.match(await usage('--from', `sqlite:${service.file}`), /The target database is missing/)
    assert.match(await usage('--from', `sqlite:${service.file}`, '--to', 'sqlite:other.db'), /--to must be a PostgreSQL address/)
    assert.match(await usage('--from', 'postgres://a:SECRET@b/c', '--to', 'postgres://a:SECRET@b/c'), /--from must be a SQLite store/)
    assert.doesNotMatch(await usage('--from', 'x:SECRET', '--to', 'postgres://a:SECRET@b/c'), /SECRET/)
    const missing = await migrateStore(`${service.file}.none`, database.url)
    assert.deepEqual([missing.code, /There is no store at/.test(missing.stderr)], [1, true])
    const keyless = await startSwitchyard(null, ['migrate-store', '--from', `sqlite:${service.file}`, '--to', database.url]).ended
    assert.match(keyless.stderr, /SWITCHYARD_SECRET_KEY is required/)
  } finally {
    await database.drop()
  }
})

test('--keep-usable leaves no mark, and --undo removes it', { skip: SQLITE_ONLY }, async () => {
  const [one, two] = [await createDatabase({ isEmpty: true }), await createDatabase({ isEmpty: true })]
  await using service = await startService({ log: 'error' })
  try {
    await service.stop()
    const kept = await migrateStore(service.file, one.url, '--keep-usable')
    assert.equal(kept.code, 0, kept.stderr)
    await (await service.restart()).stop()
    assert.equal((await migrateStore(service.file, two.url)).code, 0)
    const undone = await migrateStore(service.file, two.url, '--undo', '--json')
    assert.deepEqual(JSON.parse(undone.stdout), { from: service.file, undone: true })
    await (await service.restart()).stop()
    const again = await migrateStore(service.file, two.url)
    assert.match(again.stderr, /already migrated to that database/)
  } finally {
    await one.drop()
    await two.drop()
  }
})

test('a file of an earlier version is migrated, and its plain-text credentials of receivers are stored encrypted', async (t) => {
  const fixture = join(import.meta.dirname, 'fixtures', 'schema-2-credentials')
  const facts = JSON.parse(readFileSync(`${fixture}.json`, 'utf8')) as {
    key: string
    credentials: string[]
    destinations: { good: string }
  }
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-move-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'switchyard.db')
  writeFileSync(file, gunzipSync(readFileSync(`${fixture}.db.gz`)))
  writeFileSync(`${file}.key`, facts.key)
  const database = await createDatabase()
  t.after(() => database.drop())
  const result = await migrateStore(file, database.url)
  assert.equal(result.code, 0, result.stderr)
  const bytes = await database.bytes()
  for (const text of facts.credentials) assert.ok(!bytes.includes(text), text)
  const node = await startNode(database.url)
  t.after(() => node.close())
  const { urls, headers } = await node.api<{ urls: string[]; headers: object }>(`/destinations/${facts.destinations.good}`)
  for (const text of facts.credentials) assert.ok(JSON.stringify([urls, headers]).includes(text), 'the node can decrypt it')
})
