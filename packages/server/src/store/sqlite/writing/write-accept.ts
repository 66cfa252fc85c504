// Accepts a batch, inside the group's transaction: drops duplicates, writes the segment and one shipment per destination, and updates the ledger
// and the counts. If every message is a duplicate, only the counts are written.

import type { StatementSync } from 'node:sqlite'
import { type Accepted, freshShipment } from '../../delivery/hand-to-delivery.ts'
import type { PlannedShipment } from '../../delivery/ordered-shipments.ts'
import { packBody } from '../../encoding/body-bytes.ts'
import { clearFingerprint, KEY_WORDS } from '../../encoding/segment-keys.ts'
import { type Routes, storedSkips } from '../../encoding/stored-parts.ts'
import type { NewQuarantined, Skip } from '../../store.ts'
import { insertQuarantined } from './quarantine-rows.ts'
import { countRepeats } from './repeats.ts'
import type { WriterContext } from './writer-context.ts'

export interface AcceptCommand {
  sourceId: string
  receivedAtMs: number
  ip: string | null
  browser: boolean
  /** In the format of the trace column. */
  trace: string | null
  count: number
  /** The offset in the group's buffer, in words of 32 bits. Set when the group is formed. */
  keysAt: number
  /** The offset in the group's buffer, in bytes. Set when the group is formed. */
  bodyAt: number
  bodyBytes: number
  shipments: readonly (PlannedShipment & { isReserved: boolean })[]
  skips: readonly Skip[]
  /** In the format of the violations column. */
  violations: string | null
  quarantined: readonly NewQuarantined[] | undefined
}

export class AcceptWriter {
  readonly #context: WriterContext
  readonly #insertSegment: StatementSync

  constructor(context: WriterContext) {
    this.#context = context
    const { database } = context
    this.#insertSegment = database.prepare(
      'INSERT INTO segments (seq, source, received_at, ip, browser, count, absent, routes, keys, body, trace, violations) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    )
  }

  accept(command: AcceptCommand, buffer: ArrayBuffer): Accepted {
    const { rows, ids, sources, counts, duplicates } = this.#context
    const source = sources.num(command.sourceId)
    if (source === undefined) throw new Error(`unknown source ${command.sourceId}`)
    const seq = ids.next()
    const keys = new Uint32Array(buffer, command.keysAt * 4, command.count * KEY_WORDS)
    const repeated = this.#repeated(keys, command.count, seq)
    const newCount = command.count - repeated.length
    counts.add(source, 'accepted', newCount)
    if (repeated.length > 0) {
      counts.add(source, 'duplicates', repeated.length)
      countRepeats(rows, duplicates, keys, repeated, command.receivedAtMs)
    }
    if (newCount === 0 && command.count > 0) return { segment: null, duplicates: repeated, claimed: [], unclaimed: [], ordered: [] }
    const reply: Accepted = { segment: seq, duplicates: repeated, claimed: [], unclaimed: [], ordered: [] }
    const routes = this.#ship(command, seq, repeated, reply)
    this.#insertSegment.run(
      seq,
      source,
      command.receivedAtMs,
      command.ip,
      command.browser ? 1 : 0,
      command.count,
      repeated.length === 0 ? null : JSON.stringify(repeated),
      JSON.stringify(routes),
      storedKeys(keys, repeated),
      packBody(new Uint8Array(buffer, command.bodyAt, command.bodyBytes)),
      command.trace,
      command.violations,
    )
    if (command.quarantined !== undefined) {
      const quarantined = command.quarantined.filter(({ index }) => !repeated.includes(index))
      insertQuarantined(this.#context, { source, segment: seq, quarantined })
    }
    return reply
  }

  #repeated(keys: Uint32Array, count: number, seq: number): number[] {
    const { duplicates } = this.#context
    const repeated: number[] = []
    for (let index = 0; index < count; index++) if (!duplicates.add(keys, index * KEY_WORDS, seq)) repeated.push(index)
    return repeated
  }

  #ship(command: AcceptCommand, seq: number, repeated: readonly number[], reply: Accepted): Routes<number> {
    const { ids, destinations, claims, owing } = this.#context
    const routes: Routes<number> = { s: [] }
    const skips: Skip[] = [...command.skips]
    const hasNoRepeats = repeated.length === 0
    const isRepeated = new Set(repeated)
    for (const { destinationId, indexes, isReserved, keys } of command.shipments) {
      const destination = destinations.num(destinationId)
      // The destination was deleted in the same group or the one before, after the plan was made.
      if (destination === undefined || !owing.isLive(destination)) {
        skips.push({ destinationId, reason: 'destination_deleted', indexes })
        continue
      }
      const kept = hasNoRepeats ? indexes : (indexes ?? upTo(command.count)).filter((index) => !isRepeated.has(index))
      const count = kept === null ? command.count : kept.length
      if (count === 0) continue
      const id = ids.next()
      const stored = hasNoRepeats && indexes === null ? 0 : kept
      // Keys have explicit indexes.
      const ordered =
        keys === undefined
          ? ''
          : `,${JSON.stringify(hasNoRepeats ? keys : keys.filter((_, at) => !isRepeated.has(indexes?.[at] as number)))}`
      owing.insert(destination, id, count, `[[${id},${seq},${JSON.stringify(stored)}${ordered}]]`, keys !== undefined)
      routes.s.push([destination, id, stored ?? 0, count])
      if (!isReserved) {
        const left = keys === undefined ? reply.unclaimed : reply.ordered
        left.push(destinationId)
        continue
      }
      reply.claimed.push(freshShipment(id, claims.claim(id), destinationId, seq, kept ?? upTo(command.count)))
    }
    if (skips.length > 0) routes.k = storedSkips(skips, (destinationId) => destinations.num(destinationId) ?? 0, 0)
    return routes
  }
}

/**
 * Clears the fingerprints of duplicates in a copy: if another command of the group fails, this batch is accepted again from the same buffer. The
 * hashes of a duplicate's user stay, because its bytes are in the body and a purge must find them.
 */
function storedKeys(keys: Uint32Array, repeated: readonly number[]): Uint8Array {
  if (repeated.length === 0) return new Uint8Array(keys.buffer, keys.byteOffset, keys.byteLength)
  const stored = keys.slice()
  for (const index of repeated) clearFingerprint(stored, index * KEY_WORDS)
  return new Uint8Array(stored.buffer)
}

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index)
}
