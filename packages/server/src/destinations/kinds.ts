// All kinds of destination, by type.

import type { Destination } from '../store/port/model.ts'
import { INTEGRATION } from './integration/integration.ts'
import type { DestinationKind } from './kind.ts'
import { WEBHOOK } from './webhook/webhook.ts'

export const KINDS = { webhook: WEBHOOK, integration: INTEGRATION } as const

export function kindOf({ type }: Pick<Destination, 'type'>): DestinationKind {
  return KINDS[type]
}
