// Parses the caller's W3C Trace Context (https://www.w3.org/TR/trace-context/), as strictly as the standard defines it. An invalid
// trace is ignored and never an error, because it is no reason to reject a request. The result is forwarded as headers, so only
// the characters allowed here may pass.

import type { IncomingMessage } from 'node:http'
import type { TraceContext } from '../model/messages.ts'

const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/
const MAX_TRACESTATE_LENGTH = 512
const MAX_MEMBERS = 32
/** `key=value`; a key may have a tenant before an @. A value is visible ASCII and spaces, without comma and equals sign. */
const MEMBER =
  /^(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/

export function parseTraceContext({ headers }: Pick<IncomingMessage, 'headers'>): TraceContext | null {
  const traceparent = headers['traceparent']
  // Nearly every request has no trace. A header that was sent twice is joined with a comma and therefore invalid.
  if (typeof traceparent !== 'string' || !TRACEPARENT.test(traceparent)) return null
  return { traceparent, tracestate: tracestateOf(headers['tracestate']) }
}

export function traceIdOf(trace: TraceContext | null): string | null {
  return trace === null ? null : trace.traceparent.slice(3, 35)
}

/** Returns the trace of an outgoing request: the trace that all its messages have, or null if they differ. */
export function sharedTrace(traces: readonly (TraceContext | null)[]): TraceContext | null {
  const first = traces[0] ?? null
  if (first === null) return null
  const isSame = (trace: TraceContext | null): boolean =>
    trace === first || (trace?.traceparent === first.traceparent && trace.tracestate === first.tracestate)
  return traces.every(isSame) ? first : null
}

/** An invalid list is dropped as a whole, as the standard requires, while the traceparent is kept. */
function tracestateOf(header: string | string[] | undefined): string | null {
  if (header === undefined) return null
  const text = typeof header === 'string' ? header : header.join(',')
  if (text.length > MAX_TRACESTATE_LENGTH) return null
  const members = text.split(',').map((member) => member.replace(/^[\t ]+|[\t ]+$/g, ''))
  const named = members.filter((member) => member !== '')
  if (named.length === 0 || named.length > MAX_MEMBERS || !named.every((member) => MEMBER.test(member))) return null
  const keys = new Set(named.map((member) => member.slice(0, member.indexOf('='))))
  return keys.size === named.length ? named.join(',') : null
}
