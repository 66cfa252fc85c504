// What a receiver gets of a request, byte by byte, and which requests are not sent.

import assert from 'node:assert/strict'
import test from 'node:test'
import { assertFailed, clientFor, httpReceiver, post, rawReceiver, statusAnswer } from '../../fixtures/attempts.ts'

test('a receiver gets exactly these bytes', async (t) => {
  let got = ''
  const url = await rawReceiver(t, (socket, chunk) => {
    got += chunk.toString('latin1')
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
  })
  const client = clientFor(t)
  const { host, port } = new URL(url)
  const start = (line: string, to = host): string => `${line} HTTP/1.1\r\nhost: ${to}\r\nconnection: keep-alive\r\n`
  const headers = ['User-Agent', 'Switchyard/1.0', 'X-EMPTY', '', 'x-blank', ' a\tb ']
  const written = 'User-Agent: Switchyard/1.0\r\nX-EMPTY: \r\nx-blank:  a\tb \r\n'
  const sent: [Parameters<typeof post>[2], to: string, expected: string][] = [
    [{ headers, body: 'abc' }, `${url}?a=%20b#c`, `${start('POST /hook?a=%20b')}${written}content-length: 3\r\n\r\nabc`],
    [{ headers: [], body: 'é✓' }, url, `${start('POST /hook')}content-length: 5\r\n\r\n\xc3\xa9\xe2\x9c\x93`],
    [{ headers: ['x', '\xe9'], body: 'é' }, `${url}/ä`, `${start('POST /hook/%C3%A4')}x: \xe9\r\ncontent-length: 2\r\n\r\n\xc3\xa9`],
    [
      { headers: [], body: Buffer.of(0, 255), method: 'PUT', path: '/x' },
      `${url}?k=1`,
      `${start('PUT /hook/x?k=1')}content-length: 2\r\n\r\n\0\xff`,
    ],
    [{ headers: [], body: '', method: 'DELETE' }, url, `${start('DELETE /hook')}\r\n`],
    [{ headers: [], body: 'x', method: 'DELETE' }, url, `${start('DELETE /hook')}content-length: 1\r\n\r\nx`],
    [{ headers: [], body: '', method: 'PATCH' }, url, `${start('PATCH /hook')}content-length: 0\r\n\r\n`],
    [
      { headers: ['a', 'b'], body: 'x' },
      `http://me:pw@LOCALHOST:${port}`,
      `${start('POST /', `localhost:${port}`)}a: b\r\nauthorization: Basic bWU6cHc=\r\ncontent-length: 1\r\n\r\nx`,
    ],
  ]
  for (const [given, to, expected] of sent) {
    got = ''
    assert.equal((await post(client, to, given)).verdict, 'success')
    assert.equal(got, expected)
  }
})

test('a request with an invalid header is not sent', async (t) => {
  let requests = 0
  const url = await rawReceiver(t, () => (requests += 1))
  const client = clientFor(t)
  const breaking = [
    ['x-a', 'b\r\nX-Injected: 1'],
    ['x-a', 'b\n\nGET / HTTP/1.1'],
    ['x-a', 'b\0c'],
    ['x-a\r\nX-Injected', '1'],
    ['x a', '1'],
    ['', '1'],
    ['transfer-encoding', 'chunked'],
    ['content-length', '1'],
    ['x-a', '✓'],
    ['odd'],
  ]
  for (const headers of breaking) assertFailed(await post(client, url, { headers }), 'permanent', 'invalid_request')
  assert.equal(requests, 0)
})

test('a header that says how the request is sent is not sent', async (t) => {
  const client = clientFor(t)
  const url = await httpReceiver(t, statusAnswer(200))
  for (const headers of [
    ['Host', 'elsewhere.example'],
    ['CONNECTION', 'close'],
    ['Expect', '100-continue'],
    ['content-length', '2'],
  ])
    assertFailed(await post(client, url, { headers, body: '{}' }), 'permanent', 'invalid_request')
})

test('a line break in a URL does not reach the request line', async (t) => {
  let line: string | undefined
  const url = await rawReceiver(t, (socket, chunk) => {
    line = chunk.toString().split('\r\n', 1)[0]
    socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
  })
  await post(clientFor(t), `${url}\r\nX-Injected: 1 HTTP/1.1`)
  assert.equal(line, 'POST /hookX-Injected:%201%20HTTP/1.1 HTTP/1.1')
})
