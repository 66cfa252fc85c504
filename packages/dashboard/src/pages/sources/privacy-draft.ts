// The privacy rules of a source while they are edited, and what a preview changes in a message. Pure. The API decides whether a rule is valid.

import type { Schemas } from '../../api/client.ts'
import { capitalized } from '../../text/format.ts'
import { differences } from '../settings/difference.ts'

export type Rule = Schemas['PrivacyRule']

export const MAX_RULES = 100
export const ACTIONS: { value: Rule['action']; label: string }[] = [
  { value: 'drop', label: 'Drop' },
  { value: 'hash', label: 'Hash' },
  { value: 'mask', label: 'Mask' },
]
export const ACTION_TEXTS: Record<Rule['action'], string> = {
  drop: 'Removes the value.',
  hash: 'Replaces the value with a keyed hash. Equal values stay equal.',
  mask: 'Keeps the first and the last character.',
}

/** A message to try rules on while the source has none. */
export const SAMPLE = JSON.stringify(
  {
    type: 'identify',
    userId: 'user-1',
    traits: { email: 'alice@example.com', name: 'Alice', plan: 'pro' },
    context: { ip: '192.0.2.7' },
  },
  null,
  2,
)

/** The rows with a path, in the form that the API expects. `rows` has the index of each in the draft. */
export function filledRules(draft: readonly Rule[]): { rules: Rule[]; rows: number[] } {
  const rows = draft.flatMap(({ path }, at) => (path.trim() === '' ? [] : [at]))
  return { rules: rows.map((at) => ({ ...(draft[at] as Rule), path: (draft[at] as Rule).path.trim() })), rows }
}

/** The row and the sentence of an error of the API, such as one with the field `privacy[2].path`; null if it is not about a rule. */
export function rowProblem(
  problem: { field: string | null; message: string } | null,
  rows: readonly number[],
): { row: number; message: string } | null {
  const at = /^privacy\[(\d+)\]/.exec(problem?.field ?? '')?.[1]
  const row = at === undefined ? undefined : rows[Number(at)]
  if (row === undefined || problem === null) return null
  // The field is shown beside the sentence, so the sentence starts without it.
  const text = problem.message.replace(/^privacy\[\d+\](\.\w+)? /, '')
  return { row, message: capitalized(text) }
}

export function sameRules(left: readonly Rule[], right: readonly Rule[]): boolean {
  return left.length === right.length && left.every(({ path, action }, at) => path === right[at]?.path && action === right[at]?.action)
}

type Message = Readonly<Record<string, unknown>>

export function changedFields(before: Message, after: Message): string[] {
  return differences(before, after).map(({ field }) => field)
}

/** Parses the message that the user typed. */
export function typedMessage(text: string): { message: Record<string, unknown> } | { problem: string } {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { message: value as Record<string, unknown> }
  } catch (error) {
    return { problem: `Enter a message as JSON: ${(error as Error).message}.` }
  }
  return { problem: 'Enter a JSON object.' }
}
