// The log: JSON lines on stderr for programs, or one readable line per entry on a terminal. It contains no secrets: fields are logged one by one,
// never all headers of a request or a whole destination.

import { styleText } from 'node:util'
import { pino } from 'pino'
import type { LogLevel } from '../config.ts'
import { harmless } from './terminal-text.ts'

export type Log = pino.Logger

interface Line {
  level: string
  time: string
  msg?: string
  [field: string]: unknown
}

/** Writes of up to this size to a pipe are atomic (PIPE_BUF on Linux). Several processes log to the same pipe, and their lines must not be mixed. */
const MAX_WRITE_BYTES = 4_096

/** Every line has the given fields. */
export function createLog(
  level: LogLevel,
  { stream = process.stderr, fields = null }: { stream?: NodeJS.WriteStream; fields?: object | null } = {},
): Log {
  const options = {
    level,
    base: fields,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  }
  if (!stream.isTTY) return pino(options, pino.destination({ fd: 2, sync: false, maxWrite: MAX_WRITE_BYTES }))
  return pino(options, { write: (line: string) => stream.write(readable(JSON.parse(line) as Line)) })
}

const COLOURS = { trace: 'gray', debug: 'gray', info: 'green', warn: 'yellow', error: 'red', fatal: 'red' } as const

/** Formats an entry as one line. Escapes everything that a terminal would interpret, because entries may quote untrusted input. */
function readable({ level, time, msg = '', ...fields }: Line): string {
  const label = styleText(COLOURS[level as keyof typeof COLOURS] ?? 'gray', level.padEnd(5))
  const rest = Object.entries(fields).map(([name, value]) => `${harmless(name)}=${harmless(JSON.stringify(value) ?? '')}`)
  return `${styleText('gray', time.slice(11, 23))} ${label} ${[harmless(msg), styleText('gray', rest.join(' '))].join('  ').trimEnd()}\n`
}
