import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { generateSecret, signStandardWebhook } from '@switchyard/webhook'
import { startInProcess } from '../e2e/system/in-process.ts'
import { eventually } from '../e2e/system/signals.ts'
import { wire } from '../e2e/system/wiring.ts'
import { PostgresServer } from '../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { type RunningExample, runExample, startExample } from './testing/run-example.ts'

const SECRET = generateSecret()

// Its own server, because the tests stop and restart it.
const [service, postgres] = await Promise.all([startInProcess(), PostgresServer.start()])
after(() => Promise.all([service[Symbol.asyncDispose](), postgres.dispose()]))

async function startSink(t: TestContext): Promise<RunningExample & { url: string }> {
  const env = { PORT: '0', DATABASE_URL: postgres.url(), SWITCHYARD_SIGNING_SECRET: SECRET }
  const sink = startExample(t, 'postgres-sink.ts', { env })
  const [, url = ''] = await sink.waitFor(/Server listening at (http:[^"]+)/)
  return { ...sink, url }
}

async function query<T>(text: string): Promise<T[]> {
  const client = await postgres.client()
  try {
    return (await client.query(text)).rows as T[]
  } finally {
    await client.end()
  }
}

const rowsOf = async (prefix: string): Promise<number> =>
  (await query<{ count: number }>(`SELECT count(*)::int FROM tracks WHERE message_id LIKE '${prefix}-%'`))[0]?.count ?? 0

/** Posts as the service would. */
function post(url: string, messages: object | object[]): Promise<Response> {
  const body = JSON.stringify(messages)
  const signed = signStandardWebhook({ id: 'msg_1', timestampSeconds: Math.floor(Date.now() / 1_000), body }, SECRET)
  return fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json', ...signed } })
}

const track = (messageId: string, fields: object = {}): object => ({ type: 'track', messageId, userId: 'u-1', event: 'Tested', ...fields })
const received = { timestamp: '2026-01-02T03:04:05.678Z', receivedAt: '2026-01-02T03:04:05.678Z' }

test('a request that arrives while the database is down gets 503, and its retry is stored once when the database is back', async (t) => {
  await postgres.kill()
  // Started while the database is down: it answers 503, and needs no restart.
  const sink = await startSink(t)
  const wiring = await wire(service, { urls: [sink.url], signingSecrets: [SECRET], batch: { size: 20, lingerMs: 20 } })
  const send = (from: number): Promise<void> => wiring.send(Array.from({ length: 50 }, (_, index) => track(`away-${from + index}`)))

  await send(0)
  const refused = await wiring.attempted('away-0', 1)
  assert.deepEqual([refused.state, refused.attempts[0]?.status], ['pending', 503])
  await postgres.run()
  await service.later(15_000)
  await wiring.settled('away-49')
  await eventually(
    () => rowsOf('away'),
    (count) => count === 50,
  )

  // The database stops while the sink is connected.
  await postgres.kill()
  await send(50)
  assert.equal((await wiring.attempted('away-50', 1)).attempts[0]?.status, 503)
  await postgres.run()
  await service.later(15_000)
  await eventually(
    () => rowsOf('away'),
    (count) => count === 100,
  )
  for (const id of ['away-0', 'away-99']) assert.equal((await wiring.settled(id)).state, 'delivered')
  sink.child.kill('SIGTERM')
  assert.equal((await sink.finished).code, 0)
})

test('tracks and identifies of one batch are stored in their tables, whatever text they contain; a delete removes them', async (t) => {
  const sink = await startSink(t)
  const wiring = await wire(service, { urls: [sink.url], signingSecrets: [SECRET], batch: { size: 4, lingerMs: 50 } })
  const odd = 'a\0b \ud800 c\\u0000 \u2028 🚃 "'
  await wiring.send([
    track('kinds-1', { properties: { total: 12.5, [odd]: odd }, timestamp: '2020-01-02T03:04:05.678Z', context: { ip: '10.0.0.1' } }),
    { type: 'identify', messageId: 'kinds-2', anonymousId: 'a-1', userId: 'u-2', traits: { plan: 'pro' } },
    { type: 'page', messageId: 'kinds-3', userId: 'u-1', name: 'Home' },
    track('kinds-4', { userId: 'u-2', event: odd, timestamp: '2021-01-02T03:04:05.678Z' }),
  ])
  assert.equal((await wiring.settled('kinds-1')).state, 'delivered')
  const kept = 'a\ufffdb \ufffd c\\u0000 \u2028 🚃 "'
  assert.deepEqual(
    await query(
      `SELECT message_id, user_id, event, properties, timestamp, context->>'ip' AS ip FROM tracks
       WHERE message_id LIKE 'kinds-%' ORDER BY message_id`,
    ),
    [
      {
        message_id: 'kinds-1',
        user_id: 'u-1',
        event: 'Tested',
        properties: { total: 12.5, [kept]: kept },
        timestamp: new Date('2020-01-02T03:04:05.678Z'),
        ip: '10.0.0.1',
      },
      {
        message_id: 'kinds-4',
        user_id: 'u-2',
        event: kept,
        properties: {},
        timestamp: new Date('2021-01-02T03:04:05.678Z'),
        ip: null,
      },
    ],
  )
  assert.deepEqual(await query('SELECT message_id, user_id, anonymous_id, traits FROM identifies'), [
    { message_id: 'kinds-2', user_id: 'u-2', anonymous_id: 'a-1', traits: { plan: 'pro' } },
  ])

  await service.api('/deletions', { method: 'POST', body: { userIds: ['u-2'], sourceIds: [wiring.sourceId] } })
  await eventually(
    () => query('SELECT message_id FROM identifies UNION ALL SELECT message_id FROM tracks WHERE user_id = $$u-2$$'),
    (rows) => rows.length === 0,
    { what: 'the user is deleted' },
  )
  assert.equal(await rowsOf('kinds'), 1)
})

test('a repeated batch changes nothing, and one that cannot be stored is rejected as a whole', async (t) => {
  const { url } = await startSink(t)
  const [one, two, three] = ['again-1', 'again-2', 'again-3'].map((id) => track(id, received)) as [object, object, object]
  const batch = [one, two, one]
  assert.equal((await post(url, batch)).status, 200)
  // Concurrently, and in another order.
  const answers = await Promise.all([post(url, batch), post(url, [two, one]), post(url, [three, two, one])])
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200],
  )
  assert.equal(await rowsOf('again'), 3)
  assert.equal((await post(url, [track('bad-1', received), track('bad-2', { ...received, timestamp: 'not a time' })])).status, 422)
  assert.equal((await post(url, [track('bad-1', received), track('bad-2')])).status, 422)
  assert.equal(await rowsOf('bad'), 0)
  assert.equal((await fetch(url, { method: 'POST', body: JSON.stringify(batch) })).status, 401)
})

test('it answers in time although the database does not answer', async (t) => {
  const { url } = await startSink(t)
  assert.equal((await post(url, track('locked-1', received))).status, 200)
  const client = await postgres.client()
  await client.query('BEGIN; LOCK TABLE tracks')
  const startedMs = performance.now()
  assert.equal((await post(url, track('locked-2', received))).status, 503)
  assert.ok(performance.now() - startedMs < 4_500)
  await client.end()
  assert.equal((await post(url, track('locked-2', received))).status, 200)
  assert.equal(await rowsOf('locked'), 2)
})

test('it does not start without a database or a secret', async (t) => {
  const [neither, noSecret] = await Promise.all([
    runExample(t, 'postgres-sink.ts'),
    runExample(t, 'postgres-sink.ts', { env: { DATABASE_URL: 'postgres://127.0.0.1' } }),
  ])
  assert.deepEqual([neither.code, noSecret.code], [2, 2])
  assert.match(neither.stderr, /^Set DATABASE_URL/)
  assert.match(noSecret.stderr, /^SWITCHYARD_SIGNING_SECRET must/)
})
