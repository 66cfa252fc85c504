// The setting `deadLetter`: the destination that gets the messages whose delivery failed or expired. Checked against the stored configuration,
// under the lock that all changes take, because another request or another node may change the destinations that it leads to.

import { listed } from '../../api/listed.ts'
import { invalidField } from '../../api/schema.ts'
import { KINDS, kindOf } from '../../destinations/kinds.ts'
import type { Configuration } from '../../store/store.ts'

const ACCEPTING = listed(
  Object.values(KINDS).flatMap(({ acceptsDeadLetters, noun }) => (acceptsDeadLetters ? [noun.one] : [])),
  ' or ',
)

/** `id`: the destination that has the setting; null if it is being created, so that no other destination refers to it. */
export function checkDeadLetter({ destinations }: Configuration, deadLetter: string | null | undefined, id: string | null): void {
  if (deadLetter == null) return
  const target = destinations.get(deadLetter)
  if (target === undefined) throw invalidField('deadLetter', 'must be the id of an existing destination; GET /api/destinations lists them')
  const { acceptsDeadLetters, noun } = kindOf(target)
  if (!acceptsDeadLetters)
    throw invalidField('deadLetter', `must be ${ACCEPTING}: ${noun.many} do not accept messages of the type dead_letter`)
  if (deadLetter === id) throw invalidField('deadLetter', 'must be the id of another destination')
  const path: string[] = []
  for (let next: string | null = deadLetter; next !== null; next = destinations.get(next)?.deadLetter ?? null) {
    path.push(next)
    if (next === id)
      throw invalidField(
        'deadLetter',
        `must not lead back to this destination (${path.join(' → ')}); choose another dead-letter destination`,
      )
    // The stored configuration has no cycles. If it had one, this loop must end nevertheless.
    if (path.length > destinations.size) return
  }
}
