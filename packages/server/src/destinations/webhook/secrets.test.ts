import assert from 'node:assert/strict'
import test from 'node:test'
import { type Auth, CLASSIC_WEBHOOK, NO_FILTER, type WebhookDestination } from '../../model/configuration.ts'
import { createSecretBox, generateSecretKey } from '../../secrets/secret-box.ts'
import { fromStored, toStored, withoutSecrets, withSecrets } from './secrets.ts'

const DESTINATION: WebhookDestination = {
  ...CLASSIC_WEBHOOK,
  id: 'dst_1',
  type: 'webhook',
  name: 'Hook',
  enabled: true,
  paused: false,
  sourceIds: [],
  urls: ['https://example.com/'],
  headers: {},
  sharedSecret: null,
  signingSecrets: [],
  batch: { size: 1, bytes: 1, lingerMs: 0 },
  timeoutMs: 5_000,
  retryWindowMs: 1_000,
  maxInFlight: 1,
  historical: true,
  filter: NO_FILTER,
  createdAtMs: 0,
}
const OAUTH2: Auth = {
  type: 'oauth2',
  tokenUrl: 'https://auth.example.com/SECRET',
  clientId: 'client',
  clientSecret: 'SECRET',
  scope: null,
  audience: null,
  credentials: 'basic',
}
const AUTHS: readonly Auth[] = [
  { type: 'basic', username: 'SECRET-user', password: 'SECRET' },
  { type: 'basic', username: 'SECRET-user', password: '' },
  { type: 'bearer', token: 'SECRET' },
  OAUTH2,
]
const TLS = { certificate: 'certificate', privateKey: 'SECRET', ca: 'ca' }

test('credentials in auth and tls are encrypted, each for its place, and decrypted again', () => {
  const box = createSecretBox(generateSecretKey())
  for (const auth of AUTHS) {
    const destination: WebhookDestination = { ...DESTINATION, auth, tls: TLS }
    const contexts: string[] = []
    const stored = withSecrets(toStored(destination), (text, context) => {
      contexts.push(context)
      return box.seal(text, context)
    })
    assert.doesNotMatch(JSON.stringify(stored), /SECRET/)
    assert.equal(new Set(contexts).size, contexts.length)
    assert.deepEqual(fromStored(withSecrets(stored, (text, context) => box.open(text, context))), destination)
    assert.doesNotMatch(JSON.stringify(withoutSecrets(toStored(destination))), /SECRET|certificate/)
  }
})

test('destinations that earlier versions stored have no auth and no tls', () => {
  const { auth: _, tls: __, ...earlier } = toStored(DESTINATION)
  const read = fromStored(withSecrets(earlier as ReturnType<typeof toStored>, (text) => text))
  assert.deepEqual([read.auth, read.tls], [null, null])
})
