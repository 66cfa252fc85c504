import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isChanged, messageAtField, retryTimesOf } from '../../../destination/form/draft.ts'
import {
  createBodyOf,
  newWebhook,
  patchBodyOf,
  signingSecretOf,
  type Webhook,
  type WebhookDraft,
  webhookDraftOf,
  webhookFieldOf,
  webhookProblems,
} from './webhook-draft.ts'

const SAVED: Webhook = {
  id: 'dst_1',
  type: 'webhook',
  name: 'Warehouse',
  aliases: [],
  origin: null,
  enabled: true,
  paused: false,
  sourceIds: ['src_1'],
  urls: ['https://example.com/hook'],
  headers: { Authorization: 'Bearer x' },
  hasSharedSecret: true,
  hasSigningSecrets: true,
  signingSecretCount: 1,
  request: null,
  transformation: null,
  auth: null,
  tls: null,
  secrets: {},
  batch: { size: 10, bytes: 512_000, lingerMs: 1_000 },
  timeoutMs: 5_000,
  retry: { windowMs: 14_400_000, initialMs: 5_000, maxMs: 600_000, factor: 2, retryStatuses: [], failStatuses: [] },
  retryWindowMs: 14_400_000,
  deadLetter: null,
  maxInFlight: 50,
  order: null,
  historical: true,
  includeViolations: false,
  filter: { types: { allow: ['track'], deny: [] }, events: { allow: [], deny: ['Noise'] } },
  conditionalFilters: [],
  subscribe: null,
  version: 1,
  createdAt: '2026-11-15T12:00:00.000Z',
}
const good = (changes: Partial<WebhookDraft> = {}): WebhookDraft => ({
  ...newWebhook(),
  name: 'Hook',
  urls: ['https://example.com/'],
  ...changes,
})

test('an unchanged draft has no problems and no changes', () => {
  const draft = webhookDraftOf(SAVED)
  assert.deepEqual([...webhookProblems(draft)], [])
  assert.equal(patchBodyOf(SAVED, draft), null)
  assert.equal(isChanged(webhookDraftOf(SAVED), draft), false)
})

test('sends only changed fields, and secrets only if they are replaced or removed', () => {
  assert.deepEqual(patchBodyOf(SAVED, { ...webhookDraftOf(SAVED), name: 'Lake' }), { name: 'Lake' })
  assert.deepEqual(patchBodyOf(SAVED, { ...webhookDraftOf(SAVED), includeViolations: true }), { includeViolations: true })
  assert.deepEqual(patchBodyOf(SAVED, { ...webhookDraftOf(SAVED), aliases: ['Old name'] }), { aliases: ['Old name'] })
  assert.deepEqual(patchBodyOf(SAVED, { ...webhookDraftOf(SAVED), batchSize: 20 }), {
    batch: { size: 20, bytes: 512_000, lingerMs: 1_000 },
  })
  assert.deepEqual(patchBodyOf(SAVED, { ...webhookDraftOf(SAVED), retryWindow: '240 min' }), null, 'the same duration in another notation')
  assert.deepEqual(patchBodyOf(SAVED, { ...webhookDraftOf(SAVED), headers: [] }), { headers: {} })
  assert.deepEqual(patchBodyOf(SAVED, { ...webhookDraftOf(SAVED), sharedSecret: { kind: 'remove' }, signingSecrets: { kind: 'remove' } }), {
    sharedSecret: null,
    signingSecrets: [],
  })
  assert.deepEqual(patchBodyOf(SAVED, { ...webhookDraftOf(SAVED), sharedSecret: { kind: 'set', values: ['s'] } }), { sharedSecret: 's' })
  assert.deepEqual(createBodyOf(good({ signingSecrets: { kind: 'set', values: ['whsec_AAAA'] } })).signingSecrets, ['whsec_AAAA'])
  assert.ok(!('sharedSecret' in createBodyOf(good())))
})

test('secrets are sent only if they are entered or removed', () => {
  const saved: Webhook = { ...SAVED, secrets: { token: '(hidden)', old: '(hidden)' } }
  const draft = webhookDraftOf(saved)
  assert.equal(patchBodyOf(saved, draft), null)
  const [token, old] = draft.secrets
  assert.ok(token && old)
  assert.deepEqual(patchBodyOf(saved, { ...draft, secrets: [{ ...token, value: 'new' }] }), { secrets: { old: null, token: 'new' } })
  assert.deepEqual(createBodyOf(good({ secrets: [{ name: 'a', value: 'b', isStored: false }] })).secrets, { a: 'b' })
  const names = (...secrets: [string, string][]): string[] => [
    ...webhookProblems(good({ secrets: secrets.map(([name, value]) => ({ name, value, isStored: false })) })).keys(),
  ]
  assert.deepEqual(names(['a', 'x'], ['a', 'y'], ['', 'z'], ['a.b', 'z'], ['c', '']), [
    'secrets[1].name',
    'secrets[2].name',
    'secrets[3].name',
    'secrets[4].value',
  ])
  assert.equal(webhookFieldOf('secrets.old', draft), 'secrets[1].value')
})

test('another server needs the secrets again: what is write-only has to be entered, and what is shown is sent', () => {
  const request = { path: '', headers: { 'X-A': 'a' }, body: null }
  const saved: Webhook = { ...SAVED, auth: { type: 'bearer', hasToken: true }, secrets: { token: '(hidden)' }, request }
  const draft = { ...webhookDraftOf(saved), urls: ['https://example.com/hook', 'https://other.example/'] }
  assert.deepEqual([...webhookProblems(draft).keys()], ['auth.token', 'secrets[0].value'])
  assert.deepEqual([...webhookProblems({ ...draft, urls: ['https://example.com/other?a=b'] }).keys()], [], 'the same server')
  const auth = { ...draft.auth, secret: 'again' }
  const given = { ...draft, auth, secrets: [{ name: 'token', value: 'again', isStored: true }] }
  assert.deepEqual([...webhookProblems(given).keys()], [])
  assert.deepEqual(patchBodyOf(saved, given), {
    urls: draft.urls,
    headers: SAVED.headers,
    auth: { type: 'bearer', token: 'again' },
    secrets: { token: 'again' },
    request,
  })
  const basic: Webhook = { ...saved, auth: { type: 'basic', username: 'u', hasPassword: true } }
  assert.ok(webhookProblems({ ...webhookDraftOf(basic), urls: ['http://example.com/hook'] }).has('auth.password'))
})

test('the settings beyond the classic webhook are sent only if they are used', () => {
  const classic = createBodyOf(good())
  for (const field of ['subscribe', 'deadLetter', 'order', 'auth', 'tls', 'secrets', 'request', 'transformation'])
    assert.ok(!(field in classic), field)
  assert.equal(createBodyOf(good({ subscribe: ' type = "track" ' })).subscribe, 'type = "track"')
  assert.deepEqual(patchBodyOf(SAVED, { ...webhookDraftOf(SAVED), retryInitial: '1 s', failStatuses: ['503'] }), {
    retry: { ...SAVED.retry, initialMs: 1_000, failStatuses: [503] },
  })
  assert.deepEqual(patchBodyOf({ ...SAVED, deadLetter: 'dst_2', subscribe: 'a = 1' }, webhookDraftOf(SAVED)), {
    deadLetter: null,
    subscribe: null,
  })
  assert.deepEqual(retryTimesOf(webhookDraftOf(SAVED)), { windowMs: 14_400_000, initialMs: 5_000, maxMs: 600_000, factor: 2 })
  assert.equal(retryTimesOf({ ...webhookDraftOf(SAVED), retryMax: '1 s' }), null)
})

test('the order: every choice is sent as the whole setting, and null turns it off', () => {
  const order = { by: 'user', onFailure: 'skip', maxWaiting: 10_000 } as const
  assert.deepEqual(createBodyOf(good({ orderBy: 'user' })).order, order)
  assert.deepEqual(createBodyOf(good({ orderBy: 'path', orderPath: ' context.groupId ' })).order, { ...order, by: 'context.groupId' })
  const saved: Webhook = { ...SAVED, order: { by: 'properties.orderId', onFailure: 'hold', maxWaiting: 500 } }
  const draft = webhookDraftOf(saved)
  assert.deepEqual([draft.orderBy, draft.orderPath, patchBodyOf(saved, draft)], ['path', 'properties.orderId', null])
  assert.deepEqual(patchBodyOf(saved, { ...draft, orderBy: 'source' }), { order: { ...saved.order, by: 'source' } })
  assert.deepEqual(patchBodyOf(saved, { ...draft, orderBy: 'none' }), { order: null })
  const fields = (changes: Partial<WebhookDraft>): string[] => [...webhookProblems(good(changes)).keys()]
  assert.deepEqual(fields({ orderBy: 'path', orderMaxWaiting: 99 }), ['order.by', 'order.maxWaiting'])
  assert.deepEqual(fields({ orderBy: 'path', orderPath: 'context..groupId' }), ['order.by'])
  assert.deepEqual(fields({ orderBy: 'none', orderPath: '..', orderMaxWaiting: null }), [])
  for (const field of ['order', 'order.by', 'order.onFailure', 'order.maxWaiting']) assert.equal(webhookFieldOf(field, draft), field)
})

test('reports each problem at its field', () => {
  const fields = (changes: Partial<WebhookDraft>): string[] => [...webhookProblems(good(changes)).keys()]
  assert.deepEqual([...webhookProblems(newWebhook()).keys()], ['name', 'urls[0]'])
  assert.deepEqual(fields({}), [])
  assert.deepEqual(fields({ urls: [] }), ['urls'])
  assert.deepEqual(fields({ urls: ['https://example.com', 'https://example.com/', 'ftp://x'] }), ['urls[1]', 'urls[2]'])
  assert.deepEqual(
    fields({
      headers: [
        { name: 'X-A', value: '1' },
        { name: 'x-a', value: 'é' },
      ],
    }),
    ['headers[1].name', 'headers[1].value'],
  )
  assert.deepEqual(fields({ headers: [{ name: 'Content-Type', value: '' }] }), ['headers[0].name'])
  assert.deepEqual(fields({ timeout: '6 s', retryWindow: '15d', linger: 'soon' }), ['batch.lingerMs', 'timeoutMs', 'retry.windowMs'])
  assert.deepEqual(fields({ batchSize: null, maxInFlight: 1.5 }), ['batch.size', 'maxInFlight'])
  assert.deepEqual(fields({ signingSecrets: { kind: 'set', values: ['whsec_AAAA', 'whsec_AAAA'] } }), ['signingSecrets[1]'])
  assert.deepEqual(fields({ sharedSecret: { kind: 'set', values: [''] } }), ['sharedSecret'])
})

test('maps an error of the API to its form field', () => {
  const draft = good({
    headers: [
      { name: 'X-A', value: '1' },
      { name: 'X-B', value: '2' },
    ],
  })
  for (const [field, place] of [
    ['urls[0]', 'urls[0]'],
    ['urls', 'urls'],
    ['headers.X-B', 'headers[1].value'],
    ['headers.Gone', 'headers'],
    ['sourceIds[3]', 'sourceIds'],
    ['filter.types.deny[0]', 'filter.types.deny'],
    ['filter.events.allow', 'filter.events.allow'],
    ['batch.size', 'batch.size'],
    ['somethingNew', null],
  ] as const)
    assert.equal(webhookFieldOf(field, draft), place, field)
})

test('removes the field name from an error that is shown at the field', () => {
  assert.equal(messageAtField('sourceIds[0]', 'sourceIds[0] is not the id of a source.'), 'Is not the id of a source.')
  assert.equal(messageAtField('urls[0]', 'Something else.'), 'Something else.')
  assert.equal(messageAtField(null, 'the store is away.'), 'The store is away.')
})

test('generates valid signing secrets', () => {
  const secret = signingSecretOf(new Uint8Array(32).fill(255))
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  assert.deepEqual([...webhookProblems(good({ signingSecrets: { kind: 'set', values: [secret] } }))], [])
})
