// What an action writes to the console, or to the logger that the library gives it, belongs to its run.

import { format } from 'node:util'
import { runs } from './run-trace.ts'

const METHODS = ['debug', 'info', 'log', 'warn', 'error', 'trace', 'dir'] as const

export function installLogCapture(): void {
  for (const method of METHODS) {
    const original = console[method] as (...args: unknown[]) => void
    console[method] = (...args: unknown[]) => {
      const trace = runs.getStore()?.trace
      if (trace === undefined) original(...args)
      else trace.log(format(...args))
    }
  }
}

const log = (...args: unknown[]): void => runs.getStore()?.trace.log(format(...args))

/** For the option `logger` of the library. */
export const runLogger = {
  level: 'info',
  name: 'integration',
  debug: log,
  info: log,
  warn: log,
  error: log,
  crit: log,
  log,
  withTags(): void {},
}
