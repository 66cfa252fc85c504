// The settings `auth` and `tls` of a destination, through the control API: what is accepted, what is refused and where, what is hidden, and which
// secrets an update keeps.

import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import test from 'node:test'
import { createCertificate } from '../../delivery/fixtures/certificates.ts'
import { asWebhook } from '../../destinations/fixtures/webhook.ts'
import { startControl } from '../fixtures/start-control.ts'

const HOOK = { name: 'Hook', urls: ['https://example.com/hook'] }
const BASIC = { type: 'basic', username: 'key-NAME', password: 'SECRET-password' }
const BEARER = { type: 'bearer', token: 'SECRET-token' }
const OAUTH2 = {
  type: 'oauth2',
  tokenUrl: 'https://auth.example.com/token?tenant=SECRET-tenant',
  clientId: 'client',
  clientSecret: 'SECRET-client',
}
const CLIENT = createCertificate({ commonName: 'client', notAfter: '20990101000000Z' })
const OTHER = createCertificate({ commonName: 'other' })
const EXPIRED = createCertificate({ commonName: 'expired', notAfter: '20210101000000Z' })
const TLS = { certificate: CLIENT.cert, privateKey: CLIENT.key, ca: OTHER.cert }
const ENCRYPTED = generateKeyPairSync('ec', {
  namedCurve: 'P-256',
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' },
}).privateKey

test('secrets are never returned, and the other fields are', async (t) => {
  const { call, store } = await startControl(t)
  const shown = {
    basic: { type: 'basic', username: 'key-NAME', hasPassword: true },
    bearer: { type: 'bearer', hasToken: true },
    oauth2: {
      type: 'oauth2',
      tokenUrl: OAUTH2.tokenUrl,
      clientId: 'client',
      hasClientSecret: true,
      scope: null,
      audience: null,
      credentials: 'basic',
    },
  }
  for (const auth of [BASIC, BEARER, OAUTH2]) {
    const { body, status } = await call('POST', '/api/destinations', { ...HOOK, auth })
    assert.equal(status, 201)
    assert.deepEqual(body.auth, shown[auth.type as keyof typeof shown])
    assert.doesNotMatch(JSON.stringify(body), /SECRET-(?!tenant)/)
    assert.deepEqual(asWebhook(store.configuration().destinations.get(body.id)).auth, {
      ...(auth.type === 'oauth2' ? { scope: null, audience: null, credentials: 'basic' } : {}),
      ...auth,
    })
  }
  const { body } = await call('POST', '/api/destinations', { ...HOOK, tls: TLS })
  assert.deepEqual(body.tls, {
    certificate: CLIENT.cert,
    subject: 'CN=client',
    expiresAt: '2099-01-01T00:00:00.000Z',
    hasPrivateKey: true,
    ca: OTHER.cert,
  })
  const empty = await call('POST', '/api/destinations', { ...HOOK, auth: { ...BASIC, password: '' } })
  assert.equal(empty.body.auth.hasPassword, false)
})

test('an update that leaves a secret out keeps it only for the same purpose', async (t) => {
  const { call, store } = await startControl(t)
  const { body } = await call('POST', '/api/destinations', { ...HOOK, auth: OAUTH2 })
  const path = `/api/destinations/${body.id}`
  const stored = () => store.configuration().destinations.get(body.id)
  const { clientSecret: _, ...same } = OAUTH2
  assert.equal((await call('PATCH', path, { name: 'Renamed' })).status, 200)
  assert.equal((await call('PATCH', path, { auth: { ...same, scope: 'a b', credentials: 'body' } })).status, 200)
  assert.deepEqual(asWebhook(stored()).auth, { ...OAUTH2, scope: 'a b', audience: null, credentials: 'body' })
  const refused: [object, string][] = [
    [{ ...same, tokenUrl: 'https://auth.example.com/other' }, 'auth.clientSecret'],
    [{ ...same, clientId: 'other' }, 'auth.clientSecret'],
    [{ type: 'basic', username: 'u' }, 'auth.password'],
    [{ type: 'bearer' }, 'auth.token'],
  ]
  for (const [auth, field] of refused) {
    const answer = await call('PATCH', path, { auth })
    assert.deepEqual([answer.status, answer.body.field], [400, field])
    assert.match(answer.body.message, /is required; the stored one is kept only if/)
  }
  await call('PATCH', path, { auth: BASIC })
  assert.equal((await call('PATCH', path, { auth: { type: 'basic', username: 'somebody' } })).body.field, 'auth.password')
  assert.equal((await call('PATCH', path, { auth: { type: 'basic', username: 'key-NAME' } })).status, 200)
  assert.deepEqual(asWebhook(stored()).auth, BASIC)
  assert.equal((await call('PATCH', path, { auth: null })).body.auth, null)
  assert.equal(asWebhook(stored()).auth, null)
})

test('a private key is kept for its own certificate', async (t) => {
  const { call, store } = await startControl(t)
  const { body } = await call('POST', '/api/destinations', { ...HOOK, tls: TLS })
  const path = `/api/destinations/${body.id}`
  assert.equal((await call('PATCH', path, { tls: { certificate: CLIENT.cert } })).status, 200)
  assert.deepEqual(asWebhook(store.configuration().destinations.get(body.id)).tls, {
    certificate: CLIENT.cert,
    privateKey: CLIENT.key,
    ca: null,
  })
  assert.equal((await call('PATCH', path, { tls: { certificate: OTHER.cert } })).body.field, 'tls.privateKey')
  assert.equal((await call('PATCH', path, { tls: { ca: OTHER.cert } })).status, 200)
  assert.deepEqual(asWebhook(store.configuration().destinations.get(body.id)).tls, { certificate: null, privateKey: null, ca: OTHER.cert })
  assert.equal((await call('PATCH', path, { urls: ['http://example.com/'] })).body.field, 'tls')
  assert.equal((await call('PATCH', path, { tls: null })).body.tls, null)
})

const refused: [title: string, settings: object, field: string, message: RegExp, code?: string][] = [
  ['an unknown type', { auth: { type: 'digest' } }, 'auth.type', /must be one of basic, bearer, oauth2/],
  ['a type of another shape', { auth: { type: ['basic'] } }, 'auth.type', /must be one of/],
  ['a text', { auth: 'Bearer x' }, 'auth', /must be an object/],
  ['a list', { auth: [] }, 'auth', /must be an object/],
  ['a field of another type', { auth: { ...BEARER, password: 'x' } }, 'auth.password', /not a known field/, 'unknown_field'],
  ['a colon in the user name', { auth: { ...BASIC, username: 'a:b' } }, 'auth.username', /must not contain a colon/],
  ['a line break in the user name', { auth: { ...BASIC, username: 'a\nb' } }, 'auth.username', /control characters/],
  ['NUL in the password', { auth: { ...BASIC, password: '\0' } }, 'auth.password', /control characters/],
  ['no password', { auth: { type: 'basic', username: 'a' } }, 'auth.password', /is required/],
  ['a token with a space', { auth: { ...BEARER, token: 'a b' } }, 'auth.token', /visible ASCII/],
  ['a token with a line break', { auth: { ...BEARER, token: 'a\r\nX: y' } }, 'auth.token', /visible ASCII/],
  ['the placeholder', { auth: { ...BEARER, token: '(hidden)' } }, 'auth.token', /placeholder/],
  ['an empty token', { auth: { ...BEARER, token: '' } }, 'auth.token', /1 to 8192 characters/],
  ['a token URL of another scheme', { auth: { ...OAUTH2, tokenUrl: 'ftp://example.com' } }, 'auth.tokenUrl', /http:\/\/ or https:\/\//],
  ['a token URL with a password', { auth: { ...OAUTH2, tokenUrl: 'https://a:b@example.com' } }, 'auth.tokenUrl', /user name or password/],
  [
    'a token URL at a private address',
    { auth: { ...OAUTH2, tokenUrl: 'https://10.0.0.1/' } },
    'auth.tokenUrl',
    /not public|private|not allowed/,
  ],
  ['no client id', { auth: { ...OAUTH2, clientId: undefined } }, 'auth.clientId', /is required/],
  ['a scope with a quote', { auth: { ...OAUTH2, scope: 'a "b"' } }, 'auth.scope', /scopes/],
  ['two spaces in a scope', { auth: { ...OAUTH2, scope: 'a  b' } }, 'auth.scope', /single spaces/],
  ['other credentials', { auth: { ...OAUTH2, credentials: 'jwt' } }, 'auth.credentials', /basic, body/],
  ['an Authorization header beside it', { auth: BEARER, headers: { authorization: 'x' } }, 'headers.authorization', /together with auth/],
  ['one in request', { auth: BEARER, request: { headers: { Authorization: 'x' } } }, 'request.headers.Authorization', /together with auth/],
  ['empty tls', { tls: {} }, 'tls', /certificate with its privateKey, a ca, or both/],
  ['a certificate without a key', { tls: { certificate: CLIENT.cert } }, 'tls.privateKey', /is required with tls.certificate/],
  [
    'a key without a certificate',
    { tls: { privateKey: CLIENT.key, ca: OTHER.cert } },
    'tls.certificate',
    /is required with tls.privateKey/,
  ],
  ['the key of another certificate', { tls: { ...TLS, privateKey: OTHER.key } }, 'tls.privateKey', /does not belong/],
  ['an encrypted key', { tls: { ...TLS, privateKey: ENCRYPTED } }, 'tls.privateKey', /is encrypted; remove its passphrase/],
  ['a key that is none', { tls: { ...TLS, privateKey: 'x' } }, 'tls.privateKey', /must be a private key in PEM/],
  ['a certificate as the key', { tls: { ...TLS, privateKey: CLIENT.cert } }, 'tls.privateKey', /must be a private key in PEM/],
  ['a certificate that is none', { tls: { ...TLS, certificate: 'x' } }, 'tls.certificate', /must be one or more certificates/],
  [
    'a key beside the certificate',
    { tls: { ...TLS, certificate: CLIENT.key + CLIENT.cert } },
    'tls.certificate',
    /must not contain a private key/,
  ],
  [
    'a damaged certificate in a chain',
    { tls: { ...TLS, ca: `${OTHER.cert}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----` } },
    'tls.ca',
    /invalid certificate \(number 2\)/,
  ],
  [
    'an expired certificate',
    { tls: { certificate: EXPIRED.cert, privateKey: EXPIRED.key } },
    'tls.certificate',
    /expired at 2021-01-01T00:00:00.000Z/,
  ],
  ['tls with http URLs only', { urls: ['http://example.com/'], tls: TLS }, 'tls', /no effect, because all URLs use http/],
]

test('refuses', async (t) => {
  const checkUrl = (url: string) => (url.includes('//10.') ? 'resolves to an address that is not public' : null)
  const { call } = await startControl(t, { checkUrl })
  for (const [title, settings, field, message, code = 'invalid_field'] of refused) {
    await t.test(title, async () => {
      const { status, body, text } = await call('POST', '/api/destinations', { ...HOOK, ...settings })
      assert.deepEqual([status, body.code, body.field], [400, code, field], text)
      assert.match(body.message, message)
      assert.doesNotMatch(text, /SECRET|MIG/)
    })
  }
})

test('an Authorization header is refused as long as there is auth, and accepted without it', async (t) => {
  const { call } = await startControl(t)
  const { body } = await call('POST', '/api/destinations', { ...HOOK, auth: BEARER })
  const path = `/api/destinations/${body.id}`
  const headers = { Authorization: 'x' }
  assert.equal((await call('PATCH', path, { headers })).body.field, 'headers.Authorization')
  assert.equal((await call('PATCH', path, { headers, auth: null })).status, 200)
  assert.equal((await call('PATCH', path, { auth: BEARER })).body.field, 'headers.Authorization')
})

test('viewers and the audit log see no user name and no query value of the token URL, and the log names the secrets that changed', async (t) => {
  const { call } = await startControl(t)
  const { body } = await call('POST', '/api/destinations', { ...HOOK, auth: BASIC, tls: TLS })
  const path = `/api/destinations/${body.id}`
  await call('PATCH', path, { auth: { ...BASIC, password: 'SECRET-2' } })
  await call('PATCH', path, { auth: OAUTH2 })
  await call('PATCH', path, { auth: { ...OAUTH2, clientSecret: 'SECRET-3' }, tls: { certificate: OTHER.cert, privateKey: OTHER.key } })
  const token = (await call('POST', '/api/tokens', { name: 'Viewer', role: 'viewer' })).body.token as string
  const viewed = await call('GET', path, undefined, { token })
  assert.equal(viewed.body.auth.tokenUrl, 'https://auth.example.com/token?tenant=(hidden)')
  const audit = await call('GET', `/api/audit?subject=${body.id}`)
  const changed = audit.body.data.map((entry: { after: { changedSecrets?: string[] } }) => entry.after.changedSecrets)
  assert.deepEqual(changed, [['auth.clientSecret', 'tls.privateKey'], undefined, ['auth.password'], undefined])
  for (const text of [viewed.text, audit.text]) assert.doesNotMatch(text, /SECRET|NAME|PRIVATE KEY/)
})
