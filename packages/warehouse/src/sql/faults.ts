// Errors of DuckDB as sentences with a line and a column. DuckDB is asked to write its errors as JSON, with the position in bytes.

import type { SqlFault } from './protocol.ts'

interface Reported {
  exception_type?: string
  exception_message?: string
  position?: string
}

/** Thrown where the query is the cause. */
export class QueryFault extends Error {
  readonly fault: SqlFault

  constructor(fault: SqlFault) {
    super(fault.message)
    this.fault = fault
  }
}

export function faultAt(query: string, position: number | null, message: string): SqlFault {
  return { code: 'sql_invalid', message, ...placeOf(query, position) }
}

/** From 1. The column counts as JavaScript and editors do. */
export function placeOf(query: string, position: number | null): { line: number | null; column: number | null } {
  if (position === null) return { line: null, column: null }
  const before = Buffer.from(query).subarray(0, position).toString()
  const lines = before.split('\n')
  return { line: lines.length, column: (lines.at(-1) as string).length + 1 }
}

/** Positions in statements of our own mean nothing to the author of the query. */
export function faultOf(error: unknown, query: string, isOfQuery: boolean): SqlFault {
  if (error instanceof QueryFault) return error.fault
  const text = error instanceof Error ? error.message : String(error)
  const reported = reportOf(text)
  const kind = reported.exception_type ?? ''
  const message = sentenceOf(reported.exception_message ?? text)
  const position = reported.position === undefined ? null : Number(reported.position)
  const isGone = kind === 'IO' && /no such file|cannot open file|no files found/i.test(message)
  if (isGone)
    return { ...nowhere('sql_failed', 'A file of the lake was removed while the query ran. Run the query again.'), isFileGone: true }
  if (kind === 'Out of Memory')
    return nowhere(
      'sql_too_large',
      'The query needs more memory than a query may use. Select fewer rows or columns, or group by fewer values.',
    )
  if (kind === 'Permission')
    return {
      code: 'sql_invalid',
      message: 'A query can only read the tables of the lake, no files or addresses.',
      ...placeOf(query, position),
    }
  if (kind === 'IO' || kind === 'INTERNAL' || kind === 'FATAL') return nowhere('sql_failed', withoutPaths(message))
  return { code: 'sql_invalid', message: withoutPaths(message), ...placeOf(query, isOfQuery ? position : null) }
}

function nowhere(code: SqlFault['code'], message: string): SqlFault {
  return { code, message, line: null, column: null }
}

function reportOf(text: string): Reported {
  const start = text.indexOf('{')
  if (start === -1) return {}
  try {
    return JSON.parse(text.slice(start)) as Reported
  } catch {
    return {}
  }
}

/** Without drawings of the query and the names of internal tables as suggestions. */
function sentenceOf(message: string): string {
  const text = message
    .split('\n')
    .filter((line) => !/^(LINE \d+:|\s*\^)/.test(line) && !/^Did you mean "(pg_|sqlite_|duckdb_)/.test(line))
    .join('\n')
    .trim()
  return text === '' ? 'The query has no statement.' : text
}

/** Where the files of the lake are on this machine is nobody's business. */
function withoutPaths(message: string): string {
  return message.replace(/"?\/[^\s"']*\.parquet"?/g, (path) => path.replace(/^("?).*\/([^/]+\/[^/]+)$/, '$1$2'))
}
