// Transforms the messages of loads in pieces of limited size, in the order in which they were loaded, while there is room for the results.

import type { SenderMemory } from './sender-memory.ts'
import { bytesOf, hold, type Loaded, type Target, type Transforming } from './target.ts'
import { type Item, transformInput, transformMessages } from './transforming/prepare-messages.ts'
import { MAX_RESULT_BYTES, type Transformer, type TransformInput } from './transforming/transformer.ts'

/** The most messages in one call, because memory is reserved for the results of all of them, and about how many bytes they have before the transformation. */
const PIECE_MESSAGES = 64
const PIECE_BYTES = 512 * 1024

export class Transforms {
  readonly #transformer: Transformer
  readonly #memory: SenderMemory
  readonly #onPrepared: (target: Target) => void

  /** `onPrepared` is called when messages of a destination were transformed. */
  constructor(transformer: Transformer, memory: SenderMemory, onPrepared: (target: Target) => void) {
    this.#transformer = transformer
    this.#memory = memory
    this.#onPrepared = onPrepared
  }

  add(loaded: Loaded, indexes: readonly number[]): void {
    const { messages, target } = loaded
    const present = indexes.filter((index) => messages?.has(index))
    const unbegun: number[] = []
    for (let at = present.length - 1; at >= 0; at--) unbegun.push(present[at] as number)
    loaded.transform = { pending: new Set(present), unbegun, whenPrepared: [], cancels: new Set() }
    if (present.length === 0) return
    target.untransformed.set(loaded, loaded.transform)
    this.beginNext(target)
    if (target.untransformed.has(loaded)) messages?.keepAsText(unbegun)
  }

  /** Begins transformations while there is room for their results. The last one may exceed the limit. */
  beginNext(target: Target): void {
    for (const [loaded, transform] of target.untransformed) {
      while (target.untransformed.has(loaded)) {
        if (!this.#memory.mayTransform(target, () => this.beginNext(target))) return
        this.begin(loaded, transform)
      }
    }
  }

  /** Begins the next piece, whether there is room or not. */
  begin(loaded: Loaded, transform: Transforming): void {
    const { target, receivedAtMs } = loaded
    const { pending, unbegun } = transform
    if (!target.untransformed.has(loaded)) return
    const indexes: number[] = []
    const inputs: TransformInput[] = []
    for (let bytes = 0; unbegun.length > 0 && inputs.length < PIECE_MESSAGES && bytes < PIECE_BYTES; ) {
      const index = unbegun.pop() as number
      // It may have been dropped.
      const input = pending.has(index) ? this.#inputOf(loaded, pending, index, receivedAtMs) : null
      if (input === null) continue
      indexes.push(index)
      inputs.push(input)
      bytes += input.text.length
    }
    if (unbegun.length === 0) {
      target.untransformed.delete(loaded)
      loaded.messages = null
    }
    if (inputs.length > 0) this.#run(loaded, transform, indexes, inputs)
    else this.#prepared(target, transform)
  }

  /** Null if the message cannot be built, which is a bug. */
  #inputOf({ messages, items }: Loaded, pending: Set<number>, index: number, receivedAtMs: number): TransformInput | null {
    const message = messages?.build(index) ?? new Error('the message is missing')
    if (!(message instanceof Error)) return transformInput(message, receivedAtMs)
    pending.delete(index)
    items.set(index, message)
    return null
  }

  #run(loaded: Loaded, transform: Transforming, indexes: readonly number[], inputs: readonly TransformInput[]): void {
    const { target } = loaded
    const { pending, cancels } = transform
    // The messages as they are given to the code, and the most that it can return.
    const mostBytes = inputs.reduce((sum, { text }) => sum + text.length + MAX_RESULT_BYTES, 0)
    hold(this.#memory, loaded, mostBytes)
    target.transforming++
    const done = (items: readonly Item[]): void => {
      cancels.delete(cancel)
      target.transforming--
      let bytes = 0
      for (const [at, index] of indexes.entries()) {
        if (!pending.delete(index)) continue
        loaded.items.set(index, items[at] as Item)
        bytes += bytesOf(items[at])
      }
      hold(this.#memory, loaded, bytes - mostBytes)
      this.#prepared(target, transform)
      this.beginNext(target)
    }
    const end = transformMessages(target.destination, inputs, this.#transformer, done)
    const cancel = (): void => {
      target.transforming--
      end()
    }
    cancels.add(cancel)
  }

  #prepared(target: Target, { pending, whenPrepared }: Transforming): void {
    if (pending.size === 0) for (const resume of whenPrepared.splice(0)) resume()
    this.#onPrepared(target)
  }
}
