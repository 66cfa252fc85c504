import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { test } from 'node:test'
import { checkPublicKey } from './public-key.ts'

const publicPem = ({ publicKey }: { publicKey: KeyObject }, type: 'spki' | 'pkcs1' = 'spki'): string =>
  publicKey.export({ type, format: 'pem' }).toString()

test('names the type of supported keys', () => {
  const ed = publicPem(generateKeyPairSync('ed25519'))
  assert.deepEqual(checkPublicKey(ed), { ok: true, kind: 'Ed25519' })
  assert.deepEqual(checkPublicKey(`\n  ${ed.replaceAll('\n', '\r\n')}\n`), { ok: true, kind: 'Ed25519' })
  assert.deepEqual(checkPublicKey(publicPem(generateKeyPairSync('ec', { namedCurve: 'P-256' }))), { ok: true, kind: 'EC P-256' })
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  for (const type of ['spki', 'pkcs1'] as const) assert.deepEqual(checkPublicKey(publicPem(rsa, type)), { ok: true, kind: 'RSA 2048-bit' })
})

test('rejects private keys without sending them', () => {
  const pair = generateKeyPairSync('ed25519')
  const privatePem = pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  for (const text of [privatePem, `${publicPem(pair)}${privatePem}`]) {
    const checked = checkPublicKey(text)
    assert.ok(!checked.ok && checked.problem.includes('was not sent'))
  }
})

test('explains what is wrong with other keys and texts', () => {
  const problem = (text: string): string => {
    const checked = checkPublicKey(text)
    return checked.ok ? 'good' : checked.problem
  }
  assert.match(problem(publicPem(generateKeyPairSync('rsa', { modulusLength: 1_024 }))), /2048 to 8192/)
  assert.match(problem(publicPem(generateKeyPairSync('ec', { namedCurve: 'P-384' }))), /P-256/)
  assert.match(problem('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----'), /certificate/)
  assert.match(problem('ssh-ed25519 AAAA me@here'), /SSH/)
  const good = publicPem(generateKeyPairSync('ed25519'))
  assert.match(problem(good.slice(0, 60)), /end is missing/)
  assert.match(problem(good.replace(/MCow.{20}/, 'MCow')), /missing/)
  assert.match(problem('hello'), /BEGIN PUBLIC KEY/)
})
