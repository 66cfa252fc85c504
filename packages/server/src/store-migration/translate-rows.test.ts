import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TAIL } from '../store/postgres/rows/purging.ts'
import { movedNum, movedRowId, rowIdAt } from '../store/postgres/tables/ids.ts'
import { createTranslation } from './translate-rows.ts'

const ROW = 1_800_000_000_000 * 2_048
const CREATED = [
  { num: 1, created_at: 1_800_000_000_000 },
  // The clock went back.
  { num: 2, created_at: 1_700_000_000_000 },
]

const translate = createTranslation({
  secrets: { encrypt: (text, context) => `${text} sealed for ${context}`, reencrypt: (encrypted, context) => `${encrypted} of ${context}` },
  bodyBytes: (segment) => (segment === ROW ? 100 : 2 ** 31),
  deletions: CREATED,
  replayJobs: CREATED,
})

const deletion = (change: object) => ({
  num: 1,
  id: 'del_1',
  created_at: 1_800_000_000_000,
  suppress: 0,
  every_source: 1,
  user_ids: '["u"]',
  sources: '[1,2]',
  purged: 0,
  purge_cursor: 0,
  purge_end: ROW,
  ended: null,
  pseudonyms: 0,
  ...change,
})

test('an unfinished purge resumes where it stopped; one with suppression gets the tail that PostgreSQL adds', () => {
  const end = BigInt(movedRowId(ROW))
  const purgeOf = (change: object) => {
    const { purge_cursor: cursor, purge_end: until } = translate.deletions(deletion(change)) ?? {}
    return [cursor, until]
  }
  assert.deepEqual(purgeOf({}), ['0', String(end)])
  assert.deepEqual(purgeOf({ purge_cursor: ROW - 5 * 2_048 }), [movedRowId(ROW - 5 * 2_048), String(end)])
  assert.deepEqual(purgeOf({ purge_cursor: ROW }), [String(end), String(end)])
  assert.deepEqual(purgeOf({ suppress: 1 }), ['0', String(end + TAIL)])
  assert.deepEqual(purgeOf({ suppress: 1, purge_cursor: ROW }), [String(end + TAIL), String(end + TAIL)])
  assert.equal(translate.deletions(deletion({}))?.['sources'], JSON.stringify([movedNum(1), movedNum(2)]))
})

test('deletions and jobs get ids from their creation time, in their original order even if the clock went back', () => {
  const [first, second] = [1, 2].map((num) => translate.deletions(deletion({ num }))?.['num'] as string)
  assert.equal(first, rowIdAt(1_800_000_000_000))
  assert.ok((second ?? '') > first)
  // A row may refer to a job that was dropped; its id must not become that of another job.
  const replay = { origin: ROW, idx: 0, destination: 1, segment: ROW, replay_of: `${ROW}-3`, at: 1, state: null }
  assert.equal(translate.replays({ ...replay, job: 2 })?.['job'], second)
  assert.notEqual(translate.replays({ ...replay, job: 7 })?.['job'], second)
  assert.equal(translate.replays({ ...replay, job: null })?.['job'], null)
  assert.equal(translate.replays({ ...replay, job: null })?.['replay_of'], `${movedRowId(ROW)}-3`)
})

test('the position of a replay is a row id, or an index into the deliveries that it lists', () => {
  const part = { job: 1, destination: 0, state: 0, place: 0, over: 0, waiting: 0, turn: 0 }
  assert.equal(translate.replay_parts({ ...part, next: 12 })?.['next'], '12')
  assert.equal(translate.replay_parts({ ...part, next: ROW })?.['next'], movedRowId(ROW))
  assert.equal(translate.replay_parts({ ...part, next: 0 })?.['destination'], '0')
})

test('text that PostgreSQL cannot store is escaped, and row ids in JSON become strings', () => {
  assert.equal(translate.suppressions({ source: 1, user_id: 'a\0b', since: 1 })?.['user_id'], '\\a\\u0000b')
  const shipment = { id: ROW, destination: 1, class: 1, due: 5, count: 1, attempt: 1, first_attempt: 3, unit: 1, replay: 0, urls: null }
  const moved = translate.shipments({ ...shipment, parts: `[[${ROW + 1},${ROW},[0,2]]]` })
  assert.equal(moved?.['parts'], `[["${movedRowId(ROW + 1)}","${movedRowId(ROW)}",[0,2]]]`)
  assert.equal(moved?.['bytes'], 100)
  assert.equal(translate.shipments({ ...shipment, parts: `[[${ROW},${ROW - 1},0]]` })?.['bytes'], 2 ** 31 - 1)
  const doc = JSON.stringify({
    u: [],
    r: [],
    f: [],
    g: [
      [[0], ROW, [[ROW, ROW - 1, [1]]]],
      [[1], ROW],
    ],
  })
  const attempt = {
    id: ROW,
    origin: ROW,
    destination: 1,
    segment: ROW,
    at: 1,
    attempt: 1,
    replay: 0,
    delivered: 0,
    failed: 0,
    expired: 0,
    cancelled: 0,
  }
  assert.deepEqual((JSON.parse(translate.attempts({ ...attempt, doc })?.['doc'] as string) as { g: unknown }).g, [
    [[0], movedRowId(ROW), [[movedRowId(ROW), movedRowId(ROW - 1), [1]]]],
    [[1], movedRowId(ROW)],
  ])
})

test('secrets are re-encrypted with their context, and those of deleted destinations are dropped', () => {
  const secrets = { id: 'dst_1', type: 'webhook', sharedSecret: 's', signingSecrets: ['a', 'b'] }
  const docOf = (parts: object, deleted = 0) => {
    const row = translate.destinations({ num: 1, id: 'dst_1', deleted, doc: JSON.stringify({ ...secrets, ...parts }) })
    return JSON.parse(row?.['doc'] as string) as object
  }
  const sealed = { sealedUrls: ['u'], sealedHeaders: { H: 'h' } }
  const reencrypted = { id: 'dst_1', type: 'webhook', sharedSecret: 's of dst_1', signingSecrets: ['a of dst_1', 'b of dst_1'] }
  assert.deepEqual(docOf(sealed), {
    ...reencrypted,
    sealedUrls: ['u of dst_1.urls.0'],
    sealedHeaders: { H: 'h of dst_1.headers.H' },
  })
  const plain = { urls: ['u'], headers: { H: 'h' } }
  assert.deepEqual(
    docOf(plain),
    { ...reencrypted, sealedUrls: ['u sealed for dst_1.urls.0'], sealedHeaders: { H: 'h sealed for dst_1.headers.H' } },
    'stored in plain text by an earlier version',
  )
  const emptied = { id: 'dst_1', type: 'webhook', sharedSecret: null, signingSecrets: [], sealedUrls: [], sealedHeaders: {}, request: null }
  for (const parts of [sealed, plain]) assert.deepEqual(docOf(parts, 1), emptied)
  assert.deepEqual(translate.settings({ name: 'secret.x', value: 'v' }), { name: 'secret.x', value: 'v of secret.x' })
  assert.deepEqual(translate.settings({ name: 'dedup_seed', value: '[1,2,3,4294967295]' }), {
    name: 'seed',
    value: '000000010000000200000003ffffffff',
  })
  assert.deepEqual(translate.settings({ name: 'schedule_ms', value: '1234.5' }), { name: 'schedule_ms', value: '1234' })
  for (const name of ['last_id', 'key_age', 'moved']) assert.equal(translate.settings({ name, value: '1' }), undefined)
})
