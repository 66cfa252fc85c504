// What a claim of ordered shipments reads besides heads: new shipments in the order of acceptance, and of keys that are draining what waits before them.

import type { OrderKey } from '../../../model/order/order-key.ts'
import { int8s } from '../session/binary-arrays.ts'
import type { Ask } from '../session/database.ts'
import { UNDIVIDED } from '../tables/ordered-rows.ts'
import type { OrderedRow, Taking } from './taking.ts'

export const ROW =
  's.id::text AS id, s.claim, s.attempt, s.first_attempt, s.due, s.bytes, s.unit, s.replay, s.urls, s.parts, s.ord, s.partition AS part, s.key'

/** The first of all partitions together, of which each has at most a share that is read. With a backlog, most of what is read would otherwise be too many. */
const FRESH = {
  name: 'order-fresh',
  text: `SELECT f.* FROM unnest($2::integer[]) AS p (part) CROSS JOIN LATERAL (SELECT ${ROW} FROM shipments s
      WHERE s.holder < 1 AND s.attempt = -1 AND s.key IS NULL AND s.destination = $1 AND s.partition = p.part
      ORDER BY s.ord, s.id LIMIT CASE WHEN p.part = ${UNDIVIDED} THEN $4::integer ELSE $3::integer END) f
    ORDER BY f.ord, f.id LIMIT $4::integer`,
}
/** How many times its share each partition may have. Its requests are random, and the share of one with busy keys is larger. */
const PART_SHARE = 2
const LEAST_OF_PART = 16

/** For each key that is draining and not leaving: its shipments before the first new one of its partition that was not reached. */
const DRAINING = {
  name: 'order-draining',
  text: `SELECT w.* FROM order_keys k JOIN unnest($2::integer[], $3::bigint[]) AS p (part, frontier) ON p.part = k.key % 16
    CROSS JOIN LATERAL (SELECT ${ROW} FROM shipments s
      WHERE s.holder < 1 AND s.attempt = -1 AND s.key IS NOT NULL AND s.destination = $1 AND s.key = k.key AND s.ord < p.frontier
      ORDER BY s.key, s.ord, s.id LIMIT $4) w
    WHERE k.destination = $1 AND k.state = 'draining' AND NOT k.key = ANY ($5::bigint[]) LIMIT $4`,
}

export const NO_FRONTIER = Number.MAX_SAFE_INTEGER

export interface Fresh {
  rows: OrderedRow[]
  cut: Map<number, number>
}

/**
 * The first new shipments, at most one more than `most`: those of the given partitions, and those that are not divided. `cut`: the place of the last one
 * of each partition that may have more before the end of these; empty if there are shipments that are not divided.
 */
export async function readFresh(ask: Ask, destination: string, parts: readonly number[], most: number): Promise<Fresh> {
  const read = async (of: readonly number[], share: number): Promise<OrderedRow[]> => {
    const { rows } = await ask<OrderedRow>(FRESH, [destination, [...of, UNDIVIDED], share, most + 1])
    return rows.sort(byPlace)
  }
  const share = Math.min(most + 1, Math.max(LEAST_OF_PART, Math.ceil((PART_SHARE * (most + 1)) / parts.length)))
  const rows = await read(parts, share)
  const counts = new Map<number, number>()
  const cut = new Map<number, number>()
  for (const { part, ord } of rows) {
    const count = (counts.get(part) ?? 0) + 1
    counts.set(part, count)
    if (count === share && part !== UNDIVIDED) cut.set(part, ord)
  }
  if (cut.size === 0 || share > most) return { rows, cut }
  if (!counts.has(UNDIVIDED)) {
    if (rows.length > most) return { rows, cut }
    // The others have less than their share, so these may have more: for example, if all messages have one key.
    const more = await read([...cut.keys()], most + 1)
    const others = rows.filter(({ part }) => !cut.has(part))
    if (!more.some(isUndivided)) return { rows: [...others, ...more].sort(byPlace).slice(0, most + 1), cut: new Map() }
  }
  // One that is not divided may have messages of any partition, so all that comes before it must be there, as of the same moment.
  return { rows: await read(parts, most + 1), cut: new Map() }
}

export function isUndivided({ part }: OrderedRow): boolean {
  return part === UNDIVIDED
}

function byPlace(a: OrderedRow, b: OrderedRow): number {
  return a.ord - b.ord || byId(a, b)
}

/** Returns whether there are more. */
export async function takeDraining(
  ask: Ask,
  destination: string,
  frontiers: ReadonlyMap<number, number>,
  most: number,
  leaving: readonly OrderKey[],
  taking: Taking,
): Promise<boolean> {
  const values = [destination, [...frontiers.keys()], int8s([...frontiers.values()]), most + 1, int8s(leaving)]
  const { rows } = await ask<OrderedRow>(DRAINING, values)
  rows.sort((a, b) => (a.key as OrderKey) - (b.key as OrderKey) || a.ord - b.ord || byId(a, b))
  for (const [at, row] of rows.entries()) if (at === most || !taking.take(row)) return true
  return false
}

export function byId(a: { id: string }, b: { id: string }): number {
  return a.id < b.id ? -1 : 1
}
