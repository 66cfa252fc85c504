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
  'give partitions back at once': STARTED,
  /** A node that was declared dead settles what another holds now. */
  'no fence on rows': AGAIN,
  'partitions of dead nodes stay theirs': CAN_END,
} as const satisfies Record<string, string>

/** Those of shipments that are not divided. */
export const UNDIVIDED_MUTANTS = {
  /** A node that owns only some partitions claims a shipment that is not divided. */
  'claim an undivided shipment without all partitions': STARTED,
  /** A node does not look for earlier messages in shipments that are not divided. */
  'claim past an undivided shipment': STARTED,
  /** A node gives a partition to another while it holds a shipment that may have messages of it. */
  'give partitions back with an undivided shipment': STARTED,
  /** The new owner does not wait for requests that a dead node has made with messages of an undivided shipment. */
  'no wait for the keys of an undivided shipment': AGAIN,
} as const satisfies Record<string, string>

/** Those of shipments with messages of both keys. */
export const SHARED_MUTANTS = {
  /** A message that goes back has to wait for another of its shipment. Meanwhile, the node claims a later message of its key. */
  'claim past what is on its way back': STARTED,
} as const satisfies Record<string, string>

export type OrderMutant = keyof typeof ORDER_MUTANTS | keyof typeof UNDIVIDED_MUTANTS | keyof typeof SHARED_MUTANTS

/** Large enough for every mutant to be caught. */
export const ORDER_MUTANT_BOUNDS: Bounds = { nodes: 2, parts: 1, requests: ['a', 'a'], faults: 1, refusals: 2 }
export const UNDIVIDED_MUTANT_BOUNDS: Bounds = { nodes: 2, parts: 2, requests: ['a', 'a'], faults: 1, refusals: 1 }
export const SHARED_MUTANT_BOUNDS: Bounds = { nodes: 2, parts: 2, requests: ['ab', 'a'], faults: 0, refusals: 2 }
