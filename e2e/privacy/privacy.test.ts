// A source with privacy rules, in a running service: the original values are stored nowhere. A sentinel in a source without rules shows that
// each search would have found them. on-postgresql.test.ts runs this file on PostgreSQL.

import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { gzipSync } from 'node:zlib'
import { ON_POSTGRES } from '../../packages/server/src/store/fixtures/test-store.ts'
import { says, switchyardWith } from '../system/command-line.ts'
import { startReceiver } from '../system/receiver.ts'
import { type Service, startService, TOKEN } from '../system/service.ts'
import { eventually } from '../system/signals.ts'

const RAW = 'Raw-Alice-7f3a@example.com'
const SENTINEL = 'Sent-Inel-9c2b@example.com'
const PRIVACY = [
  { path: 'traits.email', action: 'hash' },
  { path: 'context.traits.email', action: 'drop' },
  { path: 'properties.people.*.email', action: 'mask' },
  // fetch sends plain text, as a browser does, so the address of the sender would be added.
  { path: 'context.ip', action: 'drop' },
  { path: 'userId', action: 'hash' },
  { path: 'previousId', action: 'hash' },
]
const HEX = /^[0-9a-f]{64}$/

interface Source {
  id: string
  writeKeys: [string]
}

const basic = (key: string): Record<string, string> => ({ authorization: `Basic ${btoa(`${key}:`)}` })

/** The forms in which a value could be stored. */
function formsOf(value: string): string[] {
  const bytes = Buffer.from(value)
  return [value, bytes.toString('hex'), bytes.toString('base64').slice(0, -4), encodeURIComponent(value)]
}

const contains = (bytes: Buffer, value: string): boolean => formsOf(value).some((form) => bytes.includes(form))

/** Messages with the value in every place where a rule looks for it. */
function messagesWith(value: string, name: string): object[] {
  return [
    { type: 'identify', messageId: `${name}-1`, userId: value, traits: { email: value, plan: 'pro' } },
    {
      type: 'track',
      messageId: `${name}-2`,
      userId: value,
      event: 'Invited',
      properties: { people: [{ email: value }, { email: value }] },
    },
    { type: 'alias', messageId: `${name}-3`, userId: value, previousId: value },
  ]
}

/** Sends the value in every way: stored, rejected, unparseable, too large, as an image, with an old key. */
async function sendEverywhere({ url }: Service, key: string, value: string, name: string): Promise<void> {
  const post = (body: string | Buffer<ArrayBuffer>, headers = basic(key), path = '/v1/batch'): Promise<Response> =>
    fetch(url + path, { method: 'POST', body, headers })
  const batch = messagesWith(value, name)
  const envelope = { batch, context: { traits: { email: value } } }
  assert.equal((await post(JSON.stringify(envelope))).status, 200)
  // Once more: duplicates are not stored again, but their bytes were read.
  assert.equal((await post(gzipSync(JSON.stringify(envelope)), { ...basic(key), 'content-encoding': 'gzip' })).status, 200)
  const call = { ...messagesWith(value, `${name}-image`)[0], writeKey: key }
  await fetch(`${url}/v1/pixel/identify?data=${encodeURIComponent(btoa(JSON.stringify(call)))}`)
  const rejected = [
    { type: 'track', userId: value, properties: { email: value } },
    { type: 'identify', userId: 7, traits: { email: value } },
  ]
  assert.equal((await post(JSON.stringify({ batch: rejected }))).status, 400)
  assert.equal((await post(JSON.stringify({ batch: [...rejected, { ...batch[0], messageId: `${name}-4` }] }))).status, 200)
  assert.equal((await post(`{"batch":[{"traits":{"email":"${value}"`)).status, 400)
  assert.equal((await post(`{"writeKey":"${key}","traits":{"email":"${value}"`, {})).status, 400)
  assert.equal((await post(JSON.stringify({ batch: { email: value } }))).status, 400)
  assert.equal((await post(JSON.stringify({ batch: [{ email: value, more: 'x'.repeat(40_000) }] }))).status, 400)
  assert.equal((await post(JSON.stringify({ batch: [{ email: value, more: 'x'.repeat(600_000) }] }))).status, 400)
  assert.equal((await post(JSON.stringify(envelope), basic(`${key}-old`))).status, 401)
}

/** Everything that the live view shows, until the end of the test. */
async function watchLive({ url }: Service, signal: AbortSignal): Promise<() => string> {
  const response = await fetch(`${url}/api/live`, { headers: { authorization: `Bearer ${TOKEN}` }, signal })
  let text = ''
  const read = async (): Promise<void> => {
    for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString('utf8')
  }
  void read().catch(() => {})
  return () => text
}

/** The files of the PostgreSQL server, its write-ahead log included; none if this process may not read them. */
async function serverFiles(service: Service): Promise<Buffer[]> {
  const { default: pg } = await import('pg')
  const client = new pg.Client({ connectionString: service.storeEnv['SWITCHYARD_STORE'] })
  await client.connect()
  try {
    await client.query('CHECKPOINT')
    const { rows } = await client.query<{ data_directory: string }>('SHOW data_directory')
    const folder = rows[0]?.data_directory ?? ''
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((file) => file.isFile())
      .map((file) => readFileSync(join(file.parentPath, file.name)))
  } catch (error) {
    if (['EACCES', 'ENOENT'].includes((error as NodeJS.ErrnoException).code ?? '')) return []
    throw error
  } finally {
    await client.end()
  }
}

test('a value that a privacy rule matches is not stored, logged, shown or sent', { timeout: 180_000 }, async (t) => {
  await using receiver = await startReceiver()
  await using service = await startService({ log: 'debug' })
  const create = (name: string, more: object): Promise<Source> =>
    service.api<Source>('/sources', { method: 'POST', body: { name, ...more } })
  const open = await create('open', {})
  const stop = new AbortController()
  t.after(() => stop.abort())
  const live = await watchLive(service, stop.signal)
  // Before any source has rules, so that samples with unknown write keys are kept.
  await sendEverywhere(service, open.writeKeys[0], SENTINEL, 'open')
  await eventually(
    async () => live(),
    (text) => text.includes(SENTINEL) && text.includes('rejected'),
    { what: 'the live view shows the sentinel' },
  )
  const closed = await create('private', { privacy: PRIVACY })
  await service.destination({ urls: [receiver.url], sourceIds: [open.id, closed.id] })
  await service.send(messagesWith(SENTINEL, 'sentinel'), { headers: basic(open.writeKeys[0]) })
  await sendEverywhere(service, closed.writeKeys[0], RAW, 'private')
  // Three messages, the image, and the valid one of the mixed batch.
  const sent = () => receiver.messages().filter(({ messageId }) => !String(messageId).startsWith('sentinel'))
  await receiver.until(() => sent().length === 5 && receiver.messages().some(({ messageId }) => messageId === 'sentinel-3'))
  await service.settled()

  const identified = sent().find(({ messageId }) => messageId === 'private-1') as unknown as {
    userId: string
    traits: object
    context: object
  }
  assert.match(identified.userId, HEX)
  assert.deepEqual(identified.traits, { email: identified.userId, plan: 'pro' })
  assert.deepEqual(identified.context, { traits: {} })
  const alias = sent().find(({ messageId }) => messageId === 'private-3') as unknown as Record<string, string>
  assert.deepEqual([alias['User ID'], alias['Previous ID']], [identified.userId, identified.userId])

  const rejections = await eventually(
    () => service.api<{ data: { sourceId: string | null; code: string; lastSample: string }[] }>('/rejections'),
    ({ data }) => data.filter(({ sourceId }) => sourceId === closed.id).length >= 5,
    { what: 'the rejections are stored' },
  )
  const read = async (path: string): Promise<string> => JSON.stringify(await service.api(path))
  const { data: events } = await service.api<{ data: { id: string }[] }>('/events')
  const whileRunning = await service.stored()
  const places: [place: string, bytes: Buffer][] = [
    ['rejections', Buffer.from(JSON.stringify(rejections))],
    ['messages', Buffer.from(await read('/messages?limit=100'))],
    ['event catalogue', Buffer.from(JSON.stringify(await Promise.all(events.map(({ id }) => read(`/events/${id}`)))))],
    ['live view', Buffer.from(live())],
    [
      'webhooks',
      Buffer.concat(receiver.arrivals.flatMap(({ bytes, path, headers }) => [bytes, Buffer.from(path + JSON.stringify(headers))])),
    ],
    ...whileRunning.map(([place, bytes]): [string, Buffer] => [`${place}, while it ran`, bytes]),
  ]
  for (const [place, bytes] of places) assert.ok(!contains(bytes, RAW), `the value is in ${place}`)
  for (const place of ['rejections', 'messages', 'event catalogue', 'live view', 'webhooks'])
    assert.ok(contains(places.find(([name]) => name === place)?.[1] ?? Buffer.alloc(0), SENTINEL), `the sentinel is in ${place}`)
  assert.ok(whileRunning.some(([, bytes]) => contains(bytes, SENTINEL)))
  const files = ON_POSTGRES ? await serverFiles(service) : []
  if (files.length > 0) assert.ok(files.some((bytes) => contains(bytes, SENTINEL)))
  assert.ok(!files.some((bytes) => contains(bytes, RAW)), 'the value is in a file of the PostgreSQL server')

  stop.abort()
  assert.equal((await service.stop()).code, 0)
  assert.match(service.stderr(), /messages were rejected/)
  assert.ok(!contains(Buffer.from(service.stderr() + service.stdout()), RAW), 'the value is in the log')
  for (const [place, bytes] of await service.stored()) assert.ok(!contains(bytes, RAW), `the value is in ${place}, after the end`)
})

test('equal values stay equal after an export, a rotation of the key and a restart, and the hash cannot be computed from the value alone', async () => {
  await using service = await startService()
  const privacy = [{ path: 'traits.email', action: 'hash' }]
  const source = await service.api<Source>('/sources', { method: 'POST', body: { name: 'private', privacy } })
  const preview = async (of: Service): Promise<string> => {
    const body = { message: { type: 'identify', userId: 'u', traits: { email: RAW } } }
    const answer = await of.api<{ data: [{ after: { traits: { email: string } } }] }>(`/sources/${source.id}/privacy/preview`, {
      method: 'POST',
      body,
    })
    return answer.data[0].after.traits.email
  }
  const hash = await preview(service)
  assert.match(hash, HEX)
  assert.notEqual(hash, createHmac('sha256', source.id).update(RAW).digest('hex'))
  await service.send([{ type: 'identify', userId: 'u', messageId: 'm', traits: { email: RAW } }], { headers: basic(source.writeKeys[0]) })
  const stored = await service.api<{ message: { traits: { email: string } } }>('/messages/m')
  assert.equal(stored.message.traits.email, hash)
  const file = join(service.folder, 'configuration.yaml')
  await says(service, 'export', file)
  await says(service, 'apply', file, '--dry-run')
  await service.api(`/sources/${source.id}`, { method: 'PATCH', body: { privacy: null } })
  await says(service, 'apply', file)
  assert.deepEqual((await service.api<{ privacy: object[] }>(`/sources/${source.id}`)).privacy, privacy)
  await service.stop()
  // On PostgreSQL the key of these tests is in the environment.
  if (!ON_POSTGRES) {
    const rotated = await switchyardWith(service.storeEnv, null, 'rotate-key', '--end-tokens')
    assert.equal(rotated.code, 0, rotated.stderr)
  }
  const next = await service.restart()
  assert.equal(await preview(next), hash)
})
