// Checks the promises about order (docs/guide/order.md) for every two messages of a key of which it is certain which one was accepted first: the second
// is not sent before the delivery of the first has ended, and the first is not sent again after that, unless a fault kept its outcome from being
// recorded and the second was sent before the fault was over. Pure.

import { RESUME_MS } from '../../cluster/cluster.ts'
import type { SentOrder } from '../../cluster/sent-order.ts'
import type { SeenMessage, Sighting, Sightings } from '../system/sightings.ts'
import type { FaultTime } from './fault.ts'

export interface OrderAudit {
  /** Messages whose order was compared with that of others. */
  checked: number
  /** Messages that came too early or again too late. */
  outOfOrder: number
  /** A sentence for each of the first of them. */
  problems: string[]
}

export interface OrderAuditOptions {
  order: Pick<SentOrder, 'isBefore'>
  sightings: Sightings
  /** Null: the message has no key, or its delivery may end without a request. */
  keyOf: (messageId: string) => string | null
  /** After these, messages may be sent again although others of their keys have been sent. */
  faults: readonly FaultTime[]
}

const SHOWN = 5
/** How long before a fault the first message may have been answered and not recorded. It is recorded within a second, but on a busy machine later. */
const RECORDED_LATE_MS = 15_000

export function auditOrder({ order, sightings, keyOf, faults }: OrderAuditOptions): OrderAudit {
  const byKey = new Map<string, string[]>()
  for (const id of sightings.ids()) {
    const key = keyOf(id)
    if (key !== null) byKey.set(key, [...(byKey.get(key) ?? []), id])
  }
  let checked = 0
  const wrong = new Map<string, string>()
  for (const [key, ids] of byKey) {
    checked += ids.length
    for (const first of ids) {
      for (const second of ids) {
        if (first === second || !order.isBefore(first, second)) continue
        const problem = inversion(sightings.get(first) as SeenMessage, sightings.get(second) as SeenMessage, faults)
        if (problem !== null) wrong.set(second, `${first} and ${second} of ${key}: ${problem}`)
      }
    }
  }
  return { checked, outOfOrder: wrong.size, problems: [...wrong.values()].slice(0, SHOWN) }
}

/** What is wrong with two messages of a key; null if nothing is. `a` was accepted first. */
function inversion(a: SeenMessage, b: SeenMessage, faults: readonly FaultTime[]): string | null {
  const start = b.sightings[0] as Sighting
  const together = a.sightings.find(({ request }) => request === start.request)
  if (together !== undefined && together.place > start.place) return 'they were in one request in the wrong order'
  const endMs = Math.min(...a.endsMs)
  if (together === undefined && !(endMs <= start.atMs))
    return `the second arrived at ${at(start.atMs)}, before the first had ended (${at(endMs)})`
  for (const again of a.sightings) {
    if (again.request === start.request || again.atMs < start.atMs) continue
    const repeated = b.sightings.find(({ request }) => request === again.request)
    if (repeated !== undefined && again.place < repeated.place) continue
    if (repeated !== undefined) return 'they were repeated in one request in the wrong order'
    if (!faults.some((fault) => explains(fault, lastAttemptMs(a, again), start.atMs, again.atMs)))
      return `the first arrived again at ${at(again.atMs)}, after the second (${at(start.atMs)}), and no fault explains it: ${listOf(a, faults)}`
  }
  return null
}

/** When the last attempt before `again` ended, or when it began if it never ended because its process died during the request. */
function lastAttemptMs({ sightings, endsMs }: SeenMessage, again: Sighting): number {
  const begins = sightings.filter((sighting) => sighting !== again).map(({ atMs }) => atMs)
  return Math.max(...[...begins, ...endsMs].filter((ms) => ms <= again.atMs))
}

/** Whether the fault may have kept the outcome of a message from being recorded, while the next one had been sent. */
function explains({ fromMs, toMs, sentUntilMs = toMs + RESUME_MS }: FaultTime, lastMs: number, nextMs: number, againMs: number): boolean {
  return againMs >= fromMs && lastMs >= fromMs - RECORDED_LATE_MS && lastMs <= toMs + RESUME_MS && nextMs <= sentUntilMs
}

/** Everything that is needed to find out why: when the first message arrived and was answered, and when the faults were. */
function listOf({ sightings, endsMs }: SeenMessage, faults: readonly FaultTime[]): string {
  const times = (list: readonly number[]): string => list.map(at).join(', ') || 'never'
  const causes = faults.map(({ fromMs, toMs }) => `${at(fromMs)} to ${at(toMs)}`).join(', ') || 'none'
  return `it arrived at ${times(sightings.map(({ atMs }) => atMs))}; it was answered at ${times(endsMs)}; faults: ${causes}`
}

function at(ms: number): string {
  return Number.isFinite(ms) ? `${Math.round(ms)} ms` : 'never'
}
