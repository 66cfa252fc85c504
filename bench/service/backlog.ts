// Fills stores before anything is measured: with messages that have no destination, or with deliveries pending for a dead destination. Each
// store also has a healthy destination, on the source named `default`, for the measured traffic.

import { cpSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { closedPort } from './closed-port.ts'
import { EVENTS_PER_LARGE_REQUEST } from './events.ts'
import { createFolder } from './processes.ts'
import { startService } from './service.ts'
import { requireAll, type Traffic } from './traffic.ts'

export type BacklogKind = 'stored' | 'pending'

export interface Backlog {
  kind: BacklogKind
  events: number
  folder: string
  healthyId: string
  fillSeconds: number
  /** The size of the events as sent, as JSON. */
  dataBytes: number
  storeBytes: number
}

const FILL_CONNECTIONS = 4

/**
 * `stored` fills the same source that is measured later, so that its index of ids is as large as possible. `pending` fills a
 * separate source, because events of `default` must not go to the dead destination too.
 */
export async function createBacklog(traffic: Traffic, kind: BacklogKind, events: number): Promise<Backlog> {
  const folder = createFolder()
  const service = await startService(folder)
  try {
    const measured = await service.defaultSource()
    const source = kind === 'stored' ? measured : await service.createSource('backlog')
    const deadId =
      kind === 'pending' ? await service.createDestination('dead', `http://127.0.0.1:${await closedPort()}/`, source) : undefined
    const { dataBytes, fillSeconds } = await fill()
    const line = (await service.ledger()).find(({ destinationId }) => destinationId === deadId)
    if (deadId !== undefined && line?.pending !== events) throw new Error(`${line?.pending} pending after filling ${events}`)
    const healthyId = await service.createDestination('healthy', `${traffic.receiverUrl}/`, measured)
    if (!(await service.stop())) throw new Error('the service did not exit with code 0 after its store was filled')
    return { kind, events, folder, healthyId, fillSeconds, dataBytes, storeBytes: bytesOf(folder) }

    async function fill() {
      const target = service.targetOf(source)
      const large = events - (events % EVENTS_PER_LARGE_REQUEST)
      const sent = [
        ...(large > 0 ? [await traffic.fill(target, large, EVENTS_PER_LARGE_REQUEST, FILL_CONNECTIONS)] : []),
        ...(events > large ? [await traffic.fill(target, events - large, events - large, 1)] : []),
      ]
      for (const part of sent) requireAll(part)
      return {
        dataBytes: sent.reduce((sum, { bodyBytes }) => sum + bodyBytes, 0),
        fillSeconds: sent.reduce((sum, { startedAtMs, lastAnswerAtMs }) => sum + (lastAnswerAtMs - startedAtMs) / 1_000, 0),
      }
    }
  } finally {
    await service.stop('SIGKILL')
  }
}

/** Returns a copy of a small store, so that the original stays small while the copy grows during the measurement. */
export function copyOf(backlog: Backlog): string {
  const folder = createFolder()
  cpSync(backlog.folder, folder, { recursive: true })
  return folder
}

function bytesOf(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)
}
