// The doc column of attempts: requests and ended messages as short arrays, because there is one for every request ever
// made. Written on the main thread, where the outcomes are, and read by the reading thread.

import type { AttemptRecord, FinalStateName, RequestRecord } from '../store.ts'

type StoredRequest = [
  url: number,
  startedAtMs: number,
  status: number | null,
  totalMs: number,
  firstByteMs: number | null,
  address: string | null,
  indexes: readonly number[],
  dnsMs?: number | null,
  connectMs?: number | null,
  tlsMs?: number | null,
  reason?: string | null,
  error?: string | null,
  responseStart?: string | null,
]

export interface AttemptDoc {
  /** URLs, referred to by their place. */
  u: string[]
  r: StoredRequest[]
  /** What ended: state, reason, indexes. */
  f: [state: FinalStateName, reason: string | null, indexes: readonly number[]][]
}

export function writeAttemptDoc({ requests, finals }: AttemptRecord): string {
  const urls: string[] = []
  const stored: StoredRequest[] = []
  for (const request of requests) {
    let url = urls.indexOf(request.url)
    if (url === -1) url = urls.push(request.url) - 1
    const { startedAtMs, status, totalMs, firstByteMs, address, indexes, dnsMs, connectMs, tlsMs, reason, error, responseStart } = request
    // A success on a warm connection, which is nearly all of them, has nothing more to say.
    if (reason === null && connectMs === null && dnsMs === null && tlsMs === null && error === null && responseStart === null)
      stored.push([url, startedAtMs, status, brief(totalMs), brief(firstByteMs), address, indexes])
    else {
      const times = [brief(dnsMs), brief(connectMs), brief(tlsMs)] as const
      stored.push([url, startedAtMs, status, brief(totalMs), brief(firstByteMs), address, indexes, ...times, reason, error, responseStart])
    }
  }
  const doc: AttemptDoc = { u: urls, r: stored, f: finals.map(({ state, reason, indexes }) => [state, reason, indexes]) }
  return JSON.stringify(doc)
}

export function requestsOf(doc: AttemptDoc): RequestRecord[] {
  return doc.r.map((stored) => {
    const [url, startedAtMs, status, totalMs, firstByteMs, address, indexes, dnsMs, connectMs, tlsMs, reason, error, responseStart] = stored
    return {
      url: doc.u[url] as string,
      startedAtMs,
      status,
      totalMs,
      firstByteMs,
      address,
      indexes,
      dnsMs: dnsMs ?? null,
      connectMs: connectMs ?? null,
      tlsMs: tlsMs ?? null,
      reason: reason ?? null,
      error: error ?? null,
      responseStart: responseStart ?? null,
    }
  })
}

function brief(ms: number): number
function brief(ms: number | null): number | null
function brief(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms * 100) / 100
}
