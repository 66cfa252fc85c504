// What became of each line, in the order of the file. Answers come in any order; a line is done when it and all before it
// have their ends. So the state never says more than is true, and the list of refused lines is in order and has none twice.

import { writeSync } from 'node:fs'
import type { Refused } from './import-client.ts'
import type { Line } from './import-lines.ts'
import type { ImportState } from './import-state.ts'

/** Nothing is in an empty line: it is passed by, and is not counted. */
export type Outcome = 'empty' | 'accepted' | Refused

export interface Reject {
  line: number
  code: string
  message: string
  text: string
}

export interface Outcomes {
  /** Takes a line, in its place; the function is to be called with what became of it. */
  begin: (line: Line) => (outcome: Outcome) => void
  /** Brings the state to where it is, now. */
  advance: () => void
}

export interface OutcomesOptions {
  state: ImportState
  /** The open file that rejects are written to, as many as `state` says; null: they are told. */
  rejectsFile: number | null
  onReject: (reject: Reject) => void
  /** The state has come to the end of this line. */
  onAdvanced: (last: Line) => void
  /** The list or the state cannot be written; nothing is settled any more. */
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
      // What was written of a list is not known; another run cuts it back.
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
    // Before anything else, so that the state is never ahead of the list.
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
    // Once for all the answers of a request.
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
