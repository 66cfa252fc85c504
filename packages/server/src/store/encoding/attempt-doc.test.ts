import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { hiddenUrl } from '../../secrets/hidden-url.ts'
import type { FinalState, RequestRecord } from '../store.ts'
import { type AttemptDoc, requestsOf, writeAttemptDoc, writeProgress } from './attempt-doc.ts'

const ms = fc.option(fc.nat(1_000_000).map((hundredths) => hundredths / 100))
const indexes = fc.uniqueArray(fc.nat(2_499), { maxLength: 20 })
const text = fc.option(fc.string({ unit: 'binary' }))

const request: fc.Arbitrary<RequestRecord> = fc.record({
  url: fc.constantFrom('https://a.example/', 'https://b.example/?q="', 'https://c.example/'),
  startedAtMs: fc.nat(2 ** 31),
  status: fc.option(fc.integer({ min: 100, max: 999 })),
  reason: text,
  error: text,
  address: text,
  dnsMs: ms,
  connectMs: ms,
  tlsMs: ms,
  firstByteMs: ms,
  totalMs: fc.nat(1_000_000).map((hundredths) => hundredths / 100),
  responseStart: text,
  indexes,
  version: fc.constantFrom(1, 1, 2),
  logs: text,
})
/** As delivery creates them: the requests of one batch to its URLs share the same array of indexes, and those of another batch have another. */
const gathered = fc
  .array(fc.tuple(fc.array(request, { minLength: 1, maxLength: 3 }), indexes, fc.constantFrom('none', 'lead', 'led')), { maxLength: 4 })
  .map((units) =>
    units.flatMap(([requests, of, kind], at) => {
      const parts = [0, 1].map((part) => ({ origin: at * 2 + part, segment: part, indexes: of }))
      const about = { lead: at, parts: kind === 'lead' ? parts : null }
      return requests.map((one): RequestRecord => ({ ...one, indexes: of, ...(kind === 'none' ? {} : { gathered: about }) }))
    }),
  )
const final: fc.Arbitrary<FinalState> = fc.record({
  state: fc.constantFrom('delivered', 'failed', 'expired', 'cancelled'),
  reason: text,
  indexes,
})

/** Query values of a URL may be credentials, and are not stored with attempts. */
const asKept = (one: RequestRecord): RequestRecord => ({ ...one, url: hiddenUrl(one.url) })

test('requests and final states are read as they were written', () => {
  fc.assert(
    fc.property(fc.array(request, { maxLength: 6 }), fc.array(final, { maxLength: 4 }), (someRequests, someFinals) => {
      const [requests, finals] = structuredClone([someRequests, someFinals])
      const plain = requests.map((one) => ({
        ...one,
        dnsMs: null,
        connectMs: null,
        tlsMs: null,
        reason: null,
        error: null,
        responseStart: null,
      }))
      for (const written of [requests, plain]) {
        const doc = JSON.parse(writeAttemptDoc({ requests: written, finals })) as AttemptDoc
        assert.deepEqual(requestsOf(doc), written.map(asKept))
        assert.deepEqual(
          doc.f.map(([state, reason, of]) => ({ state, reason, indexes: of })),
          finals,
        )
      }
    }),
  )
})

test('times are rounded to a hundredth of a millisecond', () => {
  const times = { dnsMs: 1.23456, connectMs: 0.004, tlsMs: 2.005, firstByteMs: 99.999, totalMs: 100.0049 }
  const one: RequestRecord = {
    url: 'u',
    startedAtMs: 1,
    status: 200,
    reason: null,
    error: null,
    address: null,
    responseStart: null,
    indexes: [0],
    version: 1,
    logs: null,
    ...times,
  }
  const doc = JSON.parse(writeAttemptDoc({ requests: [one], finals: [] })) as AttemptDoc
  const [read] = requestsOf(doc)
  assert.deepEqual([read?.dnsMs, read?.connectMs, read?.firstByteMs, read?.totalMs], [1.23, 0, 100, 100])
})

test('a success over a reused connection has a short doc', () => {
  const one: RequestRecord = {
    url: 'https://example.com/hook',
    startedAtMs: 1_700_000_000_000,
    status: 200,
    reason: null,
    error: null,
    address: '203.0.113.9',
    responseStart: null,
    indexes: [0],
    version: 1,
    logs: null,
    dnsMs: null,
    connectMs: null,
    tlsMs: null,
    firstByteMs: 1.5,
    totalMs: 2,
  }
  const finals: FinalState[] = [{ state: 'delivered', reason: null, indexes: [0] }]
  const doc = writeAttemptDoc({ requests: [one, one, one], finals })
  assert.ok(doc.length < 240, doc)
})

test('the other messages of a request are read as they were written, and written once for all URLs', () => {
  const about = { origin: 1, segment: 1, attempt: 1, atMs: 1, finals: [] }
  fc.assert(
    fc.property(gathered, (requests) => {
      assert.deepEqual(requestsOf(JSON.parse(writeAttemptDoc({ ...about, requests })) as AttemptDoc), requests.map(asKept))
    }),
  )
  const one = fc.sample(request, { numRuns: 1, seed: 1 })[0] as RequestRecord
  const part = { origin: 123_456_789, segment: 987_654_321, indexes: [0] }
  const written = writeAttemptDoc({
    ...about,
    requests: ['a', 'b', 'c'].map((url) =>
      Object.assign(structuredClone(one), { url, indexes: part.indexes, gathered: { lead: 1, parts: [part] } }),
    ),
  })
  assert.equal(written.split('987654321').length, 2)
})

test('a record whose requests contained no other messages has no field for them', () => {
  const one = fc.sample(request, { numRuns: 1, seed: 1 })[0] as RequestRecord
  assert.ok(!('g' in (JSON.parse(writeAttemptDoc({ requests: [one], finals: [] })) as object)))
})

test('progress is written without the query values of URLs, and with every other entry unchanged', () => {
  const entries = ['sub_1', 'value:["contact_id","x@y.example"]', 'value:["page","a?b=c"]']
  const written = writeProgress(['https://user:pass@a.example/?key=secret', 'HTTP://b.example/?key=secret', ...entries]) ?? ''
  assert.deepEqual((JSON.parse(written) as string[]).slice(2), entries)
  assert.doesNotMatch(written, /secret|pass/)
  assert.equal(writeProgress(null), null)
})
