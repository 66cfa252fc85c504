// The kinds of destinations: one folder and one entry each. A kind of the API without an entry is a type error here, and only here.

import type { Attempt, AttemptProps, Destination, DestinationOf, DestinationType, Kind } from '../destination/kind.ts'
import { INTEGRATION } from './integration/kind.ts'
import { WAREHOUSE } from './warehouse/kind.ts'
import { WEBHOOK } from './webhook/kind.ts'

export const KINDS: { readonly [Type in DestinationType]: Kind<DestinationOf<Type>> } = {
  webhook: WEBHOOK,
  integration: INTEGRATION,
  warehouse: WAREHOUSE,
}

/** The kind of a destination, which may be asked about that destination only. */
export function kindOf({ type }: Pick<Destination, 'type'>): Kind {
  return KINDS[type] as unknown as Kind
}

/** Where a destination sends messages, in a few words. */
export function targetText(destination: Destination): string {
  return kindOf(destination).target(destination)
}

/** `destination`: undefined if it is not known; then the attempt tells. */
export function AttemptView({ destination, ...props }: AttemptProps & { destination?: Destination | undefined }) {
  const { Attempt } = destination === undefined ? kindOfAttempt(props.attempt) : kindOf(destination)
  return <Attempt {...props} />
}

function kindOfAttempt(attempt: Attempt): Pick<Kind, 'Attempt'> {
  return Object.values(KINDS).find(({ ownsAttempt }) => ownsAttempt(attempt)) ?? KINDS.webhook
}
