// The kinds of destination there are, by their type.

import type { Destination } from '../store/port/model.ts'
import { WEBHOOK } from './webhook/webhook.ts'

export const KINDS = { webhook: WEBHOOK } as const

export function kindOf({ type }: Pick<Destination, 'type'>): (typeof KINDS)[Destination['type']] {
  return KINDS[type]
}
