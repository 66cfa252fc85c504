// The key of an ordered message as it is stored: a seeded hash of its text.

import type { OrderKey } from '../../model/order/order-key.ts'
import { FINGERPRINT_WORDS, fingerprint, type Seed } from './fingerprint.ts'

const words = new Uint32Array(FINGERPRINT_WORDS)

/** 53 bits of the hash, so that it is an exact number. */
export function orderKeyOf(text: string, seed: Seed): OrderKey {
  fingerprint(text, seed, words, 0)
  return ((words[0] as number) & 0x1fffff) * 2 ** 32 + (words[1] as number)
}
