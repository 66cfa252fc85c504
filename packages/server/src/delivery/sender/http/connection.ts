// One connection to a receiver. Only addresses that the guard permits are dialled, and a name is not looked up again between the check and the
// dialling, so DNS rebinding has no effect. Certificates are always verified. connections.ts decides how long connections are kept.

import { isIP, type LookupFunction, connect as netConnect, type OnReadOpts, type Socket } from 'node:net'
import { createSecureContext, getCACertificates, type SecureContext, connect as tlsConnect } from 'node:tls'
import type { TlsSettings } from '../../../store/store.ts'
import { type ReasonCode, reasonOfError, reasonOfTlsError } from '../../link/outcome.ts'
import type { AddressGuard } from './address-guard.ts'
import type { AnswerHead } from './plain-answer.ts'

/** How long one of several addresses may take before the next is tried. The 250 ms of node:net are too short for distant continents. */
const TRY_EACH = { autoSelectFamily: true, autoSelectFamilyAttemptTimeout: 1_000 }

/** Each connection reads into memory of its own, so that none is allocated for a read. Most answers are shorter. */
const READ_BYTES = 4_096

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

/** What connections share. */
export interface ConnectionPool {
  readonly guard: AddressGuard
  /** Rejects with a DialError. */
  resolve(hostname: string): Promise<readonly string[]>
  secureContext(origin: Pick<Origin, 'tls'>): SecureContext
  /** Called when it is dialled, and when it is closed. */
  remember(connection: Connection): void
  forget(connection: Connection): void
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
  readonly #pool: ConnectionPool
  #socket: Socket | null = null
  #user: ConnectionUser | null = null
  /** Not kept longer than needed: it has the first request, and a connection may live for long. */
  #onDialled: OnDialled | null = null
  #isForRequests = false
  #discarded = false

  constructor(origin: Origin, pool: ConnectionPool) {
    this.origin = origin
    this.#pool = pool
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
    this.#pool.forget(this)
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
    this.#pool.remember(this)
    try {
      let addresses: readonly string[] = [hostname]
      if (isIP(hostname) === 0) {
        const startedAtMs = performance.now()
        addresses = await this.#pool.resolve(hostname)
        this.dnsMs = performance.now() - startedAtMs
      }
      if (this.#discarded) throw new DialError('aborted')
      const permitted = addresses.filter((address) => this.#pool.guard.permits(address))
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
      this.#pool.forget(this)
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
    const buffer = Buffer.allocUnsafeSlow(READ_BYTES)
    const callback = (bytes: number): boolean => {
      this.#received(buffer.subarray(0, bytes))
      return true
    }
    return { buffer, callback }
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
      secureContext: this.#pool.secureContext(this.origin),
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
