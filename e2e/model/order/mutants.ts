// Changes of the protocol of ordered deliveries that make it wrong, each with the promise that it breaks. See ../mutants.ts.

import { CAN_END } from '../checker.ts'
import { AGAIN, FIRST, STARTED } from './promises.ts'
import type { Bounds } from './state.ts'

export const ORDER_MUTANTS = {
  /** Any node claims rows of the partition, whoever owns it. */
  'no fence on partitions': STARTED,
  /** The new owner starts at once, although a request of the dead node may still arrive. */
  'takeover without waiting for the deadline of old requests': FIRST,
  /** A node starts what it holds within its whole lease, also after its partition may have moved. */
  'start within the whole lease': AGAIN,
  /** A message that is to be attempted again gets a new place in the order. */
  'retry behind the next message': STARTED,
  /** The place in the order is taken from the clock of the node. */
  'order by the clocks of nodes': STARTED,
  'claims in any order': STARTED,
  /** After a retry, what is behind it in memory is not given back. */
  'keep what is behind a retry': STARTED,
  /** The next message starts as soon as the one before has failed for good. After a crash, that one is attempted again. */
  'go on before a failure is recorded': FIRST,
  /** A node gives a partition to another while its own requests are in flight. */
  'give partitions back at once': AGAIN,
  /** A node that was declared dead settles what another holds now. */
  'no fence on rows': AGAIN,
  'partitions of dead nodes stay theirs': CAN_END,
} as const satisfies Record<string, string>

export type OrderMutant = keyof typeof ORDER_MUTANTS

/** Large enough for every mutant to be caught. */
export const ORDER_MUTANT_BOUNDS: Bounds = { nodes: 2, messages: 2, faults: 1, refusals: 2 }
