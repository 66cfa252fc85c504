// What happened beside the numbers, for the charts: changes of the configuration, incidents, and starts of nodes, which is where a deployment
// shows. All of them are optional: a chart does not wait for them.

import { useApi } from '../../api/queries.ts'

export type MarkerKind = 'change' | 'incident' | 'start'

export interface Marker {
  atMs: number
  kind: MarkerKind
  text: string
  to: string
}

const MAX_CHANGES = 50
/** Actions that change nothing that charts show. */
const UNIMPORTANT = /^(login|token|backup|suppression|deletion|replay|alerts\.test|mute|saved)/

interface About {
  sourceId?: string
  destinationId?: string
}

/** Without a subject, of the whole installation. */
export function useMarkers(
  { from, to }: { from: string; to?: string | undefined },
  { sourceId, destinationId }: About = {},
): readonly Marker[] {
  const subject = sourceId ?? destinationId
  const changes = useApi('GET /api/audit', {
    query: { from, limit: MAX_CHANGES, ...(to !== undefined && { to }), ...(subject !== undefined && { subject }) },
    everyMs: 60_000,
    keep: true,
  })
  const incidents = useApi('GET /api/incidents', {
    query: { limit: MAX_CHANGES, ...(sourceId !== undefined && { sourceId }), ...(destinationId !== undefined && { destinationId }) },
    everyMs: 30_000,
  })
  const nodes = useApi('GET /api/nodes', { everyMs: 10_000 })
  const found: Marker[] = [
    ...(changes.data?.data ?? [])
      .filter(({ action }) => !UNIMPORTANT.test(action))
      .map(({ at, action, actor, before, after }) => ({
        atMs: Date.parse(at),
        kind: 'change' as const,
        text: `${action}${nameIn(after ?? before)} by ${actor.name}`,
        to: `/settings/audit?action=${encodeURIComponent(action)}`,
      })),
    ...(incidents.data?.data ?? []).map(({ id, since, message }) => ({
      atMs: Date.parse(since),
      kind: 'incident' as const,
      text: message,
      to: `/alerts/${encodeURIComponent(id)}`,
    })),
    ...(nodes.data?.data ?? []).map(({ startedAt, version, name }) => ({
      atMs: Date.parse(startedAt ?? ''),
      kind: 'start' as const,
      text: `Node ${name} started with version ${version}`,
      to: '/settings/nodes',
    })),
  ]
  const [fromMs, toMs] = [Date.parse(from), to === undefined ? Number.POSITIVE_INFINITY : Date.parse(to)]
  return found.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs).sort((a, b) => a.atMs - b.atMs)
}

function nameIn(doc: Record<string, unknown> | null): string {
  return typeof doc?.['name'] === 'string' ? ` ${doc['name']}` : ''
}
