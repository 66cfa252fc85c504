// A setting of the service as a row of a table: where it is read from, how it is parsed, and what it means. The rows are in config.ts.

import type { Parsed } from '../parse-values.ts'

export interface Setting<T> {
  variable: `SWITCHYARD_${string}`
  /** The placeholder for the value in `--help`; null for a switch, which has no value. */
  placeholder: string | null
  parse(text: string): Parsed<T>
  fallback: T
  /** The default, as it is shown in the help and the reference. */
  defaultText: string
  description: string
  secret?: true
}

/** A default that needs no explanation is shown as it would be written. */
export function setting<T>(row: Omit<Setting<T>, 'defaultText'> & { defaultText?: string }): Setting<T> {
  const { fallback } = row
  const isOff = fallback === null || fallback === false
  return { defaultText: isOff ? 'off' : Array.isArray(fallback) && fallback.length === 0 ? 'empty' : String(fallback), ...row }
}
