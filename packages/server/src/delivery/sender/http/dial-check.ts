// Checks whether a URL can be dialled, step by step: name, guard, connection, handshake, certificate. Dials as an attempt does
// (connection.ts), and sends nothing. Never rejects: every failure is part of the report.

import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { mailServerOf } from '../../../destinations/webhook/email/mail-server.ts'
import type { TlsSettings } from '../../../store/store.ts'
import { withTimeout } from '../../../timing/with-timeout.ts'
import { REASONS, type ReasonCode } from '../../link/outcome.ts'
import type { AddressGuard } from './address-guard.ts'
import { DialError, TlsIdentity } from './connection.ts'
import { Connections } from './connections.ts'
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
    const none = { address: null, dnsMs: null, connectMs: null, tlsMs: null }
    const mail = mailServerOf(text)
    // Of a mail server, only the connection is checked: TLS may start later.
    const url = mail === null ? URL.parse(text) : mail.dialUrl
    if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return reportOf('invalid_request', none, null)
    const connection = connections.open(connections.originOf(url, tls === null ? null : new TlsIdentity(tls)))
    const dialled = new Promise<ReasonCode | Socket>((resolve) => {
      void connection.dial((error, socket) => resolve(socket ?? (error instanceof DialError ? error.reason : 'connection_failed')))
    })
    const ended = await withTimeout(timeoutMs, dialled, 'timeout' as const)
    const report = typeof ended === 'string' ? reportOf(ended, connection, null) : reportOf(null, connection, expiryOf(ended))
    connection.discard()
    return report
  }
}

function reportOf(
  reason: ReasonCode | null,
  { address, dnsMs, connectMs, tlsMs }: Pick<DialReport, 'address' | 'dnsMs' | 'connectMs' | 'tlsMs'>,
  certificateExpiresAtMs: number | null,
): DialReport {
  return { reason, error: reason === null ? null : REASONS[reason][1], address, dnsMs, connectMs, tlsMs, certificateExpiresAtMs }
}

/** Null without TLS. */
function expiryOf(socket: Socket): number | null {
  const expiresAtMs = socket instanceof TLSSocket ? Date.parse(socket.getPeerCertificate().valid_to) : Number.NaN
  return Number.isNaN(expiresAtMs) ? null : expiresAtMs
}
