// Changes of the protocol that make it wrong. Each must be caught by the invariant that is named here: a check that also passes for a
// wrong protocol proves nothing.

import { CAN_END } from './checker.ts'
import type { INVARIANTS } from './invariants.ts'
import type { Bounds } from './state.ts'

type Catches = keyof typeof INVARIANTS | typeof CAN_END

const NEARLY_ONCE = 'received once, and once more for each fault that hit it in flight'

export const MUTANTS = {
  'acknowledge before the commit': 'acknowledged means durable',
  'settle before sending': 'what is recorded as delivered was received',
  'no deduplication': 'stored once, settled once',
  /** Every settlement is written. */
  'no fence': 'owed = delivered + pending + failed',
  /** A settlement is refused only if the row does not exist. */
  'fence by row id': 'only the current claim settles',
  /** The claim number is not compared. */
  'fence by holder id': 'only the current claim settles',
  /** A node compares the end of a lease with its own clock. */
  'lease by the clock of the node': NEARLY_ONCE,
  'send without a lease': NEARLY_ONCE,
  'claim what others hold': NEARLY_ONCE,
  'claim after being declared dead': NEARLY_ONCE,
  /** A node keeps what it claimed or stored under its earlier holder id, if the answer arrives after it has joined again. */
  'keep late claims': NEARLY_ONCE,
  /** Without waiting for the answers of statements that are in flight. */
  'release strays at once': NEARLY_ONCE,
  'release without a claim number': NEARLY_ONCE,
  'no takeover': CAN_END,
  'orphans stay': CAN_END,
  'strays stay': CAN_END,
} as const satisfies Record<string, Catches>

export type Mutant = keyof typeof MUTANTS

/** Large enough for every mutant to be caught. */
export const MUTANT_BOUNDS: Bounds = { nodes: 2, messages: 1, faults: 2, refusals: 0 }
