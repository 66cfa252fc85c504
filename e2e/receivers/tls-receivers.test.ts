// Receivers over HTTPS: if the certificate is not valid for the host, the attempt fails and no request is sent; a certificate from a
// trusted authority works.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Certificate, createCertificate } from '../../packages/server/src/delivery/fixtures/certificates.ts'
import { type InProcessService, startInProcess } from '../system/in-process.ts'
import { startReceiver } from '../system/receiver.ts'
import { wire } from '../system/wiring.ts'

const authority = createCertificate({ commonName: 'An Authority', isAuthority: true })
const stranger = createCertificate({ commonName: 'Another Authority', isAuthority: true })
const hosts = ['receiver.example', '127.0.0.1']

let service: InProcessService

before(async () => {
  service = await startInProcess({ ca: authority.cert, lookup: async () => ['127.0.0.1'] })
})

after(() => service[Symbol.asyncDispose]())

const REFUSED: [what: string, certificate: Certificate, reason: string, error: string][] = [
  ['self-signed', createCertificate({ commonName: 'me', hosts }), 'tls_self_signed', "The receiver's certificate is self-signed."],
  [
    'expired',
    createCertificate({ commonName: 'me', hosts, issuer: authority, notAfter: '20210101000000Z' }),
    'tls_expired',
    "The receiver's certificate has expired or is not valid yet.",
  ],
  [
    'not valid yet',
    createCertificate({ commonName: 'me', hosts, issuer: authority, notBefore: '20990101000000Z' }),
    'tls_expired',
    "The receiver's certificate has expired or is not valid yet.",
  ],
  [
    'for another host',
    createCertificate({ commonName: 'me', hosts: ['other.example'], issuer: authority }),
    'tls_wrong_host',
    "The receiver's certificate is for another host.",
  ],
  [
    'from an authority that is not trusted',
    createCertificate({ commonName: 'me', hosts, issuer: stranger }),
    'tls_untrusted',
    "The receiver's certificate is not from a trusted authority.",
  ],
]

describe('HTTPS receivers', () => {
  for (const [what, certificate, reason, error] of REFUSED) {
    test(`a certificate that is ${what}: an error, and no request is sent`, async () => {
      await using receiver = await startReceiver(undefined, { tls: certificate })
      await using healthy = await startReceiver()
      for (const url of [receiver.url, `https://receiver.example:${receiver.port}/`]) {
        const wiring = await wire(service, { urls: [url] }, { urls: [healthy.url] })
        const id = await wiring.track()
        const delivery = await wiring.settled(id)
        assert.deepEqual([delivery.state, delivery.reason], ['failed', reason])
        const [attempt] = delivery.attempts
        assert.deepEqual(
          [attempt?.url, attempt?.address, attempt?.status, attempt?.reason, attempt?.error],
          [url, '127.0.0.1', null, reason, error],
        )
        assert.equal(attempt?.timings.firstByteMs, null)
        const [, other] = wiring.destinationIds
        assert.equal((await wiring.settled(id, { to: other as string })).state, 'delivered')
      }
      assert.ok(receiver.connections >= 2, 'it was called')
      assert.equal(receiver.arrivals.length, 0)
    })
  }

  test('a certificate from a trusted authority, for the name or for the address: delivered, with the time that TLS took', async () => {
    await using receiver = await startReceiver(undefined, { tls: createCertificate({ commonName: 'me', hosts, issuer: authority }) })
    for (const url of [receiver.url, `https://receiver.example:${receiver.port}/`]) {
      const wiring = await wire(service, { urls: [url] })
      const { state, attempts } = await wiring.settled(await wiring.track())
      assert.deepEqual([state, attempts[0]?.status, attempts[0]?.address], ['delivered', 200, '127.0.0.1'])
      assert.ok((attempts[0]?.timings.tlsMs ?? 0) > 0)
    }
  })

  test('with a second URL that works, the message is delivered', async () => {
    await using receiver = await startReceiver(undefined, { tls: createCertificate({ commonName: 'me', hosts }) })
    await using healthy = await startReceiver()
    const wiring = await wire(service, { urls: [receiver.url, healthy.url] })
    assert.equal((await wiring.settled(await wiring.track())).state, 'delivered')
  })
})
