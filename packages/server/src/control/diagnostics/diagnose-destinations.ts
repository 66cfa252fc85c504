// How a destination does, in words, and whether its URLs can be dialled. Many destinations often share a host, which is then
// dialled once; and no more than a few are dialled at a time, since this must not look like a scan.

import { isoTime } from '@switchyard/protocol'
import type { DestinationHealth } from '../../delivery/delivery.ts'
import type { DialCheck, DialReport } from '../../delivery/sending/dial-check.ts'
import type { Destination } from '../../store/store.ts'
import type { Finding } from './finding.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const DIALS_AT_ONCE = 8
/** Time enough to renew a certificate. */
const CERTIFICATE_DAYS = 14

export function checkDestination(
  destination: Destination,
  health: Pick<DestinationHealth, 'breaker'> | undefined,
  pending: number,
  oldestAtMs: number | null,
  nowMs: number,
): Finding {
  const { id, name, enabled, paused } = destination
  const owed =
    pending === 0 ? 'nothing is pending' : `${pending} pending${oldestAtMs === null ? '' : `, the oldest since ${isoTime(oldestAtMs)}`}`
  if (!enabled) {
    const message = `${name} is disabled; ${owed}.`
    return pending === 0
      ? { state: 'good', message, advice: null }
      : { state: 'warning', message, advice: `What it is owed is held until it is enabled: switchyard destinations enable ${id}` }
  }
  if (paused) {
    const advice = `What it is owed is held, and grows, until it is resumed: switchyard destinations resume ${id}`
    return { state: 'warning', message: `${name} is paused; ${owed}.`, advice }
  }
  const failures = `switchyard deliveries --destination ${id} --state pending`
  if (health !== undefined && health.breaker !== 'closed') {
    const message = `${name} fails again and again, so one request at a time probes it; ${owed}.`
    return { state: 'bad', message, advice: `See why: ${failures}` }
  }
  if (oldestAtMs !== null && nowMs - oldestAtMs > HOUR_MS)
    return { state: 'warning', message: `${name}: ${owed}.`, advice: `See why: ${failures}` }
  return { state: 'good', message: `${name}: ${owed}.`, advice: null }
}

/** One dial for each origin, few at a time, all over by the deadline. */
export function createUrlChecks(dial: DialCheck | undefined, deadlineMs: number): (url: string, timeoutMs: number) => Promise<Finding> {
  const byOrigin = new Map<string, Promise<DialReport | null>>()
  const waiting: (() => void)[] = []
  const endAtMs = performance.now() + deadlineMs
  let running = 0

  async function inTurn(url: string, timeoutMs: number): Promise<DialReport | null> {
    if (running >= DIALS_AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve))
    running += 1
    try {
      const leftMs = endAtMs - performance.now()
      return leftMs <= 0 || dial === undefined ? null : await dial(url, Math.min(timeoutMs, leftMs))
    } finally {
      running -= 1
      waiting.shift()?.()
    }
  }

  return async (url, timeoutMs) => {
    const { origin } = new URL(url)
    let report = byOrigin.get(origin)
    if (report === undefined) {
      report = inTurn(url, timeoutMs)
      byOrigin.set(origin, report)
    }
    return judgeDial(origin, await report, Date.now())
  }
}

export function judgeDial(origin: string, report: DialReport | null, nowMs: number): Finding {
  if (report === null) return { state: 'unknown', message: `${origin} was not dialled in time.`, advice: null }
  const { reason, error, address, certificateExpiresAtMs } = report
  const steps = [
    ['name', report.dnsMs],
    ['connection', report.connectMs],
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
    return { state: 'warning', message, advice: 'Have the receiver renew it: from then on every attempt fails for good.' }
  }
  return { state: 'good', message: `${origin} can be reached (${how}).`, advice: null }
}

const ADVICE: Readonly<Record<string, string>> = {
  address_refused: 'If this address is meant, name it in SWITCHYARD_ALLOW_ADDRESSES.',
  connection_refused: 'Nothing listens there: start the receiver, or correct the URL.',
  dns_not_found: 'Correct the host name in the URL.',
  dns_failure: 'Look at the name servers of this machine.',
  timeout: 'Look whether a firewall stands between.',
  unreachable: 'Look at the network of this machine.',
  tls_self_signed: 'The receiver needs a certificate of a known authority.',
  tls_expired: 'The receiver must renew its certificate.',
  tls_wrong_host: "Use the host name that is in the receiver's certificate.",
  tls_untrusted: 'The receiver needs a certificate of a known authority, with its intermediate ones.',
}
