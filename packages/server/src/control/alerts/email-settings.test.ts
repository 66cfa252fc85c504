// A webhook that sends emails to a mail server: which settings are accepted, and what happens to its password.

import assert from 'node:assert/strict'
import test from 'node:test'
import { asWebhook } from '../../destinations/fixtures/webhook.ts'
import { startControl } from '../fixtures/start-control.ts'

const BODY = { from: 'alerts@example.com', to: ['a@example.com'], subject: { '@template': '{{event}}' }, text: 'Text' }
const EMAIL = {
  name: 'Email',
  urls: ['smtps://mail.example.com:465'],
  maxInFlight: 20,
  auth: { type: 'basic', username: 'alerts@example.com', password: 'SECRET-password' },
  request: { body: BODY },
}

const REFUSED: [what: string, settings: object, field: string][] = [
  ['a path', { urls: ['smtp://mail.example.com/path'] }, 'urls[0]'],
  ['a query', { urls: ['smtp://mail.example.com/?tls=off'] }, 'urls[0]'],
  ['a password in the URL', { urls: ['smtp://user:SECRET@mail.example.com'] }, 'urls[0]'],
  ['a port that there is not', { urls: ['smtp://mail.example.com:99999'] }, 'urls[0]'],
  ['no host', { urls: ['smtp://'] }, 'urls[0]'],
  ['a web server beside it', { urls: [...EMAIL.urls, 'https://example.com/'], auth: EMAIL.auth }, 'urls'],
  ['batches', { batch: { size: 2 } }, 'batch.size'],
  ['no request', { request: null }, 'request.body.from'],
  ['no recipients', { request: { body: { ...BODY, to: undefined } } }, 'request.body.to'],
  ['a form', { request: { body: BODY, format: 'form' } }, 'request.format'],
  ['a path of the request', { request: { body: BODY, path: '/a' } }, 'request.path'],
  ['a bearer token', { auth: { type: 'bearer', token: 'SECRET' } }, 'auth.type'],
  ['headers', { headers: { 'X-A': 'b' } }, 'headers'],
  ['headers of the request', { request: { body: BODY, headers: { 'X-A': 'b' } } }, 'request.headers'],
  ['a user name without a password', { auth: { type: 'basic', username: 'alerts', password: '' } }, 'auth.password'],
  ['a password without a user name', { auth: { type: 'basic', username: '', password: 'SECRET' } }, 'auth.username'],
  ['secrets', { secrets: { key: 'SECRET' } }, 'secrets'],
  ['signing secrets', { signingSecrets: ['whsec_U0VDUkVULXNlY3JldC1TRUNSRVQ='] }, 'signingSecrets'],
  ['a shared secret', { sharedSecret: 'SECRET' }, 'sharedSecret'],
]

test('settings that have no place in an email are refused', async (t) => {
  const { call, store } = await startControl(t)
  const { body: created } = await call('POST', '/api/destinations', EMAIL)
  for (const [what, settings, field] of REFUSED) {
    await t.test(what, async () => {
      for (const refused of [
        await call('POST', '/api/destinations', { ...EMAIL, name: 'Other', ...settings }),
        await call('PATCH', `/api/destinations/${created.id}`, settings),
      ]) {
        assert.deepEqual([refused.status, refused.body.code, refused.body.field], [400, 'invalid_field', field])
        assert.doesNotMatch(refused.text, /SECRET/)
      }
    })
  }
  assert.equal(store.configuration().destinations.size, 1)
})

test('a destination that sends emails needs no maxInFlight', async (t) => {
  const { call } = await startControl(t)
  const { maxInFlight: _maxInFlight, ...withoutMaximum } = EMAIL
  const { status, body } = await call('POST', '/api/destinations', withoutMaximum)
  assert.deepEqual([status, body.maxInFlight], [201, 50])
})

test('the password is never shown, and asked for again when the mail server is another one', async (t) => {
  const { call, store } = await startControl(t)
  const { status, body } = await call('POST', '/api/destinations', EMAIL)
  assert.equal(status, 201)
  const path = `/api/destinations/${body.id}`
  const shown = [
    body,
    (await call('GET', path)).body,
    (await call('GET', '/api/configuration')).body,
    (await call('GET', '/api/audit')).body,
  ]
  assert.doesNotMatch(JSON.stringify(shown), /SECRET/)
  for (const urls of [['smtps://other.example.com:465'], ['smtps://mail.example.com:466'], ['smtp://mail.example.com:465']]) {
    const moved = await call('PATCH', path, { urls })
    assert.deepEqual([moved.status, moved.body.field], [400, 'auth.username'], urls[0])
  }
  const again = { urls: ['smtp://other.example.com'], auth: { ...EMAIL.auth, password: 'SECRET-2' } }
  assert.equal((await call('PATCH', path, again)).status, 200)
  assert.deepEqual(asWebhook(store.configuration().destinations.get(body.id)).auth, again.auth)
})
