// All kinds of destination, by type.

import type { DestinationKinds } from '../api/configuration-export.ts'
import type { Destination, DestinationContent, DestinationType } from '../model/configuration.ts'
import { INTEGRATION } from './integration/integration.ts'
import type { DestinationKind } from './port/kind.ts'
import { WAREHOUSE } from './warehouse/warehouse.ts'
import { WEBHOOK } from './webhook/webhook.ts'

/** A type of destination without an entry is a compiler error here, and only here. */
export const KINDS: { readonly [Type in DestinationType]: DestinationKind & { readonly type: Type } } = {
  webhook: WEBHOOK,
  integration: INTEGRATION,
  warehouse: WAREHOUSE,
}

/** For an export of the configuration. */
export const KIND_SETTINGS: DestinationKinds = Object.fromEntries(
  Object.values(KINDS).map(({ type, settings, maxTimeoutMs }) => [type, { settings: Object.keys(settings), timeoutMs: maxTimeoutMs }]),
)

/** The names of the settings of all kinds that get a new version when they change. */
export const VERSIONED: readonly string[] = Object.values(KINDS).flatMap(({ content }) => Object.keys(content.first))

export function kindOf({ type }: { type: DestinationType }): DestinationKind {
  return KINDS[type]
}

/** How many requests of the destination may be in flight, on all nodes together. */
export function mostInFlight(destination: Destination): number {
  return Math.min(destination.maxInFlight, kindOf(destination).mostInFlight?.(destination) ?? Number.POSITIVE_INFINITY)
}

/** How long a request of the destination may be under way. */
export function longestAttemptMs(destination: Destination): number {
  return destination.timeoutMs + (kindOf(destination).extraMs?.(destination) ?? 0)
}

/** The settings among these that get a new version when they change. Earlier versions stored fewer, and also those of other kinds. */
export function contentOf(settings: { type: DestinationType }): DestinationContent {
  const { first } = kindOf(settings).content
  const values: Readonly<Record<string, unknown>> = { ...settings }
  return Object.fromEntries(Object.keys(first).map((name) => [name, values[name] ?? first[name]]))
}
