// What the topic history asks for, from the database: each answer is one read-only transaction.

import type { Seed } from '../../encoding/fingerprint.ts'
import { historyReads } from '../../history/history.ts'
import type { HistoryStore } from '../../store.ts'
import { openSeed } from '../messages/message-keys.ts'
import { byIndexes } from '../session/database.ts'
import type { Parts } from '../session/parts.ts'
import { writeAudit } from './audit-entries.ts'
import { auditRows } from './audit-rows.ts'
import { deliveryRows } from './delivery-rows.ts'
import { messageRows } from './message-rows.ts'

export function createHistory({ database, names, ids, nowMs }: Parts): HistoryStore {
  let opening: Promise<Seed> | undefined
  const opened = (): Promise<Seed> => {
    opening ??= openSeed(database).catch((error: unknown) => {
      opening = undefined
      throw error
    })
    return opening
  }
  const reads = historyReads<string>(async (work) => {
    const seed = await opened()
    return byIndexes(database, (ask) =>
      work({ messages: messageRows(ask, names, seed), deliveries: deliveryRows(ask, names, seed), audit: auditRows(ask) }),
    )
  })
  return { ...reads, noteAudit: (entry) => writeAudit((text, values) => database.query(text, values), ids, entry, nowMs()) }
}
