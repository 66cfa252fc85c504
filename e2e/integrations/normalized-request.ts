// A request as text that is the same in each run: without what depends on the time of the run or is random. Times of events are fixed, so only
// times close to now are replaced.

import { gunzipSync } from 'node:zlib'
import type { GatewayRequest } from './gateway/recording-gateway.ts'

/** Say nothing about what is sent; the length follows from the body. */
const LEFT_OUT = new Set(['connection', 'content-length', 'date', 'host', 'transfer-encoding'])
const NEAR_MS = 15 * 60_000

export function normalizedRequest({ method, host, path, headers, bytes }: GatewayRequest): string {
  const body = headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes
  const kept = Object.entries(headers)
    .filter(([name]) => !LEFT_OUT.has(name) && !name.startsWith(':'))
    .map(([name, value]) => `${name}: ${value}`)
    .sort()
  const boundary = /boundary=([^;\s]+)/.exec(headers['content-type'] ?? '')?.[1]
  const text = [`${method} ${host}${path}`, ...kept, '', body.toString()].join('\n')
  return (
    withoutTimes(boundary === undefined ? text : text.replaceAll(boundary, '(boundary)'))
      .replaceAll(/((?:Signature|hmac_sign|PasswordDigest|Nonce)="?)[\w+/]+=*/g, '$1(signature)')
      // Yahoo's audiences expire some months from now.
      .replaceAll(/\bexp=\d{10}/g, 'exp=(later)')
      // A random name that Qualtrics wants for each contact.
      .replaceAll(/^{"[a-z0-9]{16}":{/gm, '{"(random)":{')
      .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, '(uuid)')
  )
}

function withoutTimes(text: string): string {
  return text
    .replaceAll(/\d{4}-\d\d-\d\d[T ]\d\d(?::|%3A)\d\d(?::|%3A)\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?/gi, (time) =>
      nowOr(time, Date.parse(time.replaceAll(/%3A/gi, ':'))),
    )
    .replaceAll(/\d{4}_\d\d_\d\dT\d\d_\d\d_\d\d_\d{3}Z/g, (time) =>
      nowOr(time, Date.parse(time.replace(/(....)_(..)_(..)T(..)_(..)_(..)_/, '$1-$2-$3T$4:$5:$6.'))),
    )
    .replaceAll(/\b\d{8}T\d{6}Z/g, (time) => nowOr(time, Date.parse(time.replace(/(....)(..)(..)T(..)(..)(..)Z/, '$1-$2-$3T$4:$5:$6Z'))))
    .replaceAll(/\b\d{10}(?:\.\d+)?\b/g, (time) => nowOr(time, Number(time) * 1_000))
    .replaceAll(/\b\d{13}\b/g, (time) => nowOr(time, Number(time)))
}

function nowOr(text: string, ms: number): string {
  return Math.abs(ms - Date.now()) < NEAR_MS ? '(now)' : text
}
