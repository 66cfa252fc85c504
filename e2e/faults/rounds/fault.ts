// What a row of the fault ledger is: a fault, the stores that it applies to, and rounds that cause it many times while messages flow.
// A round starts its own system, causes faults at random moments, and ends with an audit. Its seed determines everything random in it.
// Most rows are an `Injection`: see round.ts. A row that needs another system implements `round` itself.

import type { Random } from '../system/random.ts'
import type { StoreKind, System, SystemOptions } from '../system/system.ts'

/** The time of a fault, in performance.now(): from its cause to the moment when the system can recover by itself. */
export interface FaultTime {
  fromMs: number
  toMs: number
  /** Until when a process that dies, or is declared dead, may have sent requests; toMs and RESUME_MS later by default. */
  sentUntilMs?: number
}

export interface RoundOptions {
  store: StoreKind
  seed: number
  random: Random
  /** The most faults in this round. */
  faults: number
  /** No further fault is caused after this time, in performance.now(). */
  deadlineMs: number
  /** Prints progress. */
  say: (text: string) => void
  /** How long the system may take to recover, and deliveries to end; 300 s by default. */
  patienceMs?: number
  /** Further options of Node.js for each node. */
  execArgv?: readonly string[]
}

export interface RoundResult {
  /** How many times the fault was caused. */
  faults: number
  /** Messages whose call was answered with 200. */
  acknowledged: number
  /** Acknowledged messages that did not arrive, or whose outcome is not recorded. */
  lost: number
  /** Messages at ordered destinations: how many were checked, and how many were out of order. Null in rounds of earlier versions. */
  ordered: { checked: number; outOfOrder: number } | null
  /** Rows in tables of warehouses: how many must be there, and how many are missing or must not be there. Null in rounds without warehouses. */
  tables: { checked: number; wrong: number } | null
  /** Deliveries of which a receiver accepted more than one copy. */
  repeated: number
  /** The most copies that one fault caused at one destination, and the most that are allowed. */
  mostRepeated: number
  repeatBound: number
  /** The longest time in which no call was answered with 200. Null if the row does not measure it. */
  longestPauseMs: number | null
  /** For each fault that was not followed by another: the time from its end until everything acknowledged before was delivered. */
  recoveredMs: number[]
  /** Everything that is wrong, in sentences. The round failed if there is any. */
  problems: string[]
}

/** The result of a round that failed before its audit. */
export const EMPTY_RESULT: RoundResult = {
  faults: 0,
  acknowledged: 0,
  lost: 0,
  ordered: null,
  tables: null,
  repeated: 0,
  mostRepeated: 0,
  repeatBound: 0,
  longestPauseMs: null,
  recoveredMs: [],
  problems: [],
}

export interface Fault {
  /** The name for --only. */
  key: string
  /** The row's name in the ledger. */
  title: string
  /** How it is caused, for the ledger. */
  how: string
  stores: readonly StoreKind[]
  /** Faults in a round, unless the time is over first. */
  perRound: number
  round(options: RoundOptions): Promise<RoundResult>
  /** Why the fault cannot be caused on this machine; undefined if it can. */
  unavailable?(): string | undefined
  /** What the reader of the ledger should know, and what is not covered. */
  note?: string
}

/** A fault that is caused in the usual system. */
export interface Injection extends Omit<Fault, 'round'> {
  system?: (options: RoundOptions) => Partial<SystemOptions>
  /** Whether one fault may affect all nodes; otherwise it affects one. */
  hitsAllNodes?: boolean
  /** Makes the fault possible again after the previous one. Its time is not measured. */
  prepare?(system: System): Promise<void>
  /** Causes the fault once and undoes it. When it resolves, the system must be able to recover by itself. */
  cause(system: System, random: Random): Promise<{ repeats: boolean } | void>
  /** Before the audit: ends what the fault started beside the usual traffic. Returns problems. */
  finish?(system: System): Promise<string[]>
  /** After the audit: returns further problems. */
  check?(system: System): Promise<string[]>
  /** Messages acknowledged between two faults, at random in this range. */
  between?: readonly [least: number, most: number]
  /** Whether the fault can make a delivery arrive twice; true by default. The result of `cause` takes precedence. */
  repeats?: boolean
  /** Whether copies must arrive before later messages of their keys, because no process dies; false by default. */
  repeatsInOrder?: boolean
  /** Whether what affected nodes send ends soon after the beginning of the fault. */
  stopsSending?: boolean
  /** Whether outcomes cannot be recorded during the fault, and the store reports no error. */
  isSilent?: boolean
  /** Whether retention may drop messages whose deliveries have ended. */
  mayBeDropped?: boolean
}
