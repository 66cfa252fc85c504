// Checks every connection that this process dials, whichever library dials it: http, https, fetch, http2, or a socket of its own. All of them
// end in net.Socket.connect. A name is looked up here, and only the addresses that the guard permits are passed on, so a name is not looked up again between
// the check and the connection. Unix sockets, datagrams, listening, and custom DNS servers are refused.

import { Socket as DatagramSocket } from 'node:dgram'
import dns from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'
import { isIP, type LookupFunction, Server, Socket } from 'node:net'
import type { Gateway } from '../link/host-channel.ts'
import type { AddressGuard } from '../sender/http/address-guard.ts'
import type { Lookup } from '../sender/http/name-lookup.ts'

/** Thrown or emitted where a connection is refused. `code` is what reasonOfError() knows. */
export class AddressRefused extends Error {
  readonly code = 'ERR_ADDRESS_REFUSED'
  readonly reason = 'address_refused'

  constructor(what: string) {
    super(`${what} is not allowed: connections may only go to public addresses and to those that the configuration allows`)
  }
}

/** A copy, so that the checked address is the one that is dialled. */
type DialOptions = Record<string, unknown> & { host: string }
type Found = { address: string; family: number }
type Connect = (this: Socket, options: object, callback?: () => void) => Socket

/** Cannot be undone. Must be called before any other code has a chance to connect. */
export function guardDials({ guard, lookup, gateway }: { guard: AddressGuard; lookup: Lookup; gateway: Gateway | null }): void {
  const original: unknown = Object.getOwnPropertyDescriptor(Socket.prototype, 'connect')?.value
  const { apply } = Reflect
  // Not dial.call(), which code in this process could replace.
  const dial = (socket: Socket, options: object, callback: (() => void) | undefined): Socket =>
    apply(original as Connect, socket, [options, callback])

  function connect(this: Socket, ...args: unknown[]): Socket {
    const { options, isPath, callback } = normalized(args)
    const { host } = options
    if (isPath) return fail(this, options, callback, 'a Unix socket')
    if (isIP(host) !== 0 && !guard.permits(host)) return fail(this, options, callback, host)
    if (gateway !== null) return dial(this, { ...options, ...gateway, lookup: undefined }, callback)
    return dial(this, { ...options, lookup: permittedLookup }, callback)
  }

  const permittedLookup: LookupFunction = (hostname, { family, all }, callback) => {
    permittedAddresses(hostname, family).then(
      ([first, ...others]) => {
        if (all === true) process.nextTick(callback, null, [first, ...others])
        else process.nextTick(callback, null, first.address, first.family)
      },
      (error: Error) => process.nextTick(callback, error, []),
    )
  }

  async function permittedAddresses(hostname: string, family: number | string | undefined): Promise<[Found, ...Found[]]> {
    const found: Found[] = (await lookup(hostname)).map((address) => ({ address, family: isIP(address) }))
    const wanted = found.filter((each) => isOfFamily(each.family, family))
    if (wanted.length === 0) throw notFound(hostname)
    const [first, ...others] = wanted.filter(({ address }) => guard.permits(address))
    if (first === undefined) throw new AddressRefused(hostname)
    return [first, ...others]
  }

  /** As if the lookup had failed: libraries expect an error of the socket, after the connection was begun. */
  function fail(socket: Socket, options: DialOptions, callback: (() => void) | undefined, what: string): Socket {
    const failing: LookupFunction = (_hostname, _options, done) => void setImmediate(() => done(new AddressRefused(what), []))
    return dial(socket, { port: 1, ...options, host: 'refused.invalid', lookup: failing }, callback)
  }

  // Whoever replaces it can only call this one: nothing else has the original.
  Socket.prototype.connect = connect
  for (const name of ['listen', '_listen2']) seal(Server.prototype, name, refuse('listening'))
  for (const name of ['bind', 'connect', 'send']) seal(DatagramSocket.prototype, name, refuse('a datagram'))
  // Nothing would check the address of another DNS server.
  const resolvers = Object.getPrototypeOf(dns.Resolver.prototype) as object
  for (const part of [dns, dns.promises, resolvers]) seal(part, 'setServers', refuse('another DNS server'))
  syncBuiltinESMExports()
}

function seal(target: object, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, writable: false, configurable: false })
}

function refuse(what: string): () => never {
  return () => {
    throw new AddressRefused(what)
  }
}

/** The arguments of connect() in all their forms: options, a path, or a port and a host; also as one array, as node:net passes them to itself. */
function normalized(args: readonly unknown[]): { options: DialOptions; isPath: boolean; callback: (() => void) | undefined } {
  const [first, second] = args
  if (Array.isArray(first)) return normalized(first)
  const last = args.at(-1)
  const callback = typeof last === 'function' ? (last as () => void) : undefined
  if (typeof first === 'string' && !(Number(first) >= 0)) return { options: { host: '' }, isPath: true, callback }
  const given: Record<string, unknown> =
    typeof first === 'object' && first !== null ? { ...first } : { port: first, host: typeof second === 'string' ? second : undefined }
  const { path, ...rest } = given
  return {
    options: { ...rest, host: typeof rest['host'] === 'string' && rest['host'] !== '' ? rest['host'] : 'localhost' },
    isPath: Boolean(path),
    callback,
  }
}

function isOfFamily(family: number, wanted: number | string | undefined): boolean {
  const only = wanted === 'IPv4' ? 4 : wanted === 'IPv6' ? 6 : wanted
  return only === undefined || only === 0 || family === only
}

function notFound(hostname: string): Error {
  return Object.assign(new Error(`getaddrinfo ENOTFOUND ${hostname}`), { code: 'ENOTFOUND', syscall: 'getaddrinfo', hostname })
}
