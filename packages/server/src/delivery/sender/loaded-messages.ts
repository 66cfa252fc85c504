// The messages of a load. A message is built when it is needed, because together with the context of its batch, or shaped, it can be many times as
// large as it is stored. Until then it is kept as it is stored: as text, because the garbage collector would copy objects many times.

import type { JsonObject } from '@switchyard/protocol'
import { kindOf } from '../../destinations/kinds.ts'
import { compiledFilters } from '../../destinations/subscribe/conditional-filters.ts'
import { withViolations } from '../../outbound/outbound-message.ts'
import { readStoredBody } from '../../store/port/stored-messages.ts'
import type { Destination, SegmentContent } from '../../store/store.ts'
import type { Load } from '../link/protocol.ts'

export class LoadedMessages {
  readonly isUnreadable: boolean
  readonly #destination: Destination
  /** What the messages share, and the messages themselves until keepAsText() is called. Null for a test request. */
  #content: SegmentContent | null
  #texts: Map<number, string> | null = null
  readonly #testText: string

  constructor(
    { about, body, isText, parsed, absent }: Pick<Load, 'about' | 'body' | 'isText' | 'parsed' | 'absent'>,
    destination: Destination,
  ) {
    this.#destination = destination
    this.#content = isText ? null : (parsed ?? readStoredBody(body, about, absent))
    this.#testText = isText ? Buffer.from(body.buffer, body.byteOffset, body.length).toString() : ''
    this.isUnreadable = this.#content?.isUnreadable === true
  }

  /** False if the message was deleted. */
  has(index: number): boolean {
    if (this.#texts !== null) return this.#texts.has(index)
    return this.#content === null || this.#content.items[index] != null
  }

  /** Builds the message, without a transformation; undefined if it was deleted, an error if it cannot be built, which is a bug. */
  build(index: number): JsonObject | Error | undefined {
    if (!this.has(index)) return undefined
    try {
      return this.#content === null ? (JSON.parse(this.#testText) as JsonObject) : this.#built(this.#content, index)
    } catch (error) {
      return error as Error
    }
  }

  #built(shared: SegmentContent, index: number): JsonObject {
    let content = shared
    if (this.#texts !== null) {
      const items: JsonObject[] = []
      items[index] = JSON.parse(this.#texts.get(index) as string) as JsonObject
      content = { ...shared, items }
    }
    return builtMessage(this.#destination, content, index)
  }

  /** Called when no more messages are built now. Only these are needed later. The bytes that they were read from may be reused after this. */
  keepAsText(indexes: Iterable<number>): void {
    if (this.#content === null || this.#texts !== null) return
    const texts = new Map<number, string>()
    for (const index of indexes) if (this.has(index)) texts.set(index, JSON.stringify(this.#content.items[index]))
    this.#texts = texts
    this.#content = { ...this.#content, items: [] }
  }

  forget(index: number): void {
    this.#texts?.delete(index)
  }
}

/** A stored message in the form that the kind of the destination gets. */
export function builtMessage(destination: Destination, content: SegmentContent, index: number): JsonObject {
  const built = kindOf(destination).message(content, index)
  const message = destination.includeViolations === true ? withViolations(built, content, index) : built
  const { conditionalFilters } = destination
  const reduced = conditionalFilters === undefined || conditionalFilters.length === 0 ? null : compiledFilters(conditionalFilters).reduced
  return reduced === null ? message : reduced(message, content.items[index] ?? {}, content)
}
