// The books as an equation: what a destination is owed is what became of it, state by state. Pure.

import type { Answer } from '../../api/client.ts'
import { type Hold, type HoldSettings, holdOf } from '../destinations/destination-status.ts'

export type LedgerEntry = Answer<'GET /api/ledger'>['data'][number]

export const LEDGER_STATES = ['delivered', 'pending', 'failed', 'expired', 'cancelled'] as const
export type LedgerState = (typeof LEDGER_STATES)[number]

export interface LedgerLine extends LedgerEntry {
  /** Null: the destination is deleted, and its books are kept. */
  name: string | null
  hold: Hold | null
  /** Owed, less all that became of it: 0 when the books add up. */
  missing: number
}

export function missingFrom(entry: Omit<LedgerEntry, 'destinationId'>): number {
  return entry.owed - LEDGER_STATES.reduce((sum, state) => sum + entry[state], 0)
}

/** What does not add up comes first, then what has most that did not arrive, then what is owed most; the deleted last. */
export function ledgerLines(
  entries: readonly LedgerEntry[],
  destinations: readonly (HoldSettings & { id: string; name: string })[],
): LedgerLine[] {
  const known = new Map(destinations.map((destination) => [destination.id, destination]))
  return entries
    .map((entry): LedgerLine => {
      const destination = known.get(entry.destinationId)
      return { ...entry, name: destination?.name ?? null, hold: destination ? holdOf(destination) : null, missing: missingFrom(entry) }
    })
    .sort(
      (a, b) =>
        Number(b.missing !== 0) - Number(a.missing !== 0) ||
        Number(a.name === null) - Number(b.name === null) ||
        open(b) - open(a) ||
        b.owed - a.owed ||
        (a.name ?? a.destinationId).localeCompare(b.name ?? b.destinationId),
    )
}

function open({ pending, failed, expired }: LedgerEntry): number {
  return pending + failed + expired
}

export function ledgerSum(entries: readonly LedgerEntry[]): Omit<LedgerEntry, 'destinationId'> {
  const sum = { owed: 0, delivered: 0, pending: 0, failed: 0, expired: 0, cancelled: 0 }
  for (const entry of entries) {
    sum.owed += entry.owed
    for (const state of LEDGER_STATES) sum[state] += entry[state]
  }
  return sum
}

export function deliveriesPath(filter: {
  destination?: string | undefined
  state?: LedgerState | undefined
  from?: string | undefined
}): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(filter)) if (value !== undefined) params.set(name, value)
  const text = params.toString()
  return text === '' ? '/deliveries' : `/deliveries?${text}`
}
