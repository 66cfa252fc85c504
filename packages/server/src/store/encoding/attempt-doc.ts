// The doc column of attempts: requests and ended deliveries as short arrays, because there is a doc for every attempt ever made.

import { hiddenUrl } from '../../secrets/hidden-url.ts'
import type { AttemptRecord, FinalStateName, LoadRecord, Part, Progress, RequestRecord, RowId } from '../store.ts'

type StoredPart = [origin: RowId, segment: RowId, indexes: readonly number[]]

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
  /** URLs, which requests refer to by index. Without the values of their queries, which may be credentials. */
  u: string[]
  r: StoredRequest[]
  /** The deliveries that ended: state, reason, indexes. */
  f: [state: FinalStateName, reason: string | null, indexes: readonly number[]][]
  /**
   * For requests that also contained messages of other records: their indexes in `r`, the origin whose record lists the contents, and, in that
   * record, the contents.
   */
  g?: [requests: number[], lead: RowId, parts?: StoredPart[]][]
  /** The version of the destination's content: one for all requests, or one for each. Missing if it is 1, as for nearly all destinations. */
  v?: number | number[]
  /** What transformations printed, by the index of the request. */
  l?: [request: number, logs: string][]
  /** The steps of integrations, by the index of the request. */
  s?: [request: number, subscription: string, method: string | null][]
  /** The loads of warehouses, by the index of the request. Tables and their rows alternate. */
  w?: [request: number, id: string, rows: number, bytes: number, durationMs: number, tables: (string | number)[]][]
  /** The messages that became dead letters, the destination that they are owed to, and those that it does not get. */
  d?: [destinationId: string, prefix: string, indexes: readonly number[], withheld?: readonly number[]]
}

export function writeAttemptDoc({ requests, finals, deadLetter }: Pick<AttemptRecord, 'requests' | 'finals' | 'deadLetter'>): string {
  const urls: string[] = []
  const stored: StoredRequest[] = []
  let url = -1
  for (const [at, request] of requests.entries()) {
    // Nearly always the URL of the request before. Hiding the query of a URL takes 0.9 µs.
    if (request.url !== requests[at - 1]?.url) {
      const shown = hiddenUrl(request.url)
      url = urls.indexOf(shown)
      if (url === -1) url = urls.push(shown) - 1
    }
    const { startedAtMs, status, totalMs, firstByteMs, address, indexes, dnsMs, connectMs, tlsMs, reason, error, responseStart } = request
    // A success over a reused connection, which nearly all requests are, has no further fields.
    if (reason === null && connectMs === null && dnsMs === null && tlsMs === null && error === null && responseStart === null)
      stored.push([url, startedAtMs, status, rounded(totalMs), rounded(firstByteMs), address, indexes])
    else {
      const times = [rounded(dnsMs), rounded(connectMs), rounded(tlsMs)] as const
      stored.push([
        url,
        startedAtMs,
        status,
        rounded(totalMs),
        rounded(firstByteMs),
        address,
        indexes,
        ...times,
        reason,
        error,
        responseStart,
      ])
    }
  }
  const doc: AttemptDoc = { u: urls, r: stored, f: finals.map(({ state, reason, indexes }) => [state, reason, indexes]) }
  const gathered = gatheredOf(requests)
  if (gathered.length > 0) doc.g = gathered
  const version = requests[0]?.version ?? 1
  if (requests.some((request) => request.version !== version)) doc.v = requests.map((request) => request.version)
  else if (version !== 1) doc.v = version
  for (const [at, { logs, step, load }] of requests.entries()) {
    if (load !== undefined) (doc.w ??= []).push([at, load.id, load.rows, load.bytes, rounded(load.durationMs), tablesOf(load)])
    if (logs !== null) (doc.l ??= []).push([at, logs])
    if (step !== undefined) (doc.s ??= []).push([at, step.subscription, step.method])
  }
  if (deadLetter !== undefined) {
    const { destinationId, prefix, indexes, withheld } = deadLetter
    doc.d = withheld === undefined ? [destinationId, prefix, indexes] : [destinationId, prefix, indexes, withheld]
  }
  return JSON.stringify(doc)
}

/**
 * The urls column of shipments. URLs are written without query values, as in attempts. The entries of integrations are not URLs and are written as they
 * are: a value that an action left may contain an @.
 */
export function writeProgress(progress: Progress): string | null {
  return progress === null ? null : JSON.stringify(progress.map((entry) => (/^https?:/i.test(entry) ? hiddenUrl(entry) : entry)))
}

/** The requests of one batch to its URLs are adjacent, and their contents are written once. */
function gatheredOf(requests: readonly RequestRecord[]): NonNullable<AttemptDoc['g']> {
  const all: NonNullable<AttemptDoc['g']> = []
  for (const [at, { gathered, indexes }] of requests.entries()) {
    if (gathered === undefined) continue
    const last = all.at(-1)
    if (last !== undefined && last[0].at(-1) === at - 1 && requests[at - 1]?.indexes === indexes) {
      last[0].push(at)
      continue
    }
    const { lead, parts } = gathered
    const stored = parts?.map(({ origin, segment, indexes: of }): StoredPart => [origin, segment, of])
    all.push(stored === undefined ? [[at], lead] : [[at], lead, stored])
  }
  return all
}

export function requestsOf(doc: AttemptDoc): RequestRecord[] {
  return doc.r.map((stored, at) => {
    const gathered = doc.g?.find(([requests]) => requests.includes(at))
    const step = doc.s?.find(([request]) => request === at)
    const loaded = doc.w?.find(([request]) => request === at)
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
      version: (Array.isArray(doc.v) ? doc.v[at] : doc.v) ?? 1,
      logs: doc.l?.find(([request]) => request === at)?.[1] ?? null,
      ...(step && { step: { subscription: step[1], method: step[2] } }),
      ...(loaded && { load: loadOf(loaded) }),
      ...(gathered && { gathered: { lead: gathered[1], parts: gathered[2]?.map(partOf) ?? null } }),
    }
  })
}

function tablesOf({ tables }: LoadRecord): (string | number)[] {
  return tables.flatMap(({ table, rows }) => [table, rows])
}

function loadOf([, id, rows, bytes, durationMs, named]: NonNullable<AttemptDoc['w']>[number]): LoadRecord {
  const tables = named.flatMap((table, at) => (at % 2 === 0 ? [{ table: String(table), rows: Number(named[at + 1]) }] : []))
  return { id, tables, rows, bytes, durationMs }
}

function partOf([origin, segment, indexes]: StoredPart): Part {
  return { origin, segment, indexes }
}

function rounded(ms: number): number
function rounded(ms: number | null): number | null
function rounded(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms * 100) / 100
}
