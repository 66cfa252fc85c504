// The pool of connections to receivers. Only addresses that the guard permits are dialled, and a name is not looked up again between the
// check and the dialling, so DNS rebinding has no effect. Certificates are always verified. attempt.ts sends requests over the connections
// and interprets the responses.

import { isIP, type LookupFunction, connect as netConnect, type OnReadOpts, type Socket } from 'node:net'
import { createSecureContext, getCACertificates, type SecureContext, connect as tlsConnect } from 'node:tls'
import type { TlsSettings } from '../../../store/store.ts'
import { type ReasonCode, reasonOfError, reasonOfLookupError, reasonOfTlsError } from '../../link/outcome.ts'
import type { AddressGuard } from './address-guard.ts'
import { createNameLookup, type Lookup } from './name-lookup.ts'
import type { AnswerHead } from './plain-answer.ts'

/** Less than the 5 s after which node:http, the least patient of the usual servers, closes an idle connection. */
const IDLE_MS = 4_000
/** If a receiver announces how long it keeps a connection, that is used instead, less one second for network latency. */
const ANNOUNCED_IDLE_MAX_MS = 15_000
const ANNOUNCED_IDLE_MARGIN_MS = 1_000
/** How often connections that were idle for long enough are closed. */
const SWEEP_MS = 500
/** How long one of several addresses may take before the next is tried. The 250 ms of node:net are too short for distant continents. */
const TRY_EACH = { autoSelectFamily: true, autoSelectFamilyAttemptTimeout: 1_000 }

/** As many as there may be requests in flight. Above that, an idle connection is closed for each new one. */
const MAX_OPEN = 2_000
/** So that a receiver that closes every connection gets at most one message in 17 twice, and one that closes an idle connection costs few new ones. */
const UNKEPT = 16

export interface ConnectionsOptions {
  guard: AddressGuard
  /** Default: the system's resolver, see name-lookup.ts. */
  lookup?: Lookup | undefined
  /** Certificate authorities in PEM, to trust instead of the usual ones. */
  ca?: string | undefined
  /** Default: 2,000. */
  maxOpen?: number | undefined
}

/** A scheme, host and port, with the connections to it that are free; the one used last is the one taken first. */
export interface Origin {
  /** A name, or an address without brackets. */
  readonly hostname: string
  readonly port: number
  readonly secure: boolean
  /** The own TLS settings of the destination that it belongs to; null if it is shared by all destinations without such settings. */
  readonly tls: TlsIdentity | null
  readonly idle: Connection[]
  /** How many of the next connections are not kept: see `distrust`. */
  unkept: number
}

/**
 * The TLS settings of one destination, and the origins that it dials with them. Destinations with such settings share no connections with others, and
 * TLS sessions are never resumed, so nobody sends over a connection that another destination's certificate has authenticated.
 */
export class TlsIdentity {
  readonly origins = new Map<string, Origin>()
  readonly #settings: TlsSettings
  readonly #addUsual: boolean
  #context: SecureContext | undefined

  /** `addUsual`: whether `ca` is trusted in addition to the usual authorities, and not instead of them. */
  constructor(settings: TlsSettings, addUsual = false) {
    this.#settings = settings
    this.#addUsual = addUsual
  }

  /** `usual`: the authorities in PEM that are trusted for other destinations; undefined for Node's own. */
  secureContext(usual: string | undefined): SecureContext {
    this.#context ??= this.#createContext(usual)
    return this.#context
  }

  #createContext(usual: string | undefined): SecureContext {
    const { certificate, privateKey, ca } = this.#settings
    let trusted = usual === undefined ? undefined : [usual]
    if (ca !== null) trusted = this.#addUsual ? [ca, ...(trusted ?? getCACertificates('default'))] : [ca]
    return createSecureContext({
      ...(trusted === undefined ? {} : { ca: trusted }),
      ...(certificate === null || privateKey === null ? {} : { cert: certificate, key: privateKey }),
    })
  }
}

/** Why no connection could be made. */
export class DialError extends Error {
  readonly reason: ReasonCode

  constructor(reason: ReasonCode, cause?: unknown) {
    super(`no connection: ${reason}`, { cause })
    this.reason = reason
  }
}

type DialResult = [DialError, null] | [null, Socket]
export type OnDialled = (...result: DialResult) => void

/** The request that is in progress on a connection. Only one of the last two is called, and nothing after it. */
export interface ConnectionUser {
  /** The bytes may change after the call. */
  received(bytes: Buffer): void
  /** The receiver has ended the connection, or it was closed. */
  ended(): void
  failed(error: Error): void
}

/**
 * What arrives on any connection, until it was handled. Each socket reads into the same memory, so none is allocated for a read: nothing that is
 * called with it writes to a socket, which could read another one.
 */
const received = Buffer.allocUnsafeSlow(65_536)

/** One connection at a time: what was dialled, and the request that is in progress. */
export class Connection {
  readonly origin: Origin
  phase: 'lookup' | 'connect' | 'tls' | 'open' = 'lookup'
  /** The number of requests that were written to it. */
  requests = 0
  /** The number of times that connections had been given back when this one was; 0 while it is in use. */
  idleSince = 0
  idleUntilMs = 0
  /** Of the last answer. */
  lastHead: AnswerHead | null = null
  address: string | null = null
  dnsMs: number | null = null
  connectMs: number | null = null
  tlsMs: number | null = null
  readonly #connections: Connections
  #socket: Socket | null = null
  #user: ConnectionUser | null = null
  /** Not kept longer than needed: it has the first request, and a connection may live for long. */
  #onDialled: OnDialled | null = null
  #isForRequests = false
  #discarded = false

  constructor(origin: Origin, connections: Connections) {
    this.origin = origin
    this.#connections = connections
  }

  get isOpen(): boolean {
    return this.#socket !== null && !this.#socket.destroyed
  }

  /** Bytes of the request that have not been sent yet. */
  get unsentBytes(): number {
    return this.#socket?.writableLength ?? 0
  }

  /** Writes a request to an open connection that was dialled with `dialForRequests`. */
  write(user: ConnectionUser, head: string, body: string | Buffer): void {
    const socket = this.#socket as Socket
    this.#user = user
    this.requests += 1
    // If the head is ASCII, one text is one packet, without a copy of the body.
    if (typeof body === 'string' && Buffer.byteLength(head) === head.length) socket.write(head + body)
    else {
      socket.cork()
      socket.write(head, 'latin1')
      socket.write(body)
      socket.uncork()
    }
  }

  /** From now on, another user gets the rest of the answer. */
  pass(user: ConnectionUser): void {
    this.#user = user
  }

  /** What arrives from now on was not asked for, and ends the connection. */
  leave(): void {
    this.#user = null
  }

  /** Ends it at once, whatever it is doing. */
  discard(): void {
    if (this.#discarded) return
    this.#discarded = true
    this.#user = null
    this.#connections.forget(this)
    this.#socket?.destroy()
  }

  /** What arrives is given to the user of the connection. */
  dialForRequests(onDialled: OnDialled): Promise<void> {
    this.#isForRequests = true
    return this.dial(onDialled)
  }

  /** The caller reads from the socket itself. */
  async dial(onDialled: OnDialled): Promise<void> {
    const { hostname } = this.origin
    this.#onDialled = onDialled
    this.#connections.remember(this)
    try {
      let addresses: readonly string[] = [hostname]
      if (isIP(hostname) === 0) {
        const startedAtMs = performance.now()
        addresses = await this.#connections.resolve(hostname)
        this.dnsMs = performance.now() - startedAtMs
      }
      if (this.#discarded) throw new DialError('aborted')
      const permitted = addresses.filter((address) => this.#connections.guard.permits(address))
      if (permitted.length === 0) throw new DialError(addresses.length === 0 ? 'dns_not_found' : 'address_refused')
      this.#connect(permitted)
    } catch (error) {
      this.#finish(error instanceof DialError ? error : new DialError('connection_failed', error), null)
    }
  }

  #connect(permitted: readonly string[]): void {
    const { secure } = this.origin
    const startedAtMs = performance.now()
    const socket = this.#openSocket(permitted)
    this.#socket = socket
    this.phase = 'connect'
    socket.on('connectionAttempt', (ip: string) => {
      this.address = ip
    })
    socket.once('connect', () => {
      this.connectMs = performance.now() - startedAtMs
      this.address = socket.remoteAddress ?? this.address
      this.phase = secure ? 'tls' : 'open'
      if (!secure) this.#finish(null, socket)
    })
    socket.once('secureConnect', () => {
      this.tlsMs = performance.now() - startedAtMs - (this.connectMs ?? 0)
      this.phase = 'open'
      this.#finish(null, socket)
    })
    socket.on('error', (error: Error) => {
      this.#finish(new DialError(this.phase === 'tls' ? reasonOfTlsError(error) : reasonOfError(error), error), null)
      const user = this.#user
      this.#user = null
      user?.failed(error)
    })
    socket.once('close', () => {
      this.#finish(new DialError(this.phase === 'tls' ? 'tls_failure' : 'connection_closed'), null)
      this.#connections.forget(this)
      this.#ended()
    })
  }

  #finish(...result: DialResult): void {
    const onDialled = this.#onDialled
    if (onDialled === null) return
    this.#onDialled = null
    if (this.#isForRequests) result[1]?.on('end', () => this.#ended())
    onDialled(...result)
  }

  #reading(): OnReadOpts {
    const callback = (bytes: number): boolean => {
      this.#received(received.subarray(0, bytes))
      return true
    }
    return { buffer: received, callback }
  }

  #received(bytes: Buffer): void {
    if (this.#user === null) this.discard()
    else this.#user.received(bytes)
  }

  #ended(): void {
    const user = this.#user
    this.#user = null
    if (user === null) this.discard()
    else user.ended()
  }

  #openSocket(permitted: readonly string[]): Socket {
    const { hostname, port, secure } = this.origin
    const onread = this.#isForRequests ? this.#reading() : undefined
    // One address is dialled as it is; several are handed over as the answer to a lookup, which then never happens.
    const where =
      permitted.length === 1
        ? { host: permitted[0] as string, port, noDelay: true, onread }
        : { host: hostname, port, noDelay: true, onread, lookup: answering(permitted), ...TRY_EACH }
    if (!secure) return netConnect(where)
    return tlsConnect({
      ...where,
      // Set explicitly, because NODE_TLS_REJECT_UNAUTHORIZED can turn off the default.
      rejectUnauthorized: true,
      secureContext: this.#connections.secureContext(this.origin),
      ALPNProtocols: ['http/1.1'],
      // An address is not a server name. Without one, the certificate is checked against the address.
      ...(isIP(hostname) === 0 ? { servername: hostname.replace(/\.$/, '') } : {}),
    })
  }
}

function answering(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }))
  return (_hostname, _options, callback) => callback(null, all)
}

/** What writes a request. */
export interface Writer {
  write(): void
}

export class Connections {
  readonly guard: AddressGuard
  readonly #lookup: Lookup
  readonly #ca: string | undefined
  readonly #maxOpen: number
  readonly #all = new Set<Connection>()
  #writers: Writer[] = []
  #sweep: NodeJS.Timeout | undefined
  /** How often connections were given back. */
  #releases = 0
  readonly #lookups = new Map<string, Promise<readonly string[]>>()
  #origins = new Map<string, Origin>()
  #secureContext: SecureContext | undefined
  #closed = false

  constructor({ guard, lookup = createNameLookup(), ca, maxOpen = MAX_OPEN }: ConnectionsOptions) {
    this.guard = guard
    this.#lookup = lookup
    this.#ca = ca
    this.#maxOpen = maxOpen
  }

  /** The URL's scheme must be http or https. */
  originOf(url: URL, tls: TlsIdentity | null = null): Origin {
    const origins = tls === null ? this.#origins : tls.origins
    let origin = origins.get(url.origin)
    if (origin === undefined) {
      const secure = url.protocol === 'https:'
      const hostname = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname
      origin = {
        hostname,
        port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
        secure,
        tls,
        idle: [],
        unkept: 0,
      }
      origins.set(url.origin, origin)
    }
    return origin
  }

  /** Connections to origins that are forgotten live on until they have been idle for long enough. */
  forgetOrigins(): void {
    this.#origins = new Map()
  }

  /** The warmest free connection, or a new one. How many there are at once is up to how many attempts the caller makes. */
  take(origin: Origin): Connection {
    for (;;) {
      const connection = origin.idle.pop()
      if (connection === undefined) return this.open(origin)
      connection.idleSince = 0
      if (connection.isOpen && performance.now() < connection.idleUntilMs) return connection
      connection.discard()
    }
  }

  /**
   * Writes to a connection that was taken at the end of this turn of the event loop. By then it may be known that the receiver has closed it, or has sent
   * more than its last answer, which the request must not get as its own.
   */
  writeSoon(writer: Writer): void {
    if (this.#writers.push(writer) === 1) setImmediate(() => this.#write())
  }

  #write(): void {
    const writers = this.#writers
    this.#writers = []
    for (const writer of writers) writer.write()
  }

  open(origin: Origin): Connection {
    if (this.#all.size >= this.#maxOpen) this.#coldest()?.discard()
    return new Connection(origin, this)
  }

  /** The one that has been idle for the longest. Only looked for when there are too many, so that giving one back costs nothing. */
  #coldest(): Connection | null {
    let coldest: Connection | null = null
    for (const connection of this.#all) {
      if (connection.idleSince > 0 && (coldest === null || connection.idleSince < coldest.idleSince)) coldest = connection
    }
    return coldest
  }

  /**
   * The receiver closed a connection that was kept, and a request that was written to it must be sent again. If the receiver had read it, it gets it
   * twice. Some receivers close every connection after their answer without announcing it, so some of the next connections are not kept.
   */
  distrust(origin: Origin): void {
    origin.unkept = UNKEPT
  }

  /** Gives back a connection whose answer was read to its end. `keepsAlive`: whether another request may be sent over it. */
  release(connection: Connection, keepsAlive: boolean, announcedIdleMs: number | null): void {
    const { origin } = connection
    const idleMs = announcedIdleMs === null ? IDLE_MS : Math.min(announcedIdleMs - ANNOUNCED_IDLE_MARGIN_MS, ANNOUNCED_IDLE_MAX_MS)
    // If the response arrived before the whole request was sent, the rest of it would precede the next request.
    if (this.#closed || connection.unsentBytes > 0) connection.discard()
    else if (origin.unkept > 0) {
      origin.unkept -= 1
      connection.discard()
    } else if (!keepsAlive || idleMs <= 0) connection.discard()
    else {
      connection.leave()
      connection.idleUntilMs = performance.now() + idleMs
      connection.idleSince = ++this.#releases
      origin.idle.push(connection)
      this.#sweep ??= setInterval(() => this.#closeStale(), SWEEP_MS).unref()
    }
  }

  #closeStale(): void {
    const nowMs = performance.now()
    for (const connection of this.#all) if (connection.idleSince > 0 && nowMs >= connection.idleUntilMs) connection.discard()
    if (this.#all.size === 0) this.#endSweep()
  }

  #endSweep(): void {
    clearInterval(this.#sweep)
    this.#sweep = undefined
  }

  /** Closes all connections: requests in flight fail, and no connection is kept from now on. */
  discardAll(): void {
    this.#closed = true
    this.#endSweep()
    for (const connection of this.#all) connection.discard()
  }

  /** Closes idle connections, and keeps none from now on. Requests in flight continue. */
  discardIdle(): void {
    this.#closed = true
    for (const connection of this.#all) if (connection.idleSince > 0) connection.discard()
  }

  remember(connection: Connection): void {
    this.#all.add(connection)
  }

  forget(connection: Connection): void {
    this.#all.delete(connection)
    connection.idleSince = 0
    const { idle } = connection.origin
    const index = idle.indexOf(connection)
    if (index !== -1) idle.splice(index, 1)
  }

  /** One lookup per name at a time, however many attempts wait for it. */
  resolve(hostname: string): Promise<readonly string[]> {
    let pending = this.#lookups.get(hostname)
    if (pending === undefined) {
      pending = this.#lookup(hostname)
        .catch((error: unknown) => {
          throw new DialError(reasonOfLookupError(error), error)
        })
        .finally(() => this.#lookups.delete(hostname))
      this.#lookups.set(hostname, pending)
    }
    return pending
  }

  /** Created once, because reading the certificate authorities takes longer than a handshake. */
  secureContext({ tls }: Pick<Origin, 'tls'>): SecureContext {
    if (tls !== null) return tls.secureContext(this.#ca)
    this.#secureContext ??= createSecureContext(this.#ca === undefined ? {} : { ca: this.#ca })
    return this.#secureContext
  }
}
