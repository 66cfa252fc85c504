// The setting `deadLetter`: the destination that gets the messages whose delivery failed or expired. Checked against the stored configuration,
// under the lock that all changes take, because another request or another node may change the destinations that it leads to.

import { invalidField, nullable, string } from '../../api/schema.ts'
import type { Configuration } from '../../store/store.ts'

export const DEAD_LETTER = nullable(
  string({
    min: 1,
    max: 100,
    description:
      'The id of another destination. A message whose delivery fails or expires is sent there as a dead letter; see the guide. Null for none.',
  }),
)

/** `id`: the destination that has the setting; null if it is being created, so that no other destination refers to it. */
export function checkDeadLetter({ destinations }: Configuration, deadLetter: string | null | undefined, id: string | null): void {
  if (deadLetter == null) return
  if (!destinations.has(deadLetter))
    throw invalidField('deadLetter', 'is not the id of a destination. GET /api/destinations lists all of them')
  if (deadLetter === id) throw invalidField('deadLetter', 'must be another destination')
  const path: string[] = []
  for (let next: string | null = deadLetter; next !== null; next = destinations.get(next)?.deadLetter ?? null) {
    path.push(next)
    if (next === id) throw invalidField('deadLetter', `would lead back to this destination (${path.join(' → ')}); choose one that does not`)
    // The stored configuration has no cycles. If it had one, this loop must end nevertheless.
    if (path.length > destinations.size) return
  }
}
