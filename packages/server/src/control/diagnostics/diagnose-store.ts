// What a look at the whole store tells: whether its files are whole, whether the books agree, whether retention keeps up.

import { isoTime } from '@switchyard/protocol'
import { ledgerProblems } from '../../api/check-ledger.ts'
import type { Destination, StoreInspection } from '../../store/store.ts'
import type { Finding } from './finding.ts'

type Named = Finding & { name: string }

const DAY_MS = 86_400_000
const MAX_TOLD = 3

/** `isServer`: its files are the server's to look after. */
export function checkInspection(inspection: StoreInspection | undefined, destinations: readonly Destination[], isServer = false): Named[] {
  if (inspection === undefined) {
    const late = { state: 'unknown', message: 'It was not read to its end in time: the store is large.' } as const
    const advice = isServer
      ? 'Run it again when less is asked of the server.'
      : 'Make a backup, which is checked without haste, or stop the service and run `switchyard doctor` again.'
    return [
      { name: 'store_integrity', ...late, advice },
      { name: 'ledger', ...late, advice },
    ]
  }
  const { problems, ledger, recount } = inspection
  if (problems.length > 0) {
    const advice = isServer
      ? 'Keep a copy of the database as it is, and look in the log of the server.'
      : 'The file is damaged. Stop the service, keep the file, and restore the last good backup.'
    return [{ name: 'store_integrity', state: 'bad', message: `The database says: ${few(problems)}.`, advice }]
  }
  const names = new Map(destinations.map(({ id, name }) => [id, name]))
  const unequal = ledgerProblems(ledger, recount, (id) => names.get(id) ?? id)
  return [
    {
      name: 'store_integrity',
      state: 'good',
      message: isServer ? 'Every row of the store can be read.' : 'The files of the store are whole.',
      advice: null,
    },
    unequal.length === 0
      ? { name: 'ledger', state: 'good', message: `The ledger equals its recount from the rows: ${told(recount.length)}.`, advice: null }
      : {
          name: 'ledger',
          state: 'bad',
          message: `The ledger differs from its recount: ${few(unequal)}.`,
          advice: 'This must never happen. Keep a backup of the file as it is, and report it.',
        },
  ]
}

export function checkRetention(inspection: StoreInspection | undefined, retentionDays: number, nowMs: number): Named {
  const name = 'retention'
  if (inspection === undefined) return { name, state: 'unknown', message: 'The store was not read to its end in time.', advice: null }
  const { oldestMessageAtMs } = inspection
  const rule = `Messages are kept for ${retentionDays} ${retentionDays === 1 ? 'day' : 'days'}`
  if (oldestMessageAtMs === null) return { name, state: 'good', message: `${rule}; none is stored.`, advice: null }
  const message = `${rule}; the oldest is of ${isoTime(oldestMessageAtMs)}.`
  // Whole days go, once an hour.
  if (nowMs - oldestMessageAtMs < (retentionDays + 2) * DAY_MS) return { name, state: 'good', message, advice: null }
  const advice = 'What is still owed is kept longer. If nothing is pending that long, look in the log for "deleting expired data failed".'
  return { name, state: 'warning', message, advice }
}

function told(destinations: number): string {
  return destinations === 1 ? '1 destination' : `${destinations} destinations`
}

function few(sentences: readonly string[]): string {
  const rest = sentences.length - MAX_TOLD
  return sentences.slice(0, MAX_TOLD).join('; ') + (rest > 0 ? `; and ${rest} more` : '')
}
