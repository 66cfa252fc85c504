// The report at the end of the demo: the ledger of the service, recounted from the rows, next to what the receivers and the client counted
// themselves. If a check fails, the report says so and the exit code of the demo is 1.

import type { Receiver } from './receivers.ts'
import type { ServiceProcess } from './service-process.ts'
import type { Terminal } from './terminal.ts'
import type { Traffic } from './traffic.ts'
import { type DestinationName, TITLES, type Wiring } from './wiring.ts'

export interface LedgerRow {
  destinationId: string
  owed: number
  delivered: number
  pending: number
  failed: number
  expired: number
  cancelled: number
  quarantined: number
}

interface Health {
  destinationId: string
  inFlight: number
  pending: number
}

const SETTLE_DEADLINE_MS = 15_000
const COLUMNS = ['owed', 'delivered', 'pending', 'failed', 'expired', 'cancelled', 'quarantined'] as const

export const count = (value: number): string => value.toLocaleString('en-US')

export interface Parts {
  service: ServiceProcess
  wiring: Wiring
  receivers: Record<DestinationName, Receiver>
  traffic: Traffic
}

/**
 * Waits until nothing is in flight and the healthy receiver has no pending deliveries, at most 15 s. The other receivers may have
 * pending deliveries for hours.
 */
export async function untilSettled({ service, wiring }: Parts): Promise<void> {
  const deadline = performance.now() + SETTLE_DEADLINE_MS
  while (performance.now() < deadline) {
    const { data } = await service.api<{ data: Health[] }>('GET', '/destinations/health')
    const isDone = data.every(
      ({ destinationId, inFlight, pending }) => inFlight === 0 && (pending === 0 || destinationId !== wiring.destinations.warehouse),
    )
    if (isDone) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** Why messages did not reach a healthy receiver. `held`: the messageIds in quarantine. `deleted`: how many were deleted from it, by anybody. */
export function explain(
  missing: readonly (readonly [messageId: string, userId: string | undefined])[],
  { forgotten, held, deleted }: { forgotten: ReadonlySet<string>; held: ReadonlySet<string>; deleted: number },
): { lost: number; kept: string[] } {
  const others = missing.filter(([, userId]) => userId === undefined || !forgotten.has(userId))
  const unexplained = others.filter(([messageId]) => !held.has(messageId)).length
  const counts = [
    [missing.length - others.length, 'belong to users whose deletion was requested'],
    [others.length - unexplained, 'are in quarantine'],
    [Math.min(deleted, unexplained), 'were deleted from quarantine'],
  ] as const
  return { lost: Math.max(0, unexplained - deleted), kept: counts.flatMap(([some, why]) => (some === 0 ? [] : [`${count(some)} ${why}`])) }
}

async function quarantineOf(service: ServiceProcess): Promise<{ held: Set<string>; deleted: number }> {
  const held = new Set<string>()
  let cursor: string | null = ''
  while (cursor !== null) {
    const page: { data: { messageId: string }[]; next: string | null } = await service.api('GET', `/quarantine?limit=1000${cursor}`)
    for (const { messageId } of page.data) held.add(messageId)
    cursor = page.next === null ? null : `&cursor=${encodeURIComponent(page.next)}`
  }
  const { data } = await service.api<{ data: { deleted: number }[] }>('GET', '/stats/totals')
  return { held, deleted: data.reduce((sum, { deleted }) => sum + deleted, 0) }
}

/** Returns whether all checks passed. */
export async function printFinalReport({ service, wiring, receivers, traffic }: Parts, terminal: Terminal): Promise<boolean> {
  const counted = (await service.api<{ data: LedgerRow[] }>('GET', '/ledger')).data
  const recounted = (await service.api<{ data: LedgerRow[] }>('GET', '/ledger?recount=true')).data
  const names = Object.keys(TITLES) as DestinationName[]
  const rowOf = (rows: LedgerRow[], name: DestinationName): LedgerRow =>
    rows.find(({ destinationId }) => destinationId === wiring.destinations[name]) as LedgerRow

  terminal.line(terminal.dim(`  ${''.padEnd(15)}${COLUMNS.map((column) => column.padStart(12)).join('')}   counted by the receiver`))
  for (const name of names) {
    const row = rowOf(recounted, name)
    const { acceptedIds, repeats } = receivers[name]
    const counted = `${count(acceptedIds.size)} messages${repeats === 0 ? '' : `, ${count(repeats)} duplicates`}`
    terminal.line(`  ${TITLES[name].padEnd(15)}${COLUMNS.map((column) => count(row[column]).padStart(12)).join('')}   ${counted}`)
  }
  terminal.line()

  const balances = recounted.every((row) => row.owed === row.delivered + row.pending + row.failed + row.expired + row.cancelled)
  // Only `owed` is compared: between the two requests, deliveries may move from one of the other columns to another.
  const agrees = names.every((name) => rowOf(counted, name).owed === rowOf(recounted, name).owed)
  const { acceptedIds } = receivers.warehouse
  const missing = [...traffic.acknowledged].filter(([messageId]) => !acceptedIds.has(messageId))
  const { lost, kept } = explain(missing, { forgotten: traffic.forgotten, ...(await quarantineOf(service)) })
  const warehouse = rowOf(recounted, 'warehouse')
  const requests = names.reduce((sum, name) => sum + receivers[name].requests, 0)
  const wrong = names.reduce((sum, name) => sum + receivers[name].badSignatures, 0)
  const all = traffic.acknowledged.size
  const reached =
    kept.length === 0 ? `all ${count(all)} messages` : `${count(all - missing.length)} of ${count(all)} messages (${kept.join('; ')})`

  const checks: [holds: boolean, sentence: string][] = [
    [balances && agrees, 'owed = delivered + pending + failed + expired + cancelled for each destination, recounted from the rows.'],
    [
      lost === 0 && warehouse.delivered <= acceptedIds.size,
      lost === 0
        ? `No acknowledged message was lost: ${reached} reached the Warehouse receiver.`
        : `${count(lost)} acknowledged messages have not reached the Warehouse receiver; ${count(warehouse.pending)} are pending.`,
    ],
    [wrong === 0, `The receivers got ${count(requests)} requests; ${count(wrong)} had an invalid signature.`],
  ]
  for (const [holds, sentence] of checks) terminal.line(`  ${holds ? terminal.green('✔') : terminal.red('✘')} ${sentence}`)
  return checks.every(([holds]) => holds)
}
