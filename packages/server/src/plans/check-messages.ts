// Counts what a tracking plan would flag in messages that were already sent, by rule, property and code. Pure: nothing is recorded.

import type { JsonObject, PlanJudge, ViolationCode } from '@switchyard/protocol'

export interface Flagged {
  rule: string
  /** With `*` for the index of an element, so that elements of an array count together: `properties.products.*.price`. */
  path: string
  code: ViolationCode
  expected: string
  /** Of the first message. */
  found: string
  messages: number
  /** The messageId of the first message; null if it has none. */
  sample: string | null
}

export class MessageCheck {
  readonly #judge: PlanJudge
  readonly #flagged = new Map<string, Flagged>()
  /** How many messages were checked, and how many of them violate the plan. */
  messages = 0
  flaggedMessages = 0

  constructor(judge: PlanJudge) {
    this.#judge = judge
  }

  add(message: JsonObject): void {
    this.messages++
    const verdict = this.#judge.judge(message)
    if (verdict === null) return
    this.flaggedMessages++
    const seen = new Set<string>()
    for (const { rule, path: exactPath, code, expected, found } of verdict.violations) {
      const path = exactPath.replaceAll(/\.\d+(?=\.|$)/g, '.*')
      const key = JSON.stringify([rule, path, code, expected])
      // Two elements of an array are one message.
      if (seen.has(key)) continue
      seen.add(key)
      const known = this.#flagged.get(key)
      if (known !== undefined) known.messages++
      else {
        const { messageId } = message
        this.#flagged.set(key, { rule, path, code, expected, found, messages: 1, sample: typeof messageId === 'string' ? messageId : null })
      }
    }
  }

  /** The most frequent first. */
  flagged(): Flagged[] {
    return [...this.#flagged.values()].sort((left, right) => right.messages - left.messages || (left.rule < right.rule ? -1 : 1))
  }
}
