// What separates the failed messages of a destination from delivered ones of the same event. Computed from stored messages when somebody asks:
// a bounded number of them, within a deadline, and for a few callers at the same time. Privacy rules have changed the stored messages already.

import type { JsonObject } from '@switchyard/protocol'
import { DELIVERY_FILTERS } from '../../api/list-filters.ts'
import { array, integer, nullable, number, object, oneOf, optional, string } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import { outboundMessage } from '../../outbound/outbound-message.ts'
import type { Store } from '../../store/store.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'
import { featuresOf } from './message-features.ts'
import { type Difference, DifferenceCounts, LEAST_MESSAGES } from './rank-differences.ts'

/** Of each group. One costs a few small reads. */
const MOST_EXAMINED = 150
/** Deliveries that are listed to find messages of the event. */
const MAX_PAGES = 5
const PAGE = 200
const READ_AT_ONCE = 10
const LIMIT_MS = 8_000
const MAX_AT_ONCE = 2
const SHOWN = 10

const FILTERS = {
  destinationId: string({ min: 1, description: 'The destination.' }),
  state: optional(
    oneOf(['failed', 'expired'], { description: 'The state of the deliveries to compare with delivered ones. Default: failed.' }),
  ),
  reason: DELIVERY_FILTERS.reason,
  event: optional(string({ min: 1, description: 'The event. Default: the most frequent one of the newest failed deliveries.' })),
  from: DELIVERY_FILTERS.from,
  to: DELIVERY_FILTERS.to,
}
const EXAMINED = object(
  { failed: integer(), delivered: integer() },
  { description: 'How many messages were compared: the newest of each group.' },
)
const ANSWER = object({
  type: nullable(string({ description: 'The type of the compared messages; null if no delivery matches.' })),
  event: nullable(string({ description: 'Their event, if they have one.' })),
  examined: EXAMINED,
  complete: oneOf(['yes', 'too_few', 'out_of_time'], {
    description: `\`too_few\`: a group has fewer than ${LEAST_MESSAGES} messages, so nothing can be said. \`out_of_time\`: fewer messages were compared than are stored, because reading them took too long.`,
  }),
  data: array(
    object({
      field: nullable(string({ description: 'The field, such as `properties.products[].price`; null for what is not a field.' })),
      kind: oneOf(['presence', 'type', 'value', 'source', 'version', 'size'], {
        description:
          'Whether the field exists, its type, its value; or the source, the version of the destination, or the size of the message.',
      }),
      value: nullable(string({ description: 'The type, the value as JSON, the id of the source, the version, or the least size.' })),
      sentence: string({ description: 'The difference as a sentence.' }),
      failed: integer({ description: 'How many of the failed messages are like this.' }),
      delivered: integer({ description: 'How many of the delivered messages are like this.' }),
      score: number({ description: 'From -1 (only delivered messages are like this) to 1 (only failed ones are).' }),
    }),
    { description: `What separates best comes first, at most ${SHOWN} entries. Empty if nothing separates the messages.` },
  ),
})

interface Wanted {
  type: string | null
  event: string | null
}
type Query = {
  destinationId: string
  state: 'failed' | 'expired' | 'delivered'
  reason?: string | undefined
  fromMs?: number | undefined
  toMs?: number | undefined
}

export function differenceRoutes({ store }: ControlParts): Route[] {
  return [
    route('GET', '/deliveries/differences', {
      summary: 'Compare failed messages with delivered ones of the same event',
      access: { role: 'viewer', sources: 'limited' },
      description: `Examines the newest deliveries, at most ${MOST_EXAMINED} of each group, and ranks what separates the two. Values are shown if at least three messages share them.`,
      query: object(FILTERS),
      answer: ANSWER,
      errors: ['too_many_previews'],
      async handle({ query: { destinationId, state = 'failed', reason, event, from: fromMs, to: toMs } }) {
        return oneOfFew(async () => {
          const untilMs = performance.now() + LIMIT_MS
          const times = { destinationId, fromMs, toMs }
          const failed = await listed(store, { ...times, state, reason }, event === undefined ? null : { type: null, event }, untilMs)
          const wanted = mostFrequent(failed)
          if (wanted === null)
            return { type: null, event: null, examined: { failed: 0, delivered: 0 }, complete: 'too_few' as const, data: [] }
          const delivered = await listed(store, { ...times, state: 'delivered' }, wanted, untilMs)
          const counts = new DifferenceCounts()
          const isWhole = await compare(
            store,
            counts,
            failed.filter((row) => isLike(row, wanted)),
            delivered,
            untilMs,
          )
          const { totals } = counts
          const isTooFew = Math.min(totals.failed, totals.delivered) < LEAST_MESSAGES
          const { sources } = store.configuration()
          return {
            ...wanted,
            examined: totals,
            complete: isWhole ? (isTooFew ? 'too_few' : 'yes') : 'out_of_time',
            data: counts.ranked(SHOWN).map((one) => view(one, totals, (id) => sources.get(id)?.name ?? id)),
          }
        })
      },
    }),
  ]
}

let running = 0

async function oneOfFew<T>(work: () => Promise<T>): Promise<T> {
  if (running >= MAX_AT_ONCE)
    throw new ApiError('too_many_previews', {
      message: `Too many comparisons are running: at most ${MAX_AT_ONCE} at the same time. Try again in a few seconds.`,
    })
  running++
  try {
    return await work()
  } finally {
    running--
  }
}

type Row = { id: string; type: string | null; event: string | null }

/** The newest deliveries; only of this event, or of this type if it has no event. */
async function listed({ history }: Store, { reason, ...query }: Query, wanted: Wanted | null, untilMs: number): Promise<Row[]> {
  const found: Row[] = []
  let cursor: string | null = null
  for (let page = 0; page < MAX_PAGES; page++) {
    const filter = { ...query, reason, event: wanted?.event ?? undefined }
    const { data, next } = await history.deliveries(filter, { limit: PAGE, cursor })
    found.push(...data.filter((row) => wanted === null || isLike(row, wanted)))
    cursor = next
    // Without an event, the newest page says which one is the most frequent.
    if (cursor === null || found.length >= MOST_EXAMINED || performance.now() > untilMs) break
  }
  return found
}

function isLike(row: Row, { type, event }: Wanted): boolean {
  return (type === null || row.type === type) && row.event === event
}

function mostFrequent(rows: readonly Row[]): Wanted | null {
  const counts = new Map<string, { wanted: Wanted; count: number }>()
  for (const { type, event } of rows) {
    if (type === null) continue
    const key = JSON.stringify([type, event])
    const known = counts.get(key)
    if (known === undefined) counts.set(key, { wanted: { type, event }, count: 1 })
    else known.count++
  }
  return [...counts.values()].sort((a, b) => b.count - a.count)[0]?.wanted ?? null
}

/** Reads both groups in turn, so that the deadline leaves some of both. Returns whether all were read. */
async function compare(
  store: Store,
  counts: DifferenceCounts,
  failed: readonly Row[],
  delivered: readonly Row[],
  untilMs: number,
): Promise<boolean> {
  for (let at = 0; at < MOST_EXAMINED; at += READ_AT_ONCE) {
    for (const [group, rows] of [['failed', failed] as const, ['delivered', delivered] as const]) {
      if (at >= rows.length) continue
      if (performance.now() > untilMs) return false
      const read = await Promise.all(rows.slice(at, Math.min(at + READ_AT_ONCE, MOST_EXAMINED)).map(({ id }) => store.history.delivery(id)))
      for (const detail of read) {
        // It was deleted in the meantime, or the message was.
        if (detail?.content?.items[detail.index] == null) continue
        const message: JsonObject = outboundMessage(detail.content, detail.index)
        const bytes = Buffer.byteLength(JSON.stringify(message))
        counts.add(group, featuresOf(message, { sourceId: detail.sourceId, version: detail.history.at(-1)?.version ?? null, bytes }))
      }
    }
  }
  return true
}

function view(
  { feature, failed, delivered, share }: Difference,
  totals: { failed: number; delivered: number },
  nameOf: (id: string) => string,
) {
  const { kind, path, value } = feature
  const field = path.length === 0 ? null : fieldText(path)
  const counts = `${failed} of ${totals.failed} failed messages and ${delivered} of ${totals.delivered} delivered ones`
  return {
    field,
    kind,
    value: kind === 'presence' ? null : value,
    sentence: `${subject(kind, field, value, nameOf)}: ${counts}.`,
    failed,
    delivered,
    score: Math.round(share * 1_000) / 1_000,
  }
}

function subject(kind: Difference['feature']['kind'], field: string | null, value: string, nameOf: (id: string) => string): string {
  if (kind === 'presence') return `${field} is set`
  if (kind === 'type') return `${field} is ${/^[aeiou]/.test(value) ? 'an' : 'a'} ${value}`.replace('is a null', 'is null')
  if (kind === 'value') return `${field} is ${value}`
  if (kind === 'source') return `The source is ${nameOf(value)}`
  if (kind === 'version') return `Sent with version ${value} of the destination`
  return value.endsWith('fields') ? `The message has more than ${value}` : `The message has ${value} or more`
}

/** `properties.products[].price`. A name with other characters is quoted. */
function fieldText(path: readonly string[]): string {
  return path
    .map((name, at) => (name === '[]' ? '[]' : /^[\w$-]+$/.test(name) ? `${at === 0 ? '' : '.'}${name}` : `[${JSON.stringify(name)}]`))
    .join('')
}
