// All kinds of destination, by type.

import type { DestinationContent, DestinationType } from '../store/port/model.ts'
import { INTEGRATION } from './integration/integration.ts'
import type { DestinationKind } from './kind.ts'
import { WEBHOOK } from './webhook/webhook.ts'

export const KINDS: { readonly [Type in DestinationType]: DestinationKind } = { webhook: WEBHOOK, integration: INTEGRATION }

/** The names of the settings of all kinds that get a new version when they change. */
export const VERSIONED: readonly string[] = Object.values(KINDS).flatMap(({ content }) => Object.keys(content.first))

export function kindOf({ type }: { type: DestinationType }): DestinationKind {
  return KINDS[type]
}

/** The settings among these that get a new version when they change. Earlier versions stored fewer, and also those of other kinds. */
export function contentOf(settings: { type: DestinationType }): DestinationContent {
  const { first } = kindOf(settings).content
  const values: Readonly<Record<string, unknown>> = { ...settings }
  return Object.fromEntries(Object.keys(first).map((name) => [name, values[name] ?? first[name]]))
}
