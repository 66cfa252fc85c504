// Checks whether a URL can be dialled, step by step: name, guard, connection, handshake, certificate. Dials like an attempt (connections.ts
// has the same guard, authorities and timeouts) and sends nothing. Never rejects: every failure is part of the report.

import { isIP, connect as netConnect, type Socket } from 'node:net'
import { type TLSSocket, connect as tlsConnect } from 'node:tls'
import type { TlsSettings } from '../../../store/store.ts'
import { REASONS, type ReasonCode, reasonOfError, reasonOfTlsError } from '../../link/outcome.ts'
import type { AddressGuard } from './address-guard.ts'
import { Connections, DialError, type Origin, TlsIdentity } from './connections.ts'
import type { Lookup } from './name-lookup.ts'

/** The result of dialling a URL. */
export interface DialReport {
  /** Null when the URL can be dialled. */
  reason: string | null
  /** Why the URL cannot be dialled, as a sentence for people; null if it can. */
  error: string | null
  address: string | null
  dnsMs: number | null
  connectMs: number | null
  tlsMs: number | null
  certificateExpiresAtMs: number | null
}

export interface DialCheckOptions {
  guard: AddressGuard
  lookup?: Lookup | undefined
  /** Certificate authorities in PEM, to trust instead of the usual ones. */
  ca?: string | undefined
}

/** Never rejects. `tls`: the own TLS settings of the destination. */
export type DialCheck = (url: string, timeoutMs: number, tls?: TlsSettings | null) => Promise<DialReport>

export function createDialCheck(options: DialCheckOptions): DialCheck {
  const connections = new Connections(options)

  return async (text, timeoutMs, tls = null) => {
    const report: DialReport = {
      reason: null,
      error: null,
      address: null,
      dnsMs: null,
      connectMs: null,
      tlsMs: null,
      certificateExpiresAtMs: null,
    }
    const url = URL.parse(text)
    if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return failed(report, 'invalid_request')
    let socket: Socket | undefined
    let deadline: NodeJS.Timeout | undefined
    const late = new Promise<ReasonCode>((resolve) => {
      deadline = setTimeout(resolve, timeoutMs, 'timeout')
    })
    const origin = connections.originOf(url, tls === null ? null : new TlsIdentity(tls))
    const dialled = dial(connections, origin, report, (made) => {
      socket = made
    }).then(
      () => null,
      (error: unknown) => (error instanceof DialError ? error.reason : reasonOfError(error)),
    )
    const reason = await Promise.race([dialled, late])
    clearTimeout(deadline)
    socket?.destroy()
    // Returns a copy, because a step that is still running may write to the report later.
    return reason === null ? { ...report } : failed(report, reason)
  }
}

function failed(report: DialReport, reason: ReasonCode): DialReport {
  return { ...report, reason, error: REASONS[reason][1] }
}

async function dial(connections: Connections, origin: Origin, report: DialReport, made: (socket: Socket) => void): Promise<void> {
  const { hostname } = origin
  let addresses: readonly string[] = [hostname]
  if (isIP(hostname) === 0) {
    const startedAtMs = performance.now()
    addresses = await connections.resolve(hostname)
    report.dnsMs = performance.now() - startedAtMs
  }
  const permitted = addresses.filter((address) => connections.guard.permits(address))
  if (permitted.length === 0) throw new DialError(addresses.length === 0 ? 'dns_not_found' : 'address_refused')
  let problem: unknown
  for (const address of permitted) {
    try {
      report.address = address
      return await connect(connections, origin, address, report, made)
    } catch (error) {
      problem = error
    }
  }
  throw problem
}

function connect(
  connections: Connections,
  origin: Origin,
  address: string,
  report: DialReport,
  made: (socket: Socket) => void,
): Promise<void> {
  const { hostname, port, secure } = origin
  const startedAtMs = performance.now()
  const socket = secure
    ? tlsConnect({
        host: address,
        port,
        rejectUnauthorized: true,
        secureContext: connections.secureContext(origin),
        ALPNProtocols: ['http/1.1'],
        ...(isIP(hostname) === 0 ? { servername: hostname.replace(/\.$/, '') } : {}),
      })
    : netConnect({ host: address, port })
  made(socket)
  return new Promise((resolve, reject) => {
    let shaking = false
    socket.once('connect', () => {
      report.connectMs = performance.now() - startedAtMs
      shaking = secure
      if (!secure) resolve()
    })
    socket.once('secureConnect', () => {
      report.tlsMs = performance.now() - startedAtMs - (report.connectMs ?? 0)
      const expires = Date.parse((socket as TLSSocket).getPeerCertificate().valid_to)
      report.certificateExpiresAtMs = Number.isNaN(expires) ? null : expires
      resolve()
    })
    socket.on('error', (error) => reject(new DialError(shaking ? reasonOfTlsError(error) : reasonOfError(error), error)))
    socket.once('close', () => reject(new DialError(shaking ? 'tls_failure' : 'connection_closed')))
  })
}
