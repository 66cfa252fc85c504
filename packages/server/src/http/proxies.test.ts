// Which forwarding headers are trusted.

import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { createProxies } from './proxies.ts'

function requestFrom(remoteAddress: string | undefined, headers: Record<string, string | string[]> = {}): IncomingMessage {
  return { socket: { remoteAddress }, headers } as unknown as IncomingMessage
}

test('the sender is the peer of the connection; a forwarding header counts only if it comes from a trusted proxy', () => {
  const rows: [trusted: string[], peer: string | undefined, forwarded: string | string[] | undefined, address: string | null][] = [
    [[], '203.0.113.1', '198.51.100.1', '203.0.113.1'],
    [[], '::ffff:203.0.113.1', undefined, '203.0.113.1'],
    [[], undefined, '198.51.100.1', null],
    [['10.0.0.0/8'], '203.0.113.1', '198.51.100.1', '203.0.113.1'],
    [['10.0.0.0/8'], '10.1.2.3', '198.51.100.1', '198.51.100.1'],
    [['10.0.0.0/8'], '::ffff:10.1.2.3', '198.51.100.1', '198.51.100.1'],
    [['10.0.0.0/8'], '10.1.2.3', undefined, '10.1.2.3'],
    // The sender can put anything on the left.
    [['10.0.0.0/8'], '10.1.2.3', '6.6.6.6, 198.51.100.1', '198.51.100.1'],
    [['10.0.0.0/8'], '10.1.2.3', '6.6.6.6, 198.51.100.1, 10.9.9.9', '198.51.100.1'],
    [['10.0.0.0/8'], '10.1.2.3', ['6.6.6.6', '198.51.100.1'], '198.51.100.1'],
    [['10.0.0.0/8'], '10.1.2.3', '10.7.7.7, 10.8.8.8', '10.7.7.7'],
    [['10.0.0.0/8'], '10.1.2.3', '198.51.100.1, unknown', '10.1.2.3'],
    [['10.0.0.0/8'], '10.1.2.3', '', '10.1.2.3'],
    [['10.0.0.0/8'], '10.1.2.3', '198.51.100.1:4711', '198.51.100.1'],
    [['10.1.2.3', '2001:db8::/32'], '2001:db8::1', '[2001:db9::7]:4711', '2001:db9::7'],
    [['10.1.2.3'], '10.1.2.4', '198.51.100.1', '10.1.2.4'],
  ]
  for (const [trusted, peer, forwarded, address] of rows) {
    const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }
    assert.equal(createProxies(trusted).senderAddress(requestFrom(peer, headers)), address, JSON.stringify([trusted, peer, forwarded]))
  }
})

test('a forwarded host and scheme count only if they come from a trusted proxy', () => {
  const headers = { host: 'inside:8080', 'x-forwarded-host': 'events.example', 'x-forwarded-proto': 'https' }
  assert.deepEqual(createProxies([]).requestedOrigin(requestFrom('10.0.0.1', headers)), { protocol: 'http', host: 'inside:8080' })
  assert.deepEqual(createProxies(['10.0.0.1']).requestedOrigin(requestFrom('10.0.0.1', headers)), {
    protocol: 'https',
    host: 'events.example',
  })
})

test('the last of several forwarded hosts or schemes is used, because the trusted proxy added it; the others may come from the sender', () => {
  const proxies = createProxies(['10.0.0.1'])
  const rows: [host: string | string[], proto: string | string[], host: string, protocol: string][] = [
    ['evil.example, events.example', 'https, http', 'events.example', 'http'],
    [['evil.example', 'events.example'], ['http', 'https'], 'events.example', 'https'],
    ['evil.example,events.example:8443', 'http,https', 'events.example:8443', 'https'],
    ['evil.example, ', ' ', 'inside:8080', 'http'],
  ]
  for (const [forwarded, proto, host, protocol] of rows) {
    const headers = { host: 'inside:8080', 'x-forwarded-host': forwarded, 'x-forwarded-proto': proto }
    assert.deepEqual(proxies.requestedOrigin(requestFrom('10.0.0.1', headers)), { protocol, host }, JSON.stringify(headers))
  }
})

test('a configured public address is used for every request, whatever its headers say', () => {
  const headers = { host: 'evil.example', 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'http' }
  for (const trusted of [[], ['10.0.0.1']]) {
    const proxies = createProxies(trusted, 'https://events.example')
    assert.deepEqual(proxies.requestedOrigin(requestFrom('10.0.0.1', headers)), { protocol: 'https', host: 'events.example' })
  }
})

test('an entry that is not an IP address or CIDR block is rejected', () => {
  for (const wrong of ['', 'localhost', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/8/8', '::1/129', '10.0.0.0/-1', '10.0.0']) {
    assert.throws(() => createProxies([wrong]), /IP address or a CIDR block/, wrong)
  }
})
