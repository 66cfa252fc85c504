// Finds the text of a key in a message. The store has only the hash of a key, so that a deletion has nothing else to find than the messages. Pure.

import { type OrderKey, orderKeyText } from '../../model/order/order-key.ts'
import type { Seed } from '../encoding/fingerprint.ts'
import { orderKeyOf } from '../encoding/order-key-hash.ts'
import type { SegmentContent } from '../store.ts'

/** A message of 32 KB has no more. */
const MOST_TEXTS = 20_000

/**
 * Null if no value of the message is the text of the key. `by` is tried first; the message may have been accepted when the destination had another
 * setting, and then the text is some other value of the message, or the source.
 */
export function keyTextIn(content: SegmentContent | null, index: number, key: OrderKey, seed: Seed, by?: string): string | null {
  const item = content?.items[index]
  if (content === null || item == null) return null
  if (by !== undefined) {
    const text = orderKeyText(by, item, content)
    if (text !== null && orderKeyOf(text, seed) === key) return text
  }
  for (const text of textsOf(content, index)) if (orderKeyOf(text, seed) === key) return text
  return null
}

/** All texts that may be the key of a message. */
export function textsOf(content: SegmentContent, index: number): Set<string> {
  const item = content.items[index]
  const texts = new Set<string>()
  if (item == null) return texts
  const add = (text: string | null): void => void (text !== null && texts.size < MOST_TEXTS && texts.add(text))
  add(orderKeyText('user', item, content))
  add(orderKeyText('source', item, content))
  const left: unknown[] = [item, content.context]
  for (let value = left.shift(); left.length > 0 || value !== undefined; value = left.shift()) {
    if (typeof value === 'object' && value !== null) {
      if (!Array.isArray(value)) left.push(...Object.values(value))
      continue
    }
    if (value === undefined) continue
    // The same limits as for keys.
    add(orderKeyText('value', { value }, content))
  }
  return texts
}
