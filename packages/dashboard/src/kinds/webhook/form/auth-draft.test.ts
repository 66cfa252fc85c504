import assert from 'node:assert/strict'
import { test } from 'node:test'
import { authBodyOf, authDraftOf, authProblems, isSecretKept, tlsBodyOf, tlsDraftOf, tlsProblems } from './auth-draft.ts'

const problems = (found: [field: string, problem: string | null][]): string[] =>
  found.filter(([, problem]) => problem !== null).map(([field]) => field)

test('a secret is sent only if it was entered, and kept only for the same user and endpoint', () => {
  const basic = authDraftOf({ type: 'basic', username: 'me', hasPassword: true })
  assert.deepEqual(authBodyOf(basic), { type: 'basic', username: 'me' })
  assert.deepEqual(authBodyOf({ ...basic, secret: 'new' }), { type: 'basic', username: 'me', password: 'new' })
  assert.deepEqual(authBodyOf({ ...basic, username: 'you' }), { type: 'basic', username: 'you', password: '' }, 'an empty password')
  const oauth = authDraftOf({
    type: 'oauth2',
    tokenUrl: 'https://auth.example/token',
    clientId: 'id',
    hasClientSecret: true,
    scope: null,
    audience: 'api',
    credentials: 'body',
  })
  assert.equal(isSecretKept(oauth), true)
  assert.deepEqual(problems(authProblems(oauth)), [])
  assert.deepEqual(authBodyOf(oauth), {
    type: 'oauth2',
    tokenUrl: 'https://auth.example/token',
    clientId: 'id',
    scope: null,
    audience: 'api',
    credentials: 'body',
  })
  assert.deepEqual(problems(authProblems({ ...oauth, tokenUrl: 'https://other.example/token' })), ['auth.clientSecret'])
  assert.equal(authBodyOf({ ...oauth, type: 'none' }), null)
})

test('the fields of each method are checked', () => {
  const none = authDraftOf(null)
  assert.deepEqual(authProblems(none), [])
  assert.deepEqual(problems(authProblems({ ...none, type: 'basic', username: 'a:b' })), ['auth.username'])
  assert.deepEqual(problems(authProblems({ ...none, type: 'bearer' })), ['auth.token'])
  assert.deepEqual(problems(authProblems({ ...none, type: 'bearer', secret: 'a b' })), ['auth.token'])
  assert.deepEqual(problems(authProblems({ ...none, type: 'oauth2', scope: 'a  b' })), [
    'auth.tokenUrl',
    'auth.clientId',
    'auth.clientSecret',
    'auth.scope',
  ])
})

const PEM = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'

test('a private key is kept if none is entered, and removed with its certificate', () => {
  const saved = tlsDraftOf({ certificate: PEM, subject: null, expiresAt: null, hasPrivateKey: true, ca: null })
  assert.deepEqual(tlsBodyOf(saved), { certificate: PEM, ca: null })
  assert.deepEqual(tlsBodyOf({ ...saved, privateKey: 'key' }), { certificate: PEM, ca: null, privateKey: 'key' })
  assert.deepEqual(tlsBodyOf({ ...saved, certificate: '', ca: PEM }), { certificate: null, ca: PEM, privateKey: null })
  assert.equal(tlsBodyOf({ ...saved, certificate: '' }), null)
  assert.deepEqual(problems(tlsProblems({ ...tlsDraftOf(null), certificate: PEM })), ['tls.privateKey'])
  assert.deepEqual(problems(tlsProblems({ ...tlsDraftOf(null), ca: 'text' })), ['tls.ca'])
})
