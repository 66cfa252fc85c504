// The connections of the request client of integrations over TLS: certificates are verified against the authorities of the process, and a connection is
// used again.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { requestClient } from '../../../packages/integrations/src/requests/request-client.ts'
import { createCertificate } from '../../../packages/server/src/delivery/fixtures/certificates.ts'
import { createAuthority } from './recording-gateway.ts'

const { authority, folder } = createAuthority()
rmSync(folder, { recursive: true })
const usual = getCACertificates('default')

async function startTool(t: TestContext, host: string) {
  const tool = { port: 0, connections: 0, requests: 0, resumed: 0, names: new Set<unknown>() }
  const server = createServer(createCertificate({ commonName: 'tool', hosts: [host], issuer: authority }), (request, response) => {
    tool.requests++
    request.resume().on('end', () => {
      if (request.url === '/close') response.setHeader('connection', 'close')
      response.end('hello')
    })
  })
  server.on('secureConnection', (socket) => {
    tool.connections++
    if (socket.isSessionReused()) tool.resumed++
    tool.names.add(socket.servername)
  })
  server.on('tlsClientError', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  tool.port = (server.address() as AddressInfo).port
  t.after(() => {
    server.closeAllConnections()
    server.close()
    setDefaultCACertificates(usual)
  })
  return tool
}

const client = requestClient({}, { signal: new AbortController().signal }, () => assert.fail('the library was asked'))

test('requests to the same address or name share a connection, and a new connection resumes the TLS session', async (t) => {
  for (const [host, name] of [
    ['127.0.0.1', false],
    ['localhost', 'localhost'],
  ] as const) {
    const tool = await startTool(t, host)
    setDefaultCACertificates([...usual, authority.cert])
    const get = async (path: string): Promise<string | undefined> => (await client(`https://${host}:${tool.port}${path}`)).content
    for (const path of ['/', '/', '/close']) assert.equal(await get(path), 'hello')
    assert.deepEqual([tool.connections, tool.resumed], [1, 0])
    assert.equal(await get('/'), 'hello')
    assert.deepEqual([tool.connections, tool.resumed, [...tool.names]], [2, 1, [name]])
  }
})

const REFUSED: readonly [what: string, certified: string, authorities: readonly string[], code: RegExp][] = [
  ['an unknown authority', '127.0.0.1', usual, /UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT_LOCALLY/],
  ['another host', '127.0.0.2', [...usual, authority.cert], /ERR_TLS_CERT_ALTNAME_INVALID/],
]
for (const [what, certified, authorities, code] of REFUSED) {
  test(`a certificate of ${what} is refused before anything is sent`, async (t) => {
    const tool = await startTool(t, certified)
    setDefaultCACertificates(authorities)
    await assert.rejects(client(`https://127.0.0.1:${tool.port}/`, { method: 'post', json: {} }), { name: 'FetchError', code })
    assert.equal(tool.requests, 0)
  })
}
