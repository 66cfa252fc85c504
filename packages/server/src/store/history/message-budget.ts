// What a page of deliveries may read to choose by what their messages say: so much, and then it is short and has a cursor to
// go on from.

import type { DeliveryFilter, SegmentContent } from '../store.ts'
import { matches } from './content.ts'

/** Of keys and bodies, some 200 ms of parsing. */
const BYTES_PER_PAGE = 32 * 1024 * 1024
/** What a look at one more segment costs at least: so no more than 32,768 are looked at. */
const BYTES_PER_LOOK = 1024

export class MessageBudget {
  #bytes = BYTES_PER_PAGE

  get isSpent(): boolean {
    return this.#bytes <= 0
  }

  spend(...lengths: number[]): void {
    this.#bytes -= BYTES_PER_LOOK
    for (const length of lengths) this.#bytes -= length
  }
}

/** Whether deliveries are chosen by their messages at all. */
export function isOfMessages({ userId, event }: DeliveryFilter): boolean {
  return userId !== undefined || event !== undefined
}

/** Which messages of a segment are meant; `possible` is what its keys leave. */
export function chosenIn(content: SegmentContent, { userId, event }: DeliveryFilter, possible?: readonly number[]): Set<number> {
  const chosen = new Set<number>()
  for (const index of possible ?? content.items.keys()) {
    const item = content.items[index]
    if (item && matches(item, { userId, event })) chosen.add(index)
  }
  return chosen
}
