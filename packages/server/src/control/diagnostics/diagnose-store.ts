// Checks of the whole store: whether its files are intact, whether the ledger is correct, and whether retention keeps up.

import { isoTime } from '@switchyard/protocol'
import { bookProblems } from '../../api/check-ledger.ts'
import { counted } from '../../api/counted.ts'
import type { Destination, StoreInspection } from '../../store/store.ts'
import type { Finding } from './finding.ts'

type NamedFinding = Finding & { name: string }

const DAY_MS = 86_400_000
const MAX_LISTED = 3

/** `isServer`: whether the store is a database server, which looks after its own files. */
export function checkInspection(
  inspection: StoreInspection | undefined,
  destinations: readonly Destination[],
  isServer = false,
): NamedFinding[] {
  if (inspection === undefined) {
    const unfinished = { state: 'unknown', message: 'The check did not finish in time, because the store is large.' } as const
    const advice = isServer
      ? 'Run the check again when the server is less busy.'
      : 'Make a backup, which is checked without a time limit, or stop the service and run `switchyard doctor` again.'
    return [
      { name: 'store_integrity', ...unfinished, advice },
      { name: 'ledger', ...unfinished, advice },
    ]
  }
  const { problems, recount } = inspection
  if (problems.length > 0) {
    const advice = isServer
      ? 'Make a copy of the database in its current state, and check the log of the server.'
      : 'The file is damaged. Stop the service, keep the damaged file, and restore the last good backup.'
    return [{ name: 'store_integrity', state: 'bad', message: `The database reports: ${few(problems)}.`, advice }]
  }
  const names = new Map(destinations.map(({ id, name }) => [id, name]))
  const differences = bookProblems(inspection, (id) => names.get(id) ?? id)
  return [
    {
      name: 'store_integrity',
      state: 'good',
      message: isServer ? 'Every row of the store can be read.' : 'The files of the store are intact.',
      advice: null,
    },
    differences.length === 0
      ? { name: 'ledger', state: 'good', message: `The ledger matches a recount of the rows: ${countText(recount.length)}.`, advice: null }
      : {
          name: 'ledger',
          state: 'bad',
          message: `The ledger differs from a recount of the rows: ${few(differences)}.`,
          advice: 'This is a bug. Make a backup of the store in its current state, and report it.',
        },
  ]
}

export function checkRetention(inspection: StoreInspection | undefined, retentionDays: number, nowMs: number): NamedFinding {
  const name = 'retention'
  if (inspection === undefined) return { name, state: 'unknown', message: 'The check did not finish in time.', advice: null }
  const { oldestMessageAtMs } = inspection
  const rule = `Messages are kept for ${counted(retentionDays, 'day')}`
  if (oldestMessageAtMs === null) return { name, state: 'good', message: `${rule}; no message is stored.`, advice: null }
  const message = `${rule}; the oldest is from ${isoTime(oldestMessageAtMs)}.`
  // Retention removes whole days, and runs once an hour.
  if (nowMs - oldestMessageAtMs < (retentionDays + 2) * DAY_MS) return { name, state: 'good', message, advice: null }
  const advice =
    'Messages with pending deliveries are kept longer. If there are none that old, look for "deleting expired data failed" in the log.'
  return { name, state: 'warning', message, advice }
}

function countText(destinations: number): string {
  return counted(destinations, 'destination')
}

function few(sentences: readonly string[]): string {
  const rest = sentences.length - MAX_LISTED
  return sentences.slice(0, MAX_LISTED).join('; ') + (rest > 0 ? `; and ${rest} more` : '')
}
