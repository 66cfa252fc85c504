// The trace column of segments: the caller's traceparent, followed by a space and its tracestate if there is one. Null in nearly every row, which
// takes one byte.

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
