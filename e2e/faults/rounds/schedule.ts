// Runs rounds of several rows until the time is over: always of the row that has had the least time so far.

import { seededRandom } from '../system/random.ts'
import type { StoreKind } from '../system/system.ts'
import { EMPTY_RESULT, type Fault, type RoundResult } from './fault.ts'

/** A fault on a store, and its rounds so far. */
export interface Row {
  fault: Fault
  store: StoreKind
  rounds: RoundResult[]
}

export interface ScheduleOptions {
  rows: readonly { fault: Fault; store: StoreKind }[]
  minutes: number
  /** Of the first round; the next round has the next number. */
  seed: number
  /** A row ends when its fault was caused this often. */
  mostFaults?: number
  /** The most faults in a round; each fault has its own default. */
  perRound?: number
  /** Rounds at the same time. */
  jobs?: number
  onRound?: (row: Row, round: { seed: number; result: RoundResult; ms: number }) => void
  say?: (text: string) => void
}

export async function runFaults(options: ScheduleOptions): Promise<Row[]> {
  const { minutes, seed, mostFaults = Number.POSITIVE_INFINITY, perRound, jobs = 1, onRound, say } = options
  const rows = options.rows.map(({ fault, store }) => ({ fault, store, rounds: [] as RoundResult[], usedMs: 0, isBusy: false }))
  const endMs = performance.now() + minutes * 60_000
  let nextSeed = seed

  const left = ({ rounds }: Row): number => mostFaults - rounds.reduce((sum, { faults }) => sum + faults, 0)
  const work = async (): Promise<void> => {
    for (;;) {
      const row = rows.filter((one) => !one.isBusy && left(one) > 0).sort((a, b) => a.usedMs - b.usedMs)[0]
      if (row === undefined || performance.now() >= endMs) return
      const { fault, store, rounds } = row
      const roundSeed = nextSeed++
      const beginMs = performance.now()
      row.isBusy = true
      const result = await fault
        .round({
          store,
          seed: roundSeed,
          random: seededRandom(roundSeed),
          faults: Math.min(perRound ?? fault.perRound, left(row)),
          deadlineMs: endMs,
          say: (text) => say?.(`${fault.key} on ${store}, seed ${roundSeed}: ${text}`),
        })
        // A round that throws has failed; the other rounds go on.
        .catch((error: Error): RoundResult => ({ ...EMPTY_RESULT, problems: [error.stack ?? String(error)] }))
      rounds.push(result)
      row.isBusy = false
      row.usedMs += performance.now() - beginMs
      onRound?.(row, { seed: roundSeed, result, ms: performance.now() - beginMs })
    }
  }
  await Promise.all(Array.from({ length: jobs }, work))
  return rows
}
