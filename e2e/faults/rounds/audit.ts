// Compares what senders were told with what receivers accepted and with what the service recorded: every acknowledged message reached every destination that
// must get it, every delivery ended once and as expected, the ledger equals its recount on every node, and a fault explains every copy that
// arrived twice. Returns counts, and a sentence for each difference.

import { RESUME_MS } from '../../cluster/cluster.ts'
import { callControl, type DeliveryView, type LedgerRow, type SourceStats, TOKEN } from '../../system/service.ts'
import { eventually } from '../../system/signals.ts'
import { type FinalState, LETTERS, type TalliedDestination } from '../system/destinations.ts'
import { accountOf, numberOf } from '../system/numbered-message.ts'
import type { System } from '../system/system.ts'
import type { FaultTime, RoundResult } from './fault.ts'
import { auditOrder } from './order-audit.ts'
import { auditTables } from './table-audit.ts'

/** What the audit finds out about a round. */
export type Audit = Omit<RoundResult, 'faults' | 'recoveredMs'>

/** Outcomes are recorded at most this long after the response, so older ones must not be sent again. The invariant says 1 s; the rest is a margin for busy machines. */
const RECORDED_MS = 4_000
/** The most responses to one node, at one destination, that are not recorded yet. */
const RECORDED_LATE = 100
/** The same if nothing is recorded and the store reports no error: what one node can send to a destination in a second, on the usual machine. After that it sends nothing. */
const SENT_IN_A_SECOND = 1_000
const SHOWN = 5

export interface AuditOptions {
  /** The faults that can make a delivery arrive twice. */
  faults: readonly FaultTime[]
  /** Whether copies must arrive before later messages of their keys. */
  repeatsInOrder?: boolean
  /** The ledger and the number of accepted messages before the traffic began. */
  before?: { ledger: readonly LedgerRow[]; accepted: number }
  /** The maximum number of nodes that one fault affects; 1 by default. */
  nodesAtOnce?: number
  /** Whether outcomes cannot be recorded during a fault, and the store reports no error. If it does, nodes stop sending at once. */
  isSilent?: boolean
  /** How long deliveries may take to end. */
  deadlineMs?: number
  /** Whether retention may have dropped messages whose deliveries have ended. */
  mayBeDropped?: boolean
}

/** Ends the traffic, waits until nothing is pending, and compares. */
export async function auditSystem(system: System, options: AuditOptions): Promise<Audit> {
  const { faults, before, nodesAtOnce = 1, isSilent = false, deadlineMs = 180_000, mayBeDropped = false, repeatsInOrder = false } = options
  const { traffic, destinations, warehouses } = system
  const problems: string[] = []
  await traffic.finish({ deadlineMs })
  const { acknowledged, sent, rejected } = traffic
  if (rejected.length > 0) problems.push(`${rejected.length} calls were rejected permanently, the first with ${rejected[0]?.status}`)
  problems.push(...traffic.problems.slice(0, SHOWN))
  if (sent.size !== acknowledged.size) problems.push(`${sent.size - acknowledged.size} messages were never acknowledged`)

  const own = new Set([...destinations, ...warehouses].map(({ id }) => id))
  const letters = destinations.find(({ name }) => name === LETTERS)
  const rows = await eventually(
    async () => (await system.api<{ data: LedgerRow[] }>('/ledger')).data.filter(({ destinationId }) => own.has(destinationId)),
    (ledger) => ledger.length === own.size && ledger.every(({ pending }) => pending === 0),
    { what: `all deliveries of ${acknowledged.size} messages have ended`, deadlineMs },
  ).catch((error: Error) => {
    problems.push(error.message)
    return [] as LedgerRow[]
  })

  const lost = new Set<string>()
  const ordered = { checked: 0, outOfOrder: 0 }
  let repeated = 0
  let mostRepeated = 0
  let repeatBound = 0
  for (const destination of destinations) {
    const owed = owedTo(destination, acknowledged)
    problems.push(...ledgerProblems(destination, owed, rows, before?.ledger))
    problems.push(...arrivalProblems(destination, owed, sent, lost))
    const stored = mayBeDropped ? undefined : lost
    if (destination !== letters) problems.push(...(await deliveryProblems(system, destination, owed, stored)))
    const copies = repeats(destination, faults)
    repeated += copies.messages
    const bound = destination.inFlight + (isSilent ? SENT_IN_A_SECOND : RECORDED_LATE) * nodesAtOnce
    if (faults.length > 0) repeatBound = Math.max(repeatBound, bound)
    mostRepeated = Math.max(mostRepeated, copies.mostPerFault)
    problems.push(...(await unexplainedCopies(system, destination, copies.unexplained, mayBeDropped)))
    if (copies.mostPerFault > bound) problems.push(`${destination.name}: ${copies.mostPerFault} messages arrived twice after one fault`)
    if (!mayBeDropped) problems.push(...(await settledTwice(system, destination, owed)))
    problems.push(...orderProblems(system, destination, repeatsInOrder ? [] : faults, ordered))
  }
  const tables = { checked: 0, wrong: 0 }
  for (const warehouse of warehouses) {
    const owed = owedTo(warehouse, acknowledged)
    problems.push(...ledgerProblems(warehouse, owed, rows), ...(await deliveryProblems(system, warehouse, owed, lost)))
    problems.push(...(await settledTwice(system, warehouse, owed)))
    const found = auditTables(owed, sent, await warehouse.read())
    for (const id of found.missing) lost.add(id)
    tables.checked += found.checked
    tables.wrong += found.wrong
    problems.push(...found.problems.map((problem) => `${warehouse.name}: ${problem}`))
  }
  problems.push(...system.problems, ...(await bookProblems(system, (before?.accepted ?? 0) + acknowledged.size)))
  return {
    acknowledged: acknowledged.size,
    lost: lost.size,
    ordered: destinations.some(({ sightings }) => sightings !== undefined) ? ordered : null,
    tables: warehouses.length > 0 ? tables : null,
    repeated,
    mostRepeated,
    repeatBound,
    longestPauseMs: longestPause(system),
    problems,
  }
}

type Owed = ReadonlyMap<string, FinalState>
/** What webhooks and warehouses have in common. */
type Known = Pick<TalliedDestination, 'name' | 'id' | 'expected'>

function owedTo({ expected }: Known, acknowledged: ReadonlySet<string>): Owed {
  const owed = new Map<string, FinalState>()
  for (const id of acknowledged) {
    const state = expected(numberOf(id))
    if (state !== undefined) owed.set(id, state)
  }
  return owed
}

function countOf(owed: Owed, wanted: FinalState): number {
  let count = 0
  for (const state of owed.values()) if (state === wanted) count++
  return count
}

function ledgerProblems({ name, id }: Known, owed: Owed, rows: readonly LedgerRow[], before: readonly LedgerRow[] = []): string[] {
  const row = rows.find(({ destinationId }) => destinationId === id)
  // What was pending before must have been delivered.
  const then = before.find(({ destinationId }) => destinationId === id) ?? { owed: 0, delivered: 0, pending: 0, failed: 0 }
  if (row === undefined) return []
  const wanted = {
    owed: then.owed + owed.size,
    delivered: then.delivered + then.pending + countOf(owed, 'delivered'),
    pending: 0,
    failed: then.failed + countOf(owed, 'failed'),
    expired: countOf(owed, 'expired'),
    cancelled: countOf(owed, 'cancelled'),
  }
  const differs = Object.entries(wanted).some(([field, value]) => row[field as keyof LedgerRow] !== value)
  return differs ? [`${name}: the ledger has ${JSON.stringify(row)} instead of ${JSON.stringify(wanted)}`] : []
}

function arrivalProblems({ name, tally }: TalliedDestination, owed: Owed, sent: ReadonlySet<string>, lost: Set<string>): string[] {
  const missing = [...owed].filter(([id, state]) => state === 'delivered' && !tally.has(id)).map(([id]) => id)
  for (const id of missing) lost.add(id)
  const foreign = [...tally.ids()].filter((id) => !sent.has(id))
  return [
    ...(missing.length > 0 ? [`${name}: ${missing.length} acknowledged messages never arrived: ${missing.slice(0, SHOWN).join()}`] : []),
    ...(foreign.length > 0 ? [`${name}: ${foreign.length} messages arrived that were never sent: ${foreign.slice(0, SHOWN).join()}`] : []),
  ]
}

/** Every message must have one delivery, with the expected outcome. Missing ones are added to `lost`; if that is undefined, they may be missing. */
async function deliveryProblems(system: System, { name, id }: Known, owed: Owed, lost: Set<string> | undefined): Promise<string[]> {
  const problems: string[] = []
  const seen = new Set<string>()
  for await (const { messageId, state } of deliveriesOf(system, id)) {
    if (seen.has(messageId) && owed.has(messageId)) problems.push(`${name}: ${messageId} has two deliveries in the store`)
    seen.add(messageId)
    if (owed.has(messageId) && owed.get(messageId) !== state)
      problems.push(`${name}: ${messageId} is ${state} in the store instead of ${owed.get(messageId)}`)
  }
  const missing = lost === undefined ? [] : [...owed.keys()].filter((messageId) => !seen.has(messageId))
  for (const messageId of missing) lost?.add(messageId)
  if (missing.length > 0)
    problems.push(`${name}: ${missing.length} acknowledged messages are not in the store: ${missing.slice(0, SHOWN).join()}`)
  return problems.slice(0, SHOWN)
}

async function* deliveriesOf(system: System, destinationId: string): AsyncIterable<DeliveryView> {
  let cursor: string | null = null
  do {
    const after: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const page: { data: DeliveryView[]; next: string | null } = await system.api(
      `/deliveries?limit=1000&destinationId=${destinationId}${after}`,
    )
    yield* page.data
    cursor = page.next
  } while (cursor !== null)
}

/** Adds to the counts. */
function orderProblems(
  { traffic }: System,
  { name, sightings, expected }: TalliedDestination,
  faults: readonly FaultTime[],
  counts: { checked: number; outOfOrder: number },
): string[] {
  if (sightings === undefined) return []
  const endsByAnswer = (state: FinalState | undefined): boolean => state === 'delivered' || state === 'failed'
  const keyOf = (id: string): string | null => (endsByAnswer(expected(numberOf(id))) ? accountOf(numberOf(id)) : null)
  const { checked, outOfOrder, problems } = auditOrder({ order: traffic.order, sightings, keyOf, faults })
  counts.checked += checked
  counts.outOfOrder += outOfOrder
  return problems.map((problem) => `${name}: ${problem}`)
}

/** Sums the outcomes of the recorded attempts. A delivery that two nodes have settled would count twice. */
async function settledTwice({ cluster }: System, { name, id }: Known, owed: Owed): Promise<string[]> {
  if (cluster === undefined) return []
  const [row] = await cluster.query<{ delivered: string }>(
    `SELECT coalesce(sum(a.delivered), 0)::text AS delivered
     FROM switchyard.attempts a JOIN switchyard.destinations d ON d.num = a.destination WHERE d.id = $1`,
    [id],
  )
  const wanted = countOf(owed, 'delivered')
  return Number(row?.delivered) === wanted
    ? []
    : [`${name}: the recorded attempts delivered ${row?.delivered} messages instead of ${wanted}`]
}

async function bookProblems({ nodes, sourceId }: System, acknowledged: number): Promise<string[]> {
  const problems: string[] = []
  for (const { name, url } of nodes.filter(({ isUp }) => isUp)) {
    const ledger = await callControl<{ data: LedgerRow[] }>(url, TOKEN, '/ledger')
    const recount = await callControl<{ data: LedgerRow[]; consistent: boolean }>(url, TOKEN, '/ledger?recount=true')
    if (!recount.consistent || JSON.stringify(ledger.data) !== JSON.stringify(recount.data))
      problems.push(`${name}: the ledger ${JSON.stringify(ledger.data)} differs from its recount ${JSON.stringify(recount.data)}`)
    const { data } = await callControl<{ data: SourceStats[] }>(url, TOKEN, '/stats/totals')
    const accepted = data.find((row) => row.sourceId === sourceId)?.accepted
    if (accepted !== acknowledged)
      problems.push(`${name}: ${accepted} messages are counted as accepted, but ${acknowledged} were acknowledged`)
  }
  return problems
}

/** Messages of which more than one copy was accepted; the most after one fault; and copies that no fault explains. */
function repeats(
  { tally }: TalliedDestination,
  faults: readonly FaultTime[],
): { messages: number; mostPerFault: number; unexplained: string[] } {
  let messages = 0
  const perFault = new Map<FaultTime, number>()
  const unexplained: string[] = []
  for (const [id, times] of tally.repeated()) {
    messages++
    for (const [at, timeMs] of times.slice(1).entries()) {
      const earlierMs = times[at] as number
      // The earlier copy was accepted when the fault could keep its outcome from being recorded. A busy machine may send the next one late.
      const isCause = ({ fromMs, toMs }: FaultTime): boolean =>
        timeMs >= fromMs && earlierMs >= fromMs - RECORDED_MS && earlierMs <= toMs + RESUME_MS
      const causes = faults.filter(isCause)
      // The next fault to end, or else the one before it, from which the system was recovering.
      const cause = causes.find(({ toMs }) => toMs >= earlierMs) ?? causes.at(-1)
      if (cause === undefined) unexplained.push(id)
      else perFault.set(cause, (perFault.get(cause) ?? 0) + 1)
    }
  }
  return { messages, mostPerFault: Math.max(0, ...perFault.values()), unexplained }
}

/**
 * Reports copies that no failed attempt explains either. On a busy machine, an attempt can time out although the receiver has accepted the
 * message; then the failed attempt is recorded. The attempts of a message that retention dropped are unknown.
 */
async function unexplainedCopies(
  system: System,
  { name, id }: TalliedDestination,
  messageIds: readonly string[],
  mayBeDropped: boolean,
): Promise<string[]> {
  const problems: string[] = []
  for (const messageId of messageIds) {
    const attempts = await attemptsOf(system, id, messageId).catch((error: Error) => {
      if (mayBeDropped && error.message.includes(': 404 ')) return null
      throw error
    })
    if (attempts === null) continue
    // If an attempt failed with an HTTP status, the receiver has not accepted the message in it.
    if (attempts.some(({ reason }) => reason !== null && !reason.startsWith('http_'))) continue
    problems.push(`${name}: ${messageId} arrived more than once, and neither a fault nor a failed attempt explains it`)
    if (problems.length === SHOWN) break
  }
  return problems
}

interface Attempted {
  id: string
  destinationId: string
  state: string
  attempts: { reason: string | null }[]
}

async function attemptsOf(system: System, destinationId: string, messageId: string): Promise<Attempted['attempts']> {
  const { deliveries } = await system.api<{ deliveries: Attempted[] }>(`/messages/${messageId}`)
  const own = deliveries.find((delivery) => delivery.destinationId === destinationId)
  if (own !== undefined) return own.attempts
  // A dead letter is a message of its own.
  for (const { id, state } of deliveries) {
    if (state !== 'failed') continue
    const { deadLetter } = await system.api<{ deadLetter: { destinationId: string; messageId: string } | null }>(`/deliveries/${id}`)
    if (deadLetter?.destinationId === destinationId) return await attemptsOf(system, destinationId, deadLetter.messageId)
  }
  return []
}

/** The longest time between two calls that were answered with 200. Null if the traffic does not record its calls. */
function longestPause({ traffic }: System): number | null {
  if (traffic.calls.length === 0) return null
  const ends = traffic.calls.filter(({ status }) => status === 200).map(({ startMs, ms }) => startMs + ms)
  ends.sort((a, b) => a - b)
  let longest = 0
  for (const [at, end] of ends.entries()) if (at > 0) longest = Math.max(longest, end - (ends[at - 1] as number))
  return longest
}
