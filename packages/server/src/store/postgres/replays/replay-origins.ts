// From the names of many deliveries to what they stand for, in a few questions however many they are. As origins.ts does for one.

import { owedIndexes, type Routes } from '../../encoding/stored-parts.ts'
import type { StoredDelivery } from '../../replays/replay-rows.ts'
import { LOOKED_AT } from '../messages/origins.ts'
import { rowAndIndex, SKEW } from '../schema/ids.ts'
import type { Ask } from '../session/database.ts'

type NamedDelivery = StoredDelivery<string>

/** In the order of the names; undefined where there is no such delivery. */
export async function resolveNamed(ask: Ask, deliveryIds: readonly string[]): Promise<(NamedDelivery | undefined)[]> {
  const named = deliveryIds.map(rowAndIndex)
  const found = new Map<string, NamedDelivery>()
  const keyOf = ({ row, index }: { row: string; index: number }): string => `${row}-${index}`

  const asked = named.filter((name) => name !== undefined)
  if (asked.length === 0) return named.map(() => undefined)
  const { rows: replays } = await ask<{ origin: string; idx: number; destination: string; segment: string }>(
    `SELECT r.origin, r.idx, r.destination, r.segment FROM unnest($1::bigint[], $2::integer[]) AS n (origin, idx)
     JOIN replays r ON r.origin = n.origin AND r.idx = n.idx`,
    [asked.map(({ row }) => row), asked.map(({ index }) => index)],
  )
  for (const { origin, idx: index, destination, segment } of replays) {
    found.set(keyOf({ row: origin, index }), { origin, index, destination, segment })
  }

  const others = asked.filter((name) => !found.has(keyOf(name)))
  if (others.length > 0) {
    const { rows } = await ask<{ origin: string; seq: string; routes: string; count: number; absent: number[] | null }>(
      `SELECT n.origin, g.seq, g.routes, g.count, g.absent FROM (SELECT DISTINCT unnest($1::bigint[]) AS origin) n CROSS JOIN LATERAL (
         SELECT * FROM (
           SELECT seq, routes, count, absent FROM segments
           WHERE seq < n.origin AND seq > n.origin - ${SKEW} AND (seq >> 12) & 511 = (n.origin >> 12) & 511
           ORDER BY seq DESC LIMIT ${LOOKED_AT}) s
         WHERE strpos(s.routes, '"' || n.origin || '"') > 0 LIMIT 1) g`,
      [others.map(({ row }) => row)],
    )
    const segments = new Map(rows.map((row) => [row.origin, row]))
    for (const name of others) {
      const segment = segments.get(name.row)
      const route = segment && (JSON.parse(segment.routes) as Routes<string>).s.find(([, origin]) => origin === name.row)
      if (!segment || !route || !owedIndexes(route[2], segment.count, segment.absent).includes(name.index)) continue
      found.set(keyOf(name), { origin: name.row, index: name.index, destination: route[0], segment: segment.seq })
    }
  }
  return named.map((name) => name && found.get(keyOf(name)))
}
