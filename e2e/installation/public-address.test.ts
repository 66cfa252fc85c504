// The service behind a proxy: which address it uses as its own, where its webhooks may go while it listens on loopback, and how it
// handles a request with two Host headers.

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { startReceiver } from '../system/receiver.ts'
import { startService, TOKEN, track } from '../system/service.ts'

test('with a public https address the session cookie is Secure, whatever headers the proxy and the client send', async () => {
  await using service = await startService({ env: { SWITCHYARD_PUBLIC_URL: 'https://events.example' } })
  const response = await fetch(`${service.url}/api/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-proto': 'http', origin: 'https://events.example' },
    body: JSON.stringify({ token: TOKEN }),
  })
  assert.equal(response.status, 200)
  assert.match(response.headers.getSetCookie()[0] ?? '', /^__Host-.*; Secure$/)
})

test('the settings for browser clients contain the public address, not the host in the request', async () => {
  await using service = await startService({
    env: { SWITCHYARD_PUBLIC_URL: 'https://events.example', SWITCHYARD_TRUSTED_PROXIES: '127.0.0.1' },
  })
  const response = await fetch(`${service.url}/v1/projects/${service.writeKey}/settings`, {
    headers: { 'x-forwarded-host': 'evil.example' },
  })
  const text = await response.text()
  assert.match(text, /events\.example/)
  assert.doesNotMatch(text, /evil/)
})

test('on loopback, webhooks reach private addresses unless that is refused', async () => {
  await using receiver = await startReceiver()
  await using service = await startService({ env: { SWITCHYARD_PRIVATE_ADDRESSES: 'refuse' } })
  const id = await service.destination({ urls: [receiver.url] })
  assert.equal((await service.send([track('m-1')])).status, 200)
  const [row] = await service.settled(1)
  assert.deepEqual([row?.destinationId, row?.failed], [id, 1])
  const { data } = await service.api<{ data: { reason: string }[] }>(`/deliveries?destinationId=${id}`)
  assert.equal(data[0]?.reason, 'address_refused')
  assert.equal(receiver.connections, 0)
})

test('a request with two Host headers is refused, on every kind of path', async () => {
  await using service = await startService()
  const { port } = new URL(service.url)
  for (const path of [`/v1/projects/${service.writeKey}/settings`, '/metrics', '/api/sources', '/', '/docs']) {
    const answer = await raw(Number(port), `GET ${path} HTTP/1.1\r\nHost: localhost\r\nhost: evil.example\r\nConnection: close\r\n\r\n`)
    assert.match(answer, /^HTTP\/1\.1 400 /, path)
    assert.match(answer, /"code":"invalid_request","message":"The request has more than one Host header\. Send exactly one\."/, path)
  }
})

function raw(port: number, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(request))
    let answer = ''
    socket.setEncoding('latin1').on('data', (text: string) => (answer += text))
    socket.on('end', () => resolve(answer))
    socket.on('error', reject)
  })
}
