// Which actions of which integrations work in the tests, and what they were compared with. `npm run record:integrations` runs the tests and writes
// seen-actions.json, from which the documentation gets its table. In all other runs, the tests check that they still see what the file says.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AttemptView, Reachable } from '../../system/wiring.ts'

/**
 * library: the requests are those of the library, called directly. published: they are those that the tests of the definition publish.
 * stand-in: a server of the tests that answers like the tool accepted them, for AWS with a check of the signature.
 */
export type Against = 'library' | 'published' | 'stand-in'

/** By slug. */
export type SeenActions = Record<string, Partial<Record<Against, readonly string[]>>>

export const SEEN_FILE = join(import.meta.dirname, 'seen-actions.json')
/** Set by write-seen-actions.ts. */
export const WRITE_VARIABLE = 'SWITCHYARD_WRITE_SEEN_ACTIONS'

const isWritten = (): boolean => process.env[WRITE_VARIABLE] === '1'

export function readSeen(): SeenActions {
  return JSON.parse(readFileSync(SEEN_FILE, 'utf8')) as SeenActions
}

/** One line per integration, so that changes can be read. */
export function writeSeen(seen: SeenActions): void {
  const lines = Object.entries(seen)
    .filter(([, actions]) => Object.keys(actions).length > 0)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([slug, actions]) => `  ${JSON.stringify(slug)}: ${JSON.stringify(actions)}`)
  writeFileSync(SEEN_FILE, `{\n${lines.join(',\n')}\n}\n`)
}

/**
 * Fails if the file contains an action of these integrations that was not seen, so that the documentation never claims more than the tests see.
 * An action that is new is added by the next `npm run record:integrations`.
 */
export function checkSeen(against: Against, seen: ReadonlyMap<string, Iterable<string>>): void {
  if (isWritten()) {
    for (const [slug, actions] of seen) addSeen(against, slug, actions)
    return
  }
  const recorded = readSeen()
  const missing = [...seen].flatMap(([slug, actions]) => {
    const known = new Set(actions)
    return (recorded[slug]?.[against] ?? []).filter((action) => !known.has(action)).map((action) => `${slug}: ${action}`)
  })
  assert.deepEqual(missing, [], 'no longer seen to work. If that is right, run: npm run record:integrations')
}

/** The actions that ran for a delivery, by the names of the subscriptions in its attempts. */
export async function actionsOf(service: Reachable, destinationId: string, attempts: readonly AttemptView[]): Promise<string[]> {
  const { subscriptions } = await service.api<{ subscriptions: { name: string; action: string }[] }>(`/destinations/${destinationId}`)
  const ran = new Set(attempts.map((attempt) => (attempt as { subscription?: string }).subscription))
  return subscriptions.filter(({ name }) => ran.has(name)).map(({ action }) => action)
}

/** A stand-in accepted this delivery. */
export async function acceptedByStandIn(service: Reachable, destinationId: string, attempts: readonly AttemptView[]): Promise<void> {
  if (!isWritten()) return
  const { integration } = await service.api<{ integration: string }>(`/destinations/${destinationId}`)
  addSeen('stand-in', integration, await actionsOf(service, destinationId, attempts))
}

function addSeen(against: Against, slug: string, actions: Iterable<string>): void {
  const seen = readSeen()
  const all = [...new Set([...(seen[slug]?.[against] ?? []), ...actions])].sort()
  if (all.length > 0) writeSeen({ ...seen, [slug]: { ...seen[slug], [against]: all } })
}
