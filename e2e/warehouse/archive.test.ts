// Messages from the archive of a lake are sent to another destination: paced, across a kill of the service, and without users who must not be in it.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type ReceivedMessage, startReceiver } from '../system/receiver.ts'
import { type Service, track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { addLake, loaded, startWithLake } from './system.ts'

interface Job {
  id: string
  state: 'running' | 'paused' | 'finished' | 'cancelled'
  total: number
  done: number
  replayed: number
  skipped: number
  skippedReasons: Record<string, number>
  outcomes: Record<string, number>
  reachedAt: string | null
  problem: { code: string; message: string } | null
  archive: object | null
}

const ALWAYS = { after: '2020-01-01T00:00:00Z', before: '2100-01-01T00:00:00Z' }
const replay = (service: Service, body: object): Promise<Job> => service.api('/replays', { method: 'POST', body })
const jobOf = (service: Service, id: string): Promise<Job> => service.api(`/replays/${id}`)
const change = (service: Service, id: string, body: object): Promise<Job> => service.api(`/replays/${id}`, { method: 'PATCH', body })
const until = (service: Service, id: string, isIt: (job: Job) => boolean, what: string): Promise<Job> =>
  eventually(() => jobOf(service, id), isIt, { what, deadlineMs: 300_000 })

const refusal = async (asked: Promise<unknown>): Promise<string> =>
  asked.then(
    () => 'done',
    (error: unknown) => String(error),
  )

/** One message of each type, and some more. */
function messages(count: number): object[] {
  const others = [
    { type: 'identify', messageId: 'identify', userId: 'u', traits: { plan: 'pro' } },
    { type: 'page', messageId: 'page', anonymousId: 'a', name: 'Home', timestamp: '2026-01-01T00:00:00.000Z' },
    { type: 'screen', messageId: 'screen', anonymousId: 'a', name: 'Start' },
    { type: 'group', messageId: 'group', userId: 'u', groupId: 'g' },
    { type: 'alias', messageId: 'alias', userId: 'new', previousId: 'old' },
  ]
  const tracks = Array.from({ length: count }, (_, at) =>
    track(`m${at}`, { event: at % 10 === 0 ? 'Rare' : 'Common', properties: { n: at } }),
  )
  return [...others, ...tracks]
}

function byId(messages: readonly ReceivedMessage[]): Map<string, ReceivedMessage> {
  return new Map(messages.map((message) => [String(message.messageId), message]))
}

test('the messages of an archive reach a new destination as they would have been sent first, also if the service is killed meanwhile', async () => {
  await using live = await startReceiver()
  await using receiver = await startReceiver()
  await using system = await startWithLake()
  let { service } = system
  const lakeId = await addLake(service, system.lake)
  await service.destination({ urls: [live.url], name: 'Live' })
  const sent = messages(400)
  for (let at = 0; at < sent.length; at += 50) await service.send(sent.slice(at, at + 50))
  await loaded(service, sent.length * 2)
  const filter = { events: { deny: ['Rare'] } }
  const destinationId = await service.destination({ urls: [receiver.url], name: 'New', filter })

  const counted = await service.api<{ total: number }>('/replays', {
    method: 'POST',
    body: { destinationId, archive: { destinationId: lakeId, ...ALWAYS }, dryRun: true },
  })
  assert.equal(counted.total, sent.length)
  const job = await replay(service, { destinationId, archive: { destinationId: lakeId, ...ALWAYS }, ratePerSecond: 100 })
  assert.equal(job.total, sent.length)
  await until(service, job.id, ({ replayed }) => replayed > 60, 'the first messages')
  service.kill('SIGKILL')
  service = await service.restart()
  const finished = await until(
    service,
    job.id,
    ({ state, outcomes }) => state === 'finished' && outcomes['pending'] === 0,
    'the end of the job',
  )
  assert.equal(finished.problem, null)
  assert.deepEqual([finished.replayed, finished.skippedReasons], [sent.length - 40, { filtered: 40 }])
  assert.equal(finished.outcomes['delivered'], finished.replayed)
  assert.equal(finished.total, sent.length)
  const row = (await service.ledger({ recount: true })).find((each) => each.destinationId === destinationId)
  assert.deepEqual([row?.owed, row?.delivered], [finished.replayed, finished.replayed])
  const first = byId(live.arrivals.flatMap((arrival) => arrival.messages))
  const again = byId(receiver.arrivals.flatMap((arrival) => arrival.messages))
  assert.equal(again.size, finished.replayed)
  for (const [id, message] of again) assert.deepEqual(message, first.get(id), id)
  assert.ok(receiver.arrivals.every(({ headers }) => headers['x-replay'] === 'true'))
})

test('suppressed and deleted users are left out, a query chooses messages, and a job can be cancelled', async () => {
  await using receiver = await startReceiver()
  await using system = await startWithLake()
  const { service, lake } = system
  const lakeId = await addLake(service, lake)
  await service.send(messages(40))
  await loaded(service, 45)
  // The lake keeps the rows of the deleted user, because it does not work on the deletion.
  await service.api(`/destinations/${lakeId}`, { method: 'PATCH', body: { paused: true } })
  await service.api('/suppressions', { method: 'POST', body: { userIds: ['user of m3'] } })
  await service.api('/deletions', { method: 'POST', body: { userIds: ['user of m4', 'old'], suppress: false } })
  const destinationId = await service.destination({ urls: [receiver.url], name: 'New' })
  const archive = { destinationId: lakeId, ...ALWAYS }

  const rare = await replay(service, { destinationId, archive: { ...archive, event: 'Rare' } })
  await until(service, rare.id, ({ state, outcomes }) => state === 'finished' && outcomes['pending'] === 0, 'the rare events')
  assert.deepEqual([...receiver.byMessageId.keys()].sort(), ['m0', 'm10', 'm20', 'm30'])
  const one = await replay(service, { destinationId, archive: { ...archive, userId: 'user of m7' } })
  await until(service, one.id, ({ state, outcomes }) => state === 'finished' && outcomes['pending'] === 0, 'the message of a user')
  assert.equal(receiver.byMessageId.has('m7'), true)
  assert.equal((await jobOf(service, one.id)).total, 1)

  const all = await replay(service, { destinationId, archive })
  const done = await until(service, all.id, ({ state, outcomes }) => state === 'finished' && outcomes['pending'] === 0, 'all messages')
  assert.deepEqual(done.skippedReasons, { user_suppressed: 1, user_deleted: 2 })
  assert.deepEqual([done.replayed, done.total], [42, 45])
  for (const id of ['m3', 'm4', 'alias']) assert.equal(receiver.byMessageId.has(id), false, id)

  const slow = await replay(service, { destinationId, archive, ratePerSecond: 1 })
  const cancelled = await change(service, slow.id, { state: 'cancelled' })
  assert.equal(cancelled.state, 'cancelled')
  const { data } = await service.api<{ data: { action: string }[] }>('/audit?action=replay.create')
  assert.equal(data.length, 4)
})

test('a file that is gone pauses the job and says so, and the job continues when it is restored', async () => {
  await using receiver = await startReceiver()
  await using system = await startWithLake()
  const { service, lake } = system
  const lakeId = await addLake(service, lake)
  await service.send(messages(20))
  await loaded(service, 25)
  const destinationId = await service.destination({ urls: [receiver.url], name: 'New' })
  const folder = join(lake.source, '_messages')
  const day = readdirSync(folder).find((each) => each.startsWith('day=')) ?? ''
  const name = readdirSync(join(folder, day)).find((each) => each.endsWith('.parquet')) ?? ''
  const manifest = join(folder, '_manifest.json')
  const text = readFileSync(manifest)
  writeFileSync(manifest, '{')
  assert.match(await refusal(replay(service, { destinationId, archive: { destinationId: lakeId, ...ALWAYS } })), /"archive_unreadable"/)
  writeFileSync(manifest, text)
  const [file, away] = [join(folder, day, name), join(lake.folder, 'away')]
  renameSync(file, away)
  const job = await replay(service, { destinationId, archive: { destinationId: lakeId, ...ALWAYS } })
  const paused = await until(service, job.id, ({ state }) => state === 'paused', 'the pause')
  assert.equal(paused.problem?.code, 'warehouse_file_missing')
  assert.match(paused.problem?.message ?? '', new RegExp(name.replaceAll('.', '\\.')))
  renameSync(away, file)
  await change(service, job.id, { state: 'running' })
  const finished = await until(
    service,
    job.id,
    ({ state, outcomes }) => state === 'finished' && outcomes['pending'] === 0,
    'the end of the job',
  )
  assert.deepEqual([finished.problem, finished.replayed, receiver.byMessageId.size], [null, 25, 25])
})

test('what cannot be replayed from an archive is refused', async () => {
  await using receiver = await startReceiver()
  await using system = await startWithLake()
  const { service, lake } = system
  const lakeId = await addLake(service, lake)
  const destinationId = await service.destination({ urls: [receiver.url], name: 'New' })
  const archive = { destinationId: lakeId, ...ALWAYS }
  const cases: [RegExp, object][] = [
    [/invalid_field.*destinationId is required/s, { archive }],
    [/invalid_field.*"destinationId"/s, { destinationId: 'dst_none', archive }],
    [/invalid_field.*archive\.destinationId/s, { destinationId, archive: { ...archive, destinationId: 'dst_none' } }],
    [/no_archive/, { destinationId: lakeId, archive: { ...archive, destinationId } }],
    [/invalid_field.*archive\.before/s, { destinationId, archive: { ...archive, after: ALWAYS.before, before: ALWAYS.after } }],
    [/invalid_field.*archive\.after/s, { destinationId, archive: { ...archive, after: 'yesterday' } }],
    [/invalid_field.*archive\.sourceId/s, { destinationId, archive: { ...archive, sourceId: 'src_none' } }],
    [/invalid_field.*states/s, { destinationId, archive, states: ['failed'] }],
    [/already_loaded/, { destinationId: lakeId, archive }],
  ]
  for (const [message, body] of cases) assert.match(await refusal(replay(service, body)), message)
  // Nothing was loaded yet: there is nothing to replay.
  const empty = await replay(service, { destinationId, archive })
  assert.deepEqual((await until(service, empty.id, ({ state }) => state === 'finished', 'the end of an empty job')).total, 0)
})
