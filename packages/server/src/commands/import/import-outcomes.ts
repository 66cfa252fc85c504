// Tracks the outcome of each line in file order. Responses arrive in any order; a line counts as done when it and all lines before it are
// settled. So the saved state never includes a line without an outcome, and the list of rejected lines is in order and without duplicates.

import { writeSync } from 'node:fs'
import type { Rejection } from './import-client.ts'
import type { Line } from './import-lines.ts'
import type { ImportState } from './import-state.ts'

/** Empty lines are skipped and not counted. */
export type Outcome = 'empty' | 'accepted' | Rejection

export interface Reject {
  line: number
  code: string
  message: string
  text: string
}

export interface Outcomes {
  /** Adds a line, in file order. The returned function must be called with its outcome. */
  begin: (line: Line) => (outcome: Outcome) => void
  /** Updates the state at once. */
  advance: () => void
}

export interface OutcomesOptions {
  state: ImportState
  /** The open file for rejects, with the length that `state` says. If it is null, onReject is called instead. */
  rejectsFile: number | null
  onReject: (reject: Reject) => void
  /** The state now includes this line. */
  onAdvanced: (last: Line) => void
  /** The rejects or the state cannot be written. The state does not advance any more. */
  onProblem: (error: unknown) => void
}

interface Entry {
  line: Line
  outcome: Outcome | undefined
  next: Entry | undefined
}

export function createOutcomes({ state, rejectsFile, onReject, onAdvanced, onProblem }: OutcomesOptions): Outcomes {
  let first: Entry | undefined
  let last: Entry | undefined
  let isDue = false
  let isBroken = false

  function advance(): void {
    if (isBroken) return
    try {
      settleFirst()
    } catch (error) {
      // How much of the rejects was written is unknown; the next run truncates the file.
      isBroken = true
      onProblem(error)
    }
  }

  function settleFirst(): void {
    let accepted = 0
    const rejects: Reject[] = []
    let done: Line | undefined
    let entry = first
    for (; entry?.outcome !== undefined; entry = entry.next) {
      const { line, outcome } = entry
      if (outcome === 'accepted') accepted += 1
      else if (outcome !== 'empty') rejects.push({ line: line.number, code: outcome.code, message: outcome.message, text: line.text })
      done = line
    }
    if (done === undefined) return
    // Written first, so that the state is never ahead of the rejects file.
    if (rejectsFile !== null && rejects.length > 0) state.rejectsBytes += writeAll(rejectsFile, rejects)
    first = entry
    if (first === undefined) last = undefined
    state.accepted += accepted
    for (const reject of rejects) {
      state.rejected[reject.code] = (state.rejected[reject.code] ?? 0) + 1
      if (rejectsFile === null) onReject(reject)
    }
    state.offset = done.end
    state.line = done.number
    onAdvanced(done)
  }

  function advanceSoon(): void {
    if (isDue) return
    isDue = true
    // Once for all messages of a request.
    setImmediate(() => {
      isDue = false
      advance()
    })
  }

  return {
    begin(line) {
      const entry: Entry = { line, outcome: undefined, next: undefined }
      if (last === undefined) first = entry
      else last.next = entry
      last = entry
      return (outcome) => {
        entry.outcome = outcome
        if (entry === first) advanceSoon()
      }
    },
    advance,
  }
}

function writeAll(file: number, rejects: readonly Reject[]): number {
  const bytes = Buffer.from(rejects.map((reject) => `${JSON.stringify(reject)}\n`).join(''))
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
  return bytes.length
}
