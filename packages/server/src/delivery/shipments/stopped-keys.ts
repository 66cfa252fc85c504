// The keys that messages of a task have stopped, or left behind, and when the lane may go on with them: not before the store has the outcome, or the
// message again.

import type { OrderKey } from '../../model/order/order-key.ts'
import type { KeyOrder, Member, OrderedMember } from './member.ts'

export class StoppedKeys {
  readonly #order: KeyOrder | null
  /** The keys of messages that stopped theirs, and whose outcome is not recorded. The first `#settled` are in the settlement that is being recorded. */
  #stopped: OrderKey[] = []
  #settled = 0
  /** The keys of messages that go back to the store. */
  #left: OrderKey[] = []

  constructor(order: KeyOrder | null) {
    this.#order = order
  }

  stop(members: readonly Member[]): void {
    if (this.#order === null) return
    this.#order.stopped(members as readonly OrderedMember[])
    for (const { key } of members as readonly OrderedMember[]) this.#stopped.push(key)
  }

  leave({ key }: OrderedMember): void {
    this.#left.push(key)
  }

  /** A settlement has the outcomes of all that have stopped so far. */
  settled(): void {
    this.#settled = this.#stopped.length
  }

  /** That settlement is recorded, or was rejected. */
  recorded(): void {
    this.#order?.returned(this.#stopped.splice(0, this.#settled))
    this.#settled = 0
  }

  /** The shipments of the task are back in the store, or no longer belong to this process. */
  returned(): void {
    this.#order?.returned([...this.#left.splice(0), ...this.#stopped.splice(0)])
  }
}
