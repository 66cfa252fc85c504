// All kinds of destination, by type.

import type { Destination } from '../store/port/model.ts'
import { WEBHOOK } from './webhook/webhook.ts'

export const KINDS = { webhook: WEBHOOK } as const

export function kindOf({ type }: Pick<Destination, 'type'>): (typeof KINDS)[Destination['type']] {
  return KINDS[type]
}
