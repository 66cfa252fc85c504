// The setting `deadLetter`: the destination that gets the messages whose delivery failed or expired. Checked against the stored configuration,
// under the lock that all changes take, because another request or another node may change the destinations that it leads to.

import { invalidField, nullable, string } from '../../api/schema.ts'
import type { Configuration } from '../../store/store.ts'

export const DEAD_LETTER = nullable(
  string({
    min: 1,
    max: 100,
    description:
      'The id of the dead-letter destination. For each delivery that fails or expires, a message of the type `dead_letter`, which contains the original message, is sent there. Null for none.',
  }),
)

/** `id`: the destination that has the setting; null if it is being created, so that no other destination refers to it. */
export function checkDeadLetter({ destinations }: Configuration, deadLetter: string | null | undefined, id: string | null): void {
  if (deadLetter == null) return
  if (!destinations.has(deadLetter))
    throw invalidField('deadLetter', 'must be the id of an existing destination; GET /api/destinations lists them')
  if (destinations.get(deadLetter)?.type === 'integration')
    throw invalidField('deadLetter', 'must be a webhook: integrations do not accept messages of the type dead_letter')
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
