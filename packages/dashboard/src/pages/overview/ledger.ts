// The ledger as an equation: what a destination is owed equals the sum of its deliveries in each state. Pure.

import type { Answer } from '../../api/client.ts'
import { type Hold, type HoldSettings, holdOf } from '../../destination/destination-status.ts'

export type LedgerEntry = Answer<'GET /api/ledger'>['data'][number]

export const LEDGER_STATES = ['delivered', 'pending', 'failed', 'expired', 'cancelled'] as const
export type LedgerState = (typeof LEDGER_STATES)[number]

export type LedgerSum = Pick<LedgerEntry, 'owed' | LedgerState>

export interface LedgerLine extends LedgerEntry {
  /** Null if the destination was deleted; its ledger is kept. */
  name: string | null
  hold: Hold | null
  /** Owed minus the sum of the states: 0 if the ledger balances. */
  missing: number
}

export function missingFrom(entry: LedgerSum): number {
  return entry.owed - LEDGER_STATES.reduce((sum, state) => sum + entry[state], 0)
}

/** Sorted: entries that do not balance first, deleted destinations last, otherwise by undelivered deliveries, then by deliveries owed. */
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
        undelivered(b) - undelivered(a) ||
        b.owed - a.owed ||
        (a.name ?? a.destinationId).localeCompare(b.name ?? b.destinationId),
    )
}

function undelivered({ pending, failed, expired }: LedgerEntry): number {
  return pending + failed + expired
}

/** Without the messages in quarantine, which are counted for each destination of their source. */
export function ledgerSum(entries: readonly LedgerEntry[]): LedgerSum {
  const sum = { owed: 0, delivered: 0, pending: 0, failed: 0, expired: 0, cancelled: 0 }
  for (const entry of entries) {
    sum.owed += entry.owed
    for (const state of LEDGER_STATES) sum[state] += entry[state]
  }
  return sum
}

/** The messages in quarantine, of one source or of all. */
export function quarantinePath(sourceId?: string): string {
  return `/plans?${new URLSearchParams({ tab: 'quarantine', ...(sourceId !== undefined && { source: sourceId }) }).toString()}`
}
