// Prints lists and single resources as text or JSON, in the same way for every command.

import type { JsonObject } from '@switchyard/protocol'
import type { Query } from '../service/api.ts'
import type { Call, Flag } from './command.ts'
import type { Output } from './output.ts'
import { parseCount, parseTimeFlag } from './times.ts'

export type Column = readonly [title: string, value: (entry: JsonObject) => unknown]

const DEFAULT_LIMIT = 50

export const LIMIT_FLAG: Readonly<Record<string, Flag>> = {
  limit: { placeholder: 'NUMBER', description: 'The maximum number of entries to show.', defaultText: String(DEFAULT_LIMIT) },
}

export const PERIOD_FLAGS: Readonly<Record<string, Flag>> = {
  from: { placeholder: 'TIME', description: 'The start of the period: 2h (two hours ago) or 2026-11-14T09:00:00Z.' },
  to: { placeholder: 'TIME', description: 'The end of the period, in the same format.' },
}

export function periodOf({ flag }: Call): { from: string | undefined; to: string | undefined } {
  const [from, to] = [flag('from'), flag('to')]
  return {
    from: from === undefined ? undefined : parseTimeFlag('from', from),
    to: to === undefined ? undefined : parseTimeFlag('to', to),
  }
}

/** Shows the whole list. */
export async function showAll(call: Call, path: string, query: Query, columns: readonly Column[], none: string): Promise<void> {
  await showSome(call, path, query, columns, none, Number.POSITIVE_INFINITY)
}

/** Shows the newest entries, up to --limit. */
export async function showNewest(call: Call, path: string, query: Query, columns: readonly Column[], none: string): Promise<void> {
  const given = call.flag('limit')
  await showSome(call, path, query, columns, none, given === undefined ? DEFAULT_LIMIT : parseCount('limit', given))
}

async function showSome(call: Call, path: string, query: Query, columns: readonly Column[], none: string, limit: number): Promise<void> {
  const entries: JsonObject[] = []
  let isMore = false
  // Reads one more than it shows, to know whether there are more.
  for await (const entry of call.api.all(path, { ...query, limit: Math.min(1_000, limit + 1) })) {
    if (entries.length >= limit) {
      isMore = true
      break
    }
    entries.push(entry)
  }
  showEntries(call, entries, columns, none)
  if (isMore && !call.json) call.out.remark(`Showing the first ${limit}. Use --limit to show more.`)
}

export function showEntries({ json, out }: Call, entries: readonly JsonObject[], columns: readonly Column[], none: string): void {
  if (json) out.json(entries)
  else if (entries.length === 0) out.remark(none)
  else
    out.table(
      columns.map(([title]) => title),
      entries.map((entry) => columns.map(([, value]) => cell(value(entry)))),
    )
}

/** Shows what a command did: `value` with --json, otherwise a sentence, or what `show` writes. */
export function showResult({ json, out }: Call, value: unknown, show: string | (() => void)): void {
  if (json) out.json(value)
  else if (typeof show === 'string') out.line(show)
  else show()
}

/** Shows one resource with a line for each field. Undefined values are left out. */
export function showFacts(out: Output, facts: readonly (readonly [name: string, value: unknown])[], indent = ''): void {
  const shown = facts.filter(([, value]) => value !== undefined)
  const wide = Math.max(...shown.map(([name]) => name.length)) + 2
  for (const [name, value] of shown) out.line(`${indent}${out.paint('dim', name.padEnd(wide))}${cell(value)}`)
}

/** Formats any value of a response on one line. */
export function cell(value: unknown): string {
  if (value === null || value === undefined || value === '') return '–'
  if (value === true) return 'yes'
  if (value === false) return 'no'
  if (Array.isArray(value)) return value.length === 0 ? '–' : value.map(cell).join(', ')
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** 2026-11-14T09:00:00.000Z → 2026-11-14 09:00:00.000Z: easier to read, and --from still accepts it. */
export function time(value: unknown): string {
  return typeof value === 'string' ? value.replace('T', ' ') : '–'
}

const GOOD = new Set(['delivered', 'finished', 'running', 'closed', 'accepted'])
const BAD = new Set(['failed', 'expired', 'open', 'rejected'])

/** A state in its colour. */
export function state({ out }: Pick<Call, 'out'>, value: unknown): string {
  const word = cell(value)
  return out.paint(GOOD.has(word) ? 'green' : BAD.has(word) ? 'red' : 'yellow', word)
}
