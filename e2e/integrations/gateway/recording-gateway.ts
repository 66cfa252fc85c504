// Stands for the internet of the integrations: an egress gateway on a free port of 127.0.0.1 to which a host makes all its connections
// (SWITCHYARD_INTEGRATIONS_GATEWAY). It speaks HTTP, and HTTPS with a certificate that it makes for each server name, so that a request for
// any host arrives here as it would arrive there. It is a receiver (receiver.ts), with the same `answer`, `arrivals` and `until`.
//
//   await using gateway = await startGateway()                          200 and {} to everything
//   await using service = await startService({ env: gateway.env })
//   gateway.answer = ({ host, path }) => (host === 'api.example.com' ? { status: 503 } : undefined)
//   gateway.requests()                                                  method, host, path, headers and body of each

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createSecureServer } from 'node:http2'
import { createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSecureContext, type SecureContext } from 'node:tls'
import { type Certificate, createCertificate } from '../../../packages/server/src/delivery/fixtures/certificates.ts'
import { type Answer, type Arrival, type Receiver, type ReceiverOptions, startReceiver } from '../../system/receiver.ts'

export interface GatewayRequest {
  /** As in `arrivals`: from 1, in the order of arrival. */
  number: number
  method: string
  host: string
  /** With the query. */
  path: string
  headers: Record<string, string>
  body: string
  bytes: Buffer
}

export interface Gateway extends Omit<Receiver, 'answer'> {
  /** How it answers from now on; undefined: 200 and {}. */
  answer: (request: GatewayRequest) => Answer | undefined
  requests(): GatewayRequest[]
  /** What came over connections that spoke neither HTTP nor TLS. */
  raw: Buffer[]
  /** The file with the certificate of its authority. */
  authorityFile: string
  /** Settings of a service whose integrations connect to this gateway. */
  env: { SWITCHYARD_INTEGRATIONS_GATEWAY: string; SWITCHYARD_INTEGRATIONS_CA: string }
}

const TLS_HANDSHAKE = 0x16
const EMPTY_OBJECT: Answer = { headers: { 'content-type': 'application/json' }, body: '{}' }

/** A new authority, and the file with its certificate, which is removed with the folder. */
export function createAuthority(): { authority: Certificate; folder: string; authorityFile: string } {
  const authority = createCertificate({ commonName: 'Recording gateway', isAuthority: true })
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-gateway-'))
  const authorityFile = join(folder, 'authority.pem')
  writeFileSync(authorityFile, authority.cert)
  return { authority, folder, authorityFile }
}

export async function startGateway(
  answer: Gateway['answer'] = () => undefined,
  options: Pick<ReceiverOptions, 'forgets' | 'answered'> = {},
): Promise<Gateway> {
  const { authority, folder, authorityFile } = createAuthority()
  const raw: Buffer[] = []
  const receiver = await startReceiver((arrival) => gateway.answer(requestOf(arrival)) ?? EMPTY_OBJECT, {
    server: (listener) => polyglotServer(listener, authority, raw),
    ...options,
  })
  const gateway: Gateway = {
    ...receiver,
    answer,
    raw,
    get connections() {
      return receiver.connections
    },
    requests: () => receiver.arrivals.map(requestOf),
    authorityFile,
    env: { SWITCHYARD_INTEGRATIONS_GATEWAY: `127.0.0.1:${receiver.port}`, SWITCHYARD_INTEGRATIONS_CA: authorityFile },
    async [Symbol.asyncDispose]() {
      await receiver.close()
      rmSync(folder, { recursive: true })
    },
  }
  return gateway
}

function requestOf({ number, method, path, headers, bytes }: Arrival): GatewayRequest {
  return { number, method, host: headers['host'] ?? headers[':authority'] ?? '', path, headers, body: bytes.toString(), bytes }
}

/** HTTP/1.1 and HTTP/2 over TLS, and plain HTTP/1.1, on one port. The first byte tells which. */
export function polyglotServer(listener: RequestListener, authority: Certificate, raw: Buffer[] = []): Server {
  const plain = createServer(listener)
  const contexts = new Map<string, SecureContext>()
  const contextOf = (host: string): SecureContext => {
    const context =
      contexts.get(host) ?? createSecureContext(createCertificate({ commonName: 'gateway', hosts: [host], issuer: authority }))
    contexts.set(host, context)
    return context
  }
  const secure = createSecureServer(
    {
      allowHTTP1: true,
      SNICallback: (name, done) => done(null, contextOf(name)),
      // For clients that connect to an address and so send no server name.
      ...createCertificate({ commonName: 'gateway', hosts: ['127.0.0.1'], issuer: authority }),
    },
    listener as never,
  )
  for (const server of [plain, secure]) {
    server.on('clientError', (_error: Error, socket: Socket) => socket.destroy())
    // A connection that ends while a request is on its way would be a failure that no test asked for.
    Object.assign(server, { keepAliveTimeout: 0 })
  }
  return createTcpServer((socket) => {
    socket.once('data', (start: Buffer) => {
      socket.pause()
      const server = start[0] === TLS_HANDSHAKE ? secure : /^[A-Z]+ /.test(start.toString('latin1')) ? plain : null
      if (server === null) {
        raw.push(start)
        socket.destroy()
        return
      }
      socket.unshift(start)
      server.emit('connection', socket)
      if (server === plain) socket.resume()
    })
  })
}
