// Checks the state of a destination, and whether the service can connect to its URLs. Destinations often share a host, so the service
// connects to each origin once; and only to a few at a time, because this must not look like a port scan.

import { X509Certificate } from 'node:crypto'
import { isoTime } from '@switchyard/protocol'
import type { DestinationHealth } from '../../delivery/delivery.ts'
import type { DialCheck, DialReport } from '../../delivery/sender/http/dial-check.ts'
import { kindOf } from '../../destinations/kinds.ts'
import type { Destination, TlsSettings } from '../../store/store.ts'
import type { Finding } from './finding.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const DIALS_AT_ONCE = 8
/** Warns this many days before a certificate expires, which leaves time to renew it. */
const CERTIFICATE_DAYS = 14

export function checkDestination(
  destination: Destination,
  health: (Pick<DestinationHealth, 'breaker' | 'failure'> & Partial<Pick<DestinationHealth, 'held'>>) | undefined,
  pending: number,
  oldestAtMs: number | null,
  nowMs: number,
): Finding {
  const { id, name, enabled, paused } = destination
  const backlog =
    pending === 0 ? 'nothing is pending' : `${pending} pending${oldestAtMs === null ? '' : `, the oldest since ${isoTime(oldestAtMs)}`}`
  if (!enabled) {
    const message = `${name} is disabled; ${backlog}.`
    return pending === 0
      ? { state: 'good', message, advice: null }
      : {
          state: 'warning',
          message,
          advice: `Pending deliveries wait until the destination is enabled. To enable it, run: switchyard destinations enable ${id}`,
        }
  }
  if (paused) {
    const advice = `The backlog grows until the destination is resumed. To resume it, run: switchyard destinations resume ${id}`
    return { state: 'warning', message: `${name} is paused; ${backlog}.`, advice }
  }
  if (health?.held != null)
    return {
      state: 'bad',
      message: `${name}: deliveries are held, because the destination does not fit the installed version of its integration: ${health.held} ${backlog}.`,
      advice: HELD_ADVICE,
    }
  const expired = expiredCertificate(destination, nowMs)
  if (expired !== null) return expired
  const failure = health?.failure ?? null
  if (failure?.reason === 'auth_refused' || failure?.reason === 'auth_unavailable')
    return {
      state: 'bad',
      message: `${name}: ${failure.error} Nothing is sent without an access token; ${backlog}.`,
      advice: AUTH_ADVICE[failure.reason],
    }
  const advice = `To see the reason of the last attempt of each delivery, run: switchyard deliveries --destination ${id} --state pending`
  // The cause comes first, because it explains the state of the circuit breaker.
  const cause = failure === null ? '' : `${failure.error.replace(/\.$/, ';')} `
  if (health !== undefined && health.breaker !== 'closed') {
    const message = `${name}: ${cause}${backlog}. The circuit breaker is open, because recent attempts failed: one probe is sent at a time.`
    return { state: 'bad', message, advice }
  }
  if (oldestAtMs !== null && nowMs - oldestAtMs > HOUR_MS) return { state: 'warning', message: `${name}: ${cause}${backlog}.`, advice }
  return { state: 'good', message: `${name}: ${backlog}.`, advice: null }
}

export const HELD_ADVICE =
  'Change the settings or the subscriptions of the destination so that it fits, or install the version of Switchyard that it fits. Held deliveries are then sent by themselves.'

const AUTH_ADVICE = {
  auth_refused: "Check the client id, the client secret and the scope in the destination's auth. Deliveries are retried automatically.",
  auth_unavailable: "Check the token endpoint in the destination's auth. Deliveries are retried automatically.",
}

/** Of the client certificate. Receivers refuse an expired one. */
function expiredCertificate(destination: Destination, nowMs: number): Finding | null {
  const { name } = destination
  const certificate = kindOf(destination).requests?.credentials(destination).tls?.certificate ?? null
  if (certificate === null) return null
  const { validToDate } = new X509Certificate(certificate)
  const leftMs = validToDate.getTime() - nowMs
  if (leftMs > CERTIFICATE_DAYS * DAY_MS) return null
  const at = isoTime(validToDate.getTime())
  const message = leftMs > 0 ? `${name}: the client certificate expires at ${at}.` : `${name}: the client certificate expired at ${at}.`
  return { state: leftMs > 0 ? 'warning' : 'bad', message, advice: "Renew the certificate, and set it in the destination's tls." }
}

/** Connects to each origin once, to a few at a time, and stops at the deadline. */
export function createUrlChecks(
  dial: DialCheck | undefined,
  deadlineMs: number,
): (url: string, timeoutMs: number, tls: TlsSettings | null) => Promise<Finding> {
  const byOrigin = new Map<string, Promise<DialReport | null>>()
  const waiting: (() => void)[] = []
  const endAtMs = performance.now() + deadlineMs
  let running = 0

  async function dialNext(url: string, timeoutMs: number, tls: TlsSettings | null): Promise<DialReport | null> {
    if (running >= DIALS_AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve))
    running += 1
    try {
      const leftMs = endAtMs - performance.now()
      return leftMs <= 0 || dial === undefined ? null : await dial(url, Math.min(timeoutMs, leftMs), tls)
    } finally {
      running -= 1
      waiting.shift()?.()
    }
  }

  return async (url, timeoutMs, tls) => {
    const { origin } = new URL(url)
    // The result depends on the own certificates of a destination.
    let report = tls === null ? byOrigin.get(origin) : undefined
    if (report === undefined) {
      report = dialNext(url, timeoutMs, tls)
      if (tls === null) byOrigin.set(origin, report)
    }
    return judgeDial(origin, await report, Date.now())
  }
}

export function judgeDial(origin: string, report: DialReport | null, nowMs: number): Finding {
  if (report === null)
    return { state: 'unknown', message: `The check of ${origin} did not start in time.`, advice: 'Run the diagnostics again.' }
  const { reason, error, address, certificateExpiresAtMs } = report
  const steps = [
    ['DNS', report.dnsMs],
    ['connect', report.connectMs],
    ['TLS', report.tlsMs],
  ].flatMap(([step, ms]) => (typeof ms === 'number' ? [`${step} ${Math.round(ms)} ms`] : []))
  const how = [...(address === null ? [] : [address]), ...steps].join(', ')
  if (reason !== null)
    return {
      state: 'bad',
      message: `${origin} cannot be reached: ${error} (${[reason, how].filter(Boolean).join('; ')})`,
      advice: ADVICE[reason] ?? null,
    }
  if (certificateExpiresAtMs !== null && certificateExpiresAtMs - nowMs < CERTIFICATE_DAYS * DAY_MS) {
    const message = `${origin} can be reached (${how}), but its certificate expires at ${isoTime(certificateExpiresAtMs)}.`
    return {
      state: 'warning',
      message,
      advice: 'Renew the certificate of the receiver. After it has expired, every delivery fails permanently.',
    }
  }
  return { state: 'good', message: `${origin} can be reached (${how}).`, advice: null }
}

const ADVICE: Readonly<Record<string, string>> = {
  address_refused: 'If the service should send to this address, add it to SWITCHYARD_ALLOW_ADDRESSES.',
  connection_refused: 'No program listens on this port: start the receiver, or correct the URL.',
  dns_not_found: 'Correct the host name in the URL.',
  dns_failure: 'Check the DNS servers of this machine.',
  timeout: 'Check whether a firewall blocks the connection.',
  unreachable: 'Check the network of this machine.',
  tls_self_signed: 'The receiver needs a certificate from a trusted authority.',
  tls_expired: 'Renew the certificate of the receiver.',
  tls_wrong_host: "Use a host name that is in the receiver's certificate.",
  tls_untrusted: 'The receiver needs a certificate from a trusted authority, and must send the intermediate certificates too.',
}
