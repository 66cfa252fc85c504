// Compares the senders' ledger with the receivers' and with the store's: every acknowledged message arrived at every destination,
// each delivery has exactly one outcome, and messages arrived twice only around a fault, or after an attempt that timed out. Reports
// differences by messageId. Waits until nothing is pending.

import assert from 'node:assert/strict'
import { callControl, type DeliveryView, type LedgerRow, TOKEN } from '../system/service.ts'
import { eventually, type Waiting } from '../system/signals.ts'
import { type Cluster, RESUME_MS } from './cluster.ts'
import type { Load, LoadReceiver } from './traffic.ts'

/** The time of a fault, in performance.now(). What was in flight then may arrive twice, until other nodes have taken it over. */
export interface Fault {
  fromMs: number
  toMs: number
}

export interface Comparison {
  acknowledged: number
  /** The number of retried calls, and how long the longest call took. */
  retried: number
  longestMs: number
  duplicates: { name: string; messages: number }[]
}

export interface CompareOptions extends Waiting {
  faults?: readonly Fault[]
}

const SHOWN = 10

export async function compareLedgers(cluster: Cluster, load: Load, options: CompareOptions = {}): Promise<Comparison> {
  const { faults = [], ...waiting } = options
  const { traffic, receivers } = load
  await traffic.finish()
  assert.deepEqual(traffic.rejected, [], 'no call was rejected permanently')
  const missing = [...traffic.sent].filter((id) => !traffic.acknowledged.has(id))
  assert.deepEqual(missing.slice(0, SHOWN), [], 'every call was acknowledged eventually')

  const own = new Set(receivers.map(({ destinationId }) => destinationId))
  const rows = await eventually(
    async () => (await cluster.ledger()).filter(({ destinationId }) => own.has(destinationId)),
    (ledger) => ledger.length === own.size && ledger.every(({ pending }) => pending === 0),
    { what: `nothing is pending of ${traffic.acknowledged.size} messages`, ...waiting },
  )
  const problems: string[] = []
  const duplicates: Comparison['duplicates'] = []
  for (const receiver of receivers) {
    const row = rows.find(({ destinationId }) => destinationId === receiver.destinationId) as LedgerRow
    problems.push(...(await problemsOf(cluster, receiver, row, traffic.acknowledged)))
    const twice = repeated(receiver, faults)
    duplicates.push({ name: receiver.name, messages: twice.all })
    for (const { id, problem } of twice.outside) if ((await timedOut(cluster, receiver.destinationId, id)) === 0) problems.push(problem)
  }
  await sameEverywhere(cluster, problems)
  if (problems.length > 0) {
    assert.fail(`${problems.length} problems:\n${problems.slice(0, 3 * SHOWN).join('\n')}\n${JSON.stringify(rows)}`)
  }
  return {
    acknowledged: traffic.acknowledged.size,
    retried: traffic.calls.filter(({ nth }) => nth > 1).length,
    longestMs: Math.max(...traffic.calls.map(({ ms }) => ms)),
    duplicates,
  }
}

async function problemsOf(
  cluster: Cluster,
  { name, destinationId, receiver }: LoadReceiver,
  row: LedgerRow,
  acknowledged: ReadonlySet<string>,
): Promise<string[]> {
  const problems: string[] = []
  const { owed, delivered, failed, expired, cancelled } = row
  const count = acknowledged.size
  if (owed !== count || delivered !== count || failed + expired + cancelled !== 0) {
    problems.push(`${name}: ${count} were acknowledged, and the ledger has ${JSON.stringify(row)}`)
  }
  const stored = new Map<string, DeliveryView[]>()
  for (const delivery of await deliveriesOf(cluster, destinationId)) {
    stored.set(delivery.messageId, [...(stored.get(delivery.messageId) ?? []), delivery])
  }
  for (const id of acknowledged) {
    const states = (stored.get(id) ?? []).map(({ state }) => state)
    const arrivals = (receiver.byMessageId.get(id) ?? []).filter(({ status }) => status === 200).length
    if (states.length !== 1)
      problems.push(`${name}: ${id} has ${states.length} deliveries in the store (${states.join()}), arrived ${arrivals} times`)
    else if (arrivals === 0) problems.push(`${name}: ${id} never arrived, and the store says ${states[0]}`)
    else if (states[0] !== 'delivered') problems.push(`${name}: ${id} arrived, and the store says ${states[0]}`)
  }
  for (const id of receiver.byMessageId.keys()) if (!acknowledged.has(id)) problems.push(`${name}: ${id} arrived and was never sent`)

  // Sums the outcomes of the attempts: a delivery that two nodes have settled would count twice.
  const [settled] = await cluster.query<{ delivered: string; others: string }>(
    `SELECT coalesce(sum(a.delivered), 0)::text AS delivered, coalesce(sum(a.failed + a.expired + a.cancelled), 0)::text AS others
     FROM switchyard.attempts a JOIN switchyard.destinations d ON d.num = a.destination WHERE d.id = $1`,
    [destinationId],
  )
  if (Number(settled?.delivered) !== count || Number(settled?.others) !== 0) {
    problems.push(`${name}: ${count} were acknowledged, and the attempts have outcomes for ${JSON.stringify(settled)}`)
  }
  return problems
}

async function deliveriesOf(cluster: Cluster, destinationId: string): Promise<DeliveryView[]> {
  const all: DeliveryView[] = []
  let cursor: string | null = null
  do {
    const after: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const page: { data: DeliveryView[]; next: string | null } = await cluster.api(
      `/deliveries?limit=1000&destinationId=${destinationId}${after}`,
    )
    all.push(...page.data)
    cursor = page.next
  } while (cursor !== null)
  return all
}

/** Checks that every node returns the same ledger, that it equals its recount, and that each message was accepted once. */
async function sameEverywhere(cluster: Cluster, problems: string[]): Promise<void> {
  for (const { name, url } of cluster.nodes.filter(({ isUp }) => isUp)) {
    const ledger = await callControl<{ data: LedgerRow[] }>(url, TOKEN, '/ledger')
    const recount = await callControl<{ data: LedgerRow[]; consistent: boolean }>(url, TOKEN, '/ledger?recount=true')
    if (!recount.consistent || JSON.stringify(ledger.data) !== JSON.stringify(recount.data)) {
      problems.push(`${name}: the ledger ${JSON.stringify(ledger.data)} differs from its recount: ${JSON.stringify(recount.data)}`)
    }
  }
}

interface Copy {
  id: string
  problem: string
}

/** Messages that arrived more than once, and those of them that no fault explains. */
function repeated({ name, receiver }: LoadReceiver, faults: readonly Fault[]): { all: number; outside: Copy[] } {
  let all = 0
  const outside: Copy[] = []
  for (const [id, arrivals] of receiver.byMessageId) {
    const taken = arrivals.filter(({ status }) => status === 200)
    if (taken.length < 2) continue
    all++
    for (const { atMs } of taken.slice(1)) {
      const isExplained = faults.some(({ fromMs, toMs }) => atMs >= fromMs && atMs <= toMs + RESUME_MS)
      const times = taken.map((arrival) => Math.round(arrival.atMs)).join()
      if (!isExplained) outside.push({ id, problem: `${name}: ${id} arrived ${taken.length} times, at ${times}` })
    }
  }
  return { all, outside }
}

/** How many attempts timed out. On a busy machine, that can happen although the receiver, which is in this process, has accepted the message. */
export async function timedOut(cluster: Cluster, destinationId: string, messageId: string): Promise<number> {
  const { deliveries } = await cluster.api<{ deliveries: { destinationId: string; attempts: { reason: string | null }[] }[] }>(
    `/messages/${encodeURIComponent(messageId)}`,
  )
  const attempts = deliveries.filter((each) => each.destinationId === destinationId).flatMap((each) => each.attempts)
  return attempts.filter(({ reason }) => reason === 'timeout').length
}

export function describe({ acknowledged, retried, longestMs, duplicates }: Comparison): string {
  const twice = duplicates.map(({ name, messages }) => `${messages} ${name}`).join(', ')
  return `${acknowledged} acknowledged, ${retried} calls retried, the longest took ${Math.round(longestMs)} ms; arrived twice: ${twice}`
}
