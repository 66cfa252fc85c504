// What a row of the list of messages says: the name of the message, the outcomes of its deliveries, and values of its properties. Pure.

import type { Answer } from '../../api/client.ts'
import { capitalized } from '../../text/format.ts'
import { reasonSentence } from '../../text/reasons.ts'

export type Row = Answer<'GET /api/messages'>['data'][number]
export type State = NonNullable<Row['deliveries'][number]['state']>

export interface Outcome {
  destinationId: string
  /** The name of the destination, or its id. */
  name: string
  /** Null if it is not known. */
  state: State | null
  /** Why the delivery ended without success, as a sentence; empty if there is no reason. */
  why: string
}

/** One for each destination, those that need attention first. A replay counts instead of the delivery that it repeats. */
export function outcomesOf({ deliveries }: Pick<Row, 'deliveries'>, names: ReadonlyMap<string, string>): Outcome[] {
  const newest = new Map(deliveries.map((delivery) => [delivery.destinationId, delivery]))
  return [...newest.values()]
    .map(({ destinationId, state, reason }) => ({
      destinationId,
      name: names.get(destinationId) ?? `${destinationId} (deleted)`,
      state,
      why: reason === null ? '' : reasonSentence(reason),
    }))
    .sort((one, other) => ORDER.indexOf(one.state) - ORDER.indexOf(other.state) || (one.name < other.name ? -1 : 1))
}

const ORDER: readonly (State | null)[] = ['failed', 'expired', 'pending', 'cancelled', null, 'delivered']

/** The worst outcome in words: "failed: CRM", "failed: 2 destinations", "pending: CRM", "delivered". */
export function outcomeText(outcomes: readonly Outcome[]): string {
  const [first] = outcomes
  if (first === undefined) return 'no destination'
  const { state } = first
  if (state === 'delivered') return 'delivered'
  const alike = outcomes.filter((each) => each.state === state)
  if (state === null) return 'unknown'
  return `${state}: ${alike.length === 1 ? first.name : `${alike.length} destinations`}`
}

/** The tooltip of an outcome: "CRM: failed. Connection refused". */
export function outcomeSentence({ name, state, why }: Outcome): string {
  return `${name}: ${state ?? 'state unknown'}${why === '' ? '' : `. ${capitalized(why)}`}`
}

/** The event, or the name of a page or screen. */
export function nameOf({ type, event, message }: Pick<Row, 'type' | 'event' | 'message'>): string {
  if (type === null) return 'Content deleted'
  const name = event ?? message?.['name']
  return typeof name === 'string' && name !== '' ? name : type
}

const MAX_PATHS = 500
const MAX_DEPTH = 6

/** The value at a path as text; empty if the message does not have it. A path without `properties.` is a property or a trait. */
export function valueAt(message: Row['message'], path: string): string {
  const names = path.split('.')
  const roots = Object.hasOwn(message ?? {}, names[0] as string) ? [message] : [own(message, 'properties'), own(message, 'traits')]
  for (const root of roots) {
    const value = names.reduce<unknown>((at, name) => own(at, name), root)
    if (value !== undefined) return typeof value === 'string' ? value : JSON.stringify(value)
  }
  return ''
}

/** The paths of the properties and traits of messages, for suggestions. */
export function pathsIn(messages: readonly Row['message'][]): string[] {
  const paths = new Set<string>()
  const visit = (value: unknown, path: string, depth: number): void => {
    if (paths.size >= MAX_PATHS) return
    if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) {
      if (depth > 1) paths.add(path)
      return
    }
    if (Array.isArray(value)) {
      if (value.length > 0) visit(value[0], path, depth)
      return
    }
    for (const [name, inner] of Object.entries(value)) if (!/[.=]/.test(name) && name !== '') visit(inner, `${path}.${name}`, depth + 1)
  }
  for (const message of messages) for (const name of ['properties', 'traits']) visit(own(message, name), name, 1)
  return [...paths].sort()
}

function own(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined
}
