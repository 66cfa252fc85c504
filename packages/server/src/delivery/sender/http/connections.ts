// The pool of connections to receivers. attempt.ts sends requests over them and interprets the responses.

import { createSecureContext, type SecureContext } from 'node:tls'
import { reasonOfLookupError } from '../../link/outcome.ts'
import type { AddressGuard } from './address-guard.ts'
import { Connection, type ConnectionPool, DialError, type Origin, type TlsIdentity } from './connection.ts'
import { createNameLookup, type Lookup } from './name-lookup.ts'

/** Less than the 5 s after which node:http, the least patient of the usual servers, closes an idle connection. */
const IDLE_MS = 4_000
/** If a receiver announces how long it keeps a connection, that is used instead, less one second for network latency. */
const ANNOUNCED_IDLE_MAX_MS = 15_000
const ANNOUNCED_IDLE_MARGIN_MS = 1_000
/** How often connections that were idle for long enough are closed. */
const SWEEP_MS = 500
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

/** What writes a request. */
export interface Writer {
  write(): void
}

export class Connections implements ConnectionPool {
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
