import assert from 'node:assert/strict'
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import test from 'node:test'
import { algorithmOf, fingerprintOf, parsePublicKey } from './keys.ts'

const spki = (key: KeyObject): string => key.export({ type: 'spki', format: 'pem' }).toString()
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const ed = generateKeyPairSync('ed25519')
const rsaWithExponent = (bytes: number[] | Buffer): KeyObject =>
  createPublicKey({ key: { ...rsa.publicKey.export({ format: 'jwk' }), e: Buffer.from(bytes).toString('base64url') }, format: 'jwk' })

test('RSA, P-256 and Ed25519 keys are accepted, each for one algorithm', () => {
  for (const [{ publicKey }, algorithm] of [
    [rsa, 'RS256'],
    [ec, 'ES256'],
    [ed, 'EdDSA'],
  ] as const) {
    const parsed = parsePublicKey(spki(publicKey))
    assert.deepEqual(parsed, { ok: true, pem: spki(publicKey) })
    assert.equal(algorithmOf(publicKey), algorithm)
  }
})

test('a key is stored in one form, whatever form it was sent in', () => {
  const pem = spki(rsa.publicKey)
  const forms = [
    `\n  ${pem}\n\n`,
    pem.replaceAll('\n', '\r\n'),
    pem.trimEnd(),
    rsa.publicKey.export({ type: 'pkcs1', format: 'pem' }).toString(),
  ]
  for (const form of forms) assert.deepEqual(parsePublicKey(form), { ok: true, pem })
  assert.equal(fingerprintOf(forms[3] as string), fingerprintOf(pem))
  assert.notEqual(fingerprintOf(spki(ec.publicKey)), fingerprintOf(pem))
})

test('a private key is rejected in every form, and the error contains nothing of it', () => {
  const privates = [
    ...[rsa, ec, ed].map(({ privateKey }) => privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()),
    rsa.privateKey.export({ type: 'pkcs1', format: 'pem' }).toString(),
    ec.privateKey.export({ type: 'sec1', format: 'pem' }).toString(),
    rsa.privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' }).toString(),
    `${spki(rsa.publicKey)}${rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()}`,
  ]
  for (const text of privates) {
    const parsed = parsePublicKey(text)
    assert.ok(!parsed.ok && parsed.problem.startsWith('is a private key'))
    for (const line of text.split('\n').filter((each) => each.length > 20 && !each.startsWith('-')))
      assert.ok(!parsed.problem.includes(line))
  }
})

test('other keys and other texts are rejected', () => {
  const kinds = [
    generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey,
    generateKeyPairSync('rsa-pss', { modulusLength: 2048 }).publicKey,
    generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey,
    generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey,
    generateKeyPairSync('ed448').publicKey,
    generateKeyPairSync('x25519').publicKey,
    // With the exponent 1, a signature is just the padded hash, which anyone can compute.
    ...[[1], [2], [1, 0, 0], Buffer.alloc(255, 0x7f)].map(rsaWithExponent),
  ]
  for (const key of kinds) {
    const parsed = parsePublicKey(spki(key))
    assert.ok(!parsed.ok && parsed.problem.startsWith('must be an RSA key of 2048'), key.asymmetricKeyType)
  }
  const pem = spki(ed.publicKey)
  const texts = [
    '',
    'a key',
    '-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----',
    pem.replace(/\n./, '\nA'),
    `${pem}${pem}`,
    `${pem}# and more`,
    pem.replace('END PUBLIC', 'END RSA PUBLIC'),
    JSON.stringify(createPublicKey(pem).export({ format: 'jwk' })),
    'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ+5 me',
    '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----',
  ]
  for (const text of texts) assert.ok(!parsePublicKey(text).ok, JSON.stringify(text))
})
