// Makes all connections of a process that calls the library go to a gateway (recording-gateway.ts). GATEWAY_PORT is its port, and
// NODE_EXTRA_CA_CERTS makes Node.js trust it.

import { Socket } from 'node:net'

const port = Number(process.env['GATEWAY_PORT'])

const connect = Reflect.get(Socket.prototype, 'connect') as (...parameters: unknown[]) => Socket
// Called with an array of options and callback by net.connect and tls.connect, and with separate parameters otherwise.
Reflect.set(Socket.prototype, 'connect', function (this: Socket, ...parameters: unknown[]): Socket {
  const [first, second] = parameters
  const [options, callback] = Array.isArray(first) ? (first as [object, unknown]) : [typeof first === 'object' ? first : {}, second]
  const { path: _, lookup: __, ...rest } = options as Record<string, unknown>
  return connect.call(this, { ...rest, host: '127.0.0.1', port }, callback)
})
