// The trace column of segments: the caller's traceparent, and behind a space its tracestate if it sent one. Null in nearly
// every row, which costs a byte.

import type { TraceContext } from '../store.ts'

export function writeTrace(trace: TraceContext | null): string | null {
  if (trace === null) return null
  return trace.tracestate === null ? trace.traceparent : `${trace.traceparent} ${trace.tracestate}`
}

export function readTrace(column: string | null): TraceContext | null {
  if (column === null) return null
  const space = column.indexOf(' ')
  return space === -1
    ? { traceparent: column, tracestate: null }
    : { traceparent: column.slice(0, space), tracestate: column.slice(space + 1) }
}
