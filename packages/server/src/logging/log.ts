// The log: JSON lines to stderr, for programs; on a terminal the same as one readable line each. Secrets do not get here:
// what is logged is named field by field, and never a request's headers or a destination as a whole.

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

export function createLog(level: LogLevel, stream: NodeJS.WriteStream = process.stderr): Log {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  }
  if (!stream.isTTY) return pino(options, pino.destination({ fd: 2, sync: false }))
  return pino(options, { write: (line: string) => stream.write(readable(JSON.parse(line) as Line)) })
}

const COLOURS = { trace: 'gray', debug: 'gray', info: 'green', warn: 'yellow', error: 'red', fatal: 'red' } as const

/** One line each, with everything escaped that a terminal would act on, because a log line may quote what a stranger sent. */
function readable({ level, time, msg = '', ...fields }: Line): string {
  const label = styleText(COLOURS[level as keyof typeof COLOURS] ?? 'gray', level.padEnd(5))
  const rest = Object.entries(fields).map(([name, value]) => `${harmless(name)}=${harmless(JSON.stringify(value) ?? '')}`)
  return `${styleText('gray', time.slice(11, 23))} ${label} ${[harmless(msg), styleText('gray', rest.join(' '))].join('  ').trimEnd()}\n`
}
