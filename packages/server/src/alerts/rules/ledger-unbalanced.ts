// Ledger Unbalanced: the number of owed deliveries of a destination differs from the sum of their states. This must never happen.

import { rule } from './rule.ts'

export interface LedgerBalance {
  nowMs: number
  /** The names of the destinations whose ledger does not balance. */
  unbalanced: readonly string[]
}

const MOST_NAMED = 5

export const ledgerUnbalanced = rule({
  id: 'ledger_unbalanced',
  event: 'Ledger Unbalanced',
  subject: 'service',
  severity: () => 'critical',
  description:
    'The number of deliveries that are owed to a destination differs from the sum of their states. This is a bug of the service.',
  sentences: ['Open when the ledger of a destination does not balance. Close when all balance.'],
  settings: {},
  judge({ nowMs, unbalanced }: LedgerBalance) {
    const names = unbalanced.slice(0, MOST_NAMED).join(', ')
    return { verdict: unbalanced.length > 0 ? 'open' : 'close', sinceMs: nowMs, details: { destinations: unbalanced.length, names } }
  },
  opened: (_name, { names }) =>
    `The ledger does not balance for ${String(names)}: the number owed differs from the sum of the states. Keep a copy of the store and run \`switchyard doctor\`.`,
  closed: () => 'The ledger balances again.',
  link: () => '/#ledger',
})
