// The end of the demo: the service's books, recounted from the rows, beside what the receivers and the client counted by themselves.
// A check that does not hold says so and makes the demo's exit code 1.

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
}

interface Health {
  destinationId: string
  inFlight: number
  pending: number
}

const SETTLE_DEADLINE_MS = 15_000
const COLUMNS = ['owed', 'delivered', 'pending', 'failed', 'expired', 'cancelled'] as const

export const count = (value: number): string => value.toLocaleString('en-US')

export interface Parts {
  service: ServiceProcess
  wiring: Wiring
  receivers: Record<DestinationName, Receiver>
  traffic: Traffic
}

/** Nothing is under way, and the good receiver has all that it is owed. The others may be owed something for hours. */
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

/** Gives whether everything holds. */
export async function closeBooks({ service, wiring, receivers, traffic }: Parts, terminal: Terminal): Promise<boolean> {
  const kept = (await service.api<{ data: LedgerRow[] }>('GET', '/ledger')).data
  const recounted = (await service.api<{ data: LedgerRow[] }>('GET', '/ledger?recount=true')).data
  const names = Object.keys(TITLES) as DestinationName[]
  const rowOf = (rows: LedgerRow[], name: DestinationName): LedgerRow =>
    rows.find(({ destinationId }) => destinationId === wiring.destinations[name]) as LedgerRow

  terminal.line(terminal.dim(`  ${''.padEnd(15)}${COLUMNS.map((column) => column.padStart(11)).join('')}   the receiver itself counted`))
  for (const name of names) {
    const row = rowOf(recounted, name)
    const { taken, repeats } = receivers[name]
    const told = `${count(taken.size)} messages${repeats === 0 ? '' : `, ${count(repeats)} of them twice`}`
    terminal.line(`  ${TITLES[name].padEnd(15)}${COLUMNS.map((column) => count(row[column]).padStart(11)).join('')}   ${told}`)
  }
  terminal.line()

  const balances = recounted.every((row) => row.owed === row.delivered + row.pending + row.failed + row.expired + row.cancelled)
  // What is on the way between the two questions moves from one column to the other.
  const agrees = names.every((name) => rowOf(kept, name).owed === rowOf(recounted, name).owed)
  const { taken } = receivers.warehouse
  const missing = [...traffic.acknowledged].filter(([messageId]) => !taken.has(messageId))
  const lost = missing.filter(([, userId]) => userId === undefined || !traffic.forgotten.has(userId)).length
  const warehouse = rowOf(recounted, 'warehouse')
  const requests = names.reduce((sum, name) => sum + receivers[name].requests, 0)
  const wrong = names.reduce((sum, name) => sum + receivers[name].badSignatures, 0)
  const forgotten = missing.length - lost
  const all = traffic.acknowledged.size
  const reached =
    forgotten === 0
      ? `all ${count(all)} messages`
      : `${count(all - forgotten)} of ${count(all)} messages (the others are of people who asked to be forgotten)`

  const checks: [holds: boolean, sentence: string][] = [
    [balances && agrees, 'owed = delivered + pending + failed + expired + cancelled, for each, recounted from the rows.'],
    [
      lost === 0 && warehouse.delivered <= taken.size,
      lost === 0
        ? `Nothing acknowledged was lost: ${reached} reached the Warehouse's receiver.`
        : `${count(lost)} acknowledged messages have not reached the Warehouse's receiver; ${count(warehouse.pending)} are pending.`,
    ],
    [wrong === 0, `${count(requests)} requests were made to the receivers; ${count(wrong)} had a wrong signature.`],
  ]
  for (const [holds, sentence] of checks) terminal.line(`  ${holds ? terminal.green('✔') : terminal.red('✘')} ${sentence}`)
  return checks.every(([holds]) => holds)
}
