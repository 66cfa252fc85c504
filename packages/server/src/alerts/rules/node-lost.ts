// Node Lost: a node stopped unexpectedly. The incident is closed when the node is back, or another node runs in its place.

import { HOUR_MS, MINUTE_MS, minutesSetting, rule, span } from './rule.ts'

export interface NodePresence {
  nowMs: number
  /** When it was last alive, as far as this node knows; null if it is alive. */
  lastSeenAtMs: number | null
  /** Whether it said that it stops. */
  hasLeft: boolean
  /** How many nodes are alive, and how many were while this one was. */
  nodes: number
  nodesBefore: number
}

/** A smaller number of nodes is then what the operator wants. */
const GIVE_UP_MS = 24 * HOUR_MS

export const nodeLost = rule({
  id: 'node_lost',
  event: 'Node Lost',
  subject: 'node',
  severity: () => 'warning',
  sentences: [
    'Open when a node has been away for {openAfterMinutes} minutes without having announced it. Close when it is back, or as many nodes run as before.',
  ],
  description: 'A node stopped unexpectedly, and no other node runs in its place. Only with PostgreSQL.',
  settings: { openAfterMinutes: minutesSetting(1, 'Open an incident when the node has been away for this many minutes.', 60) },
  judge({ nowMs, lastSeenAtMs, hasLeft, nodes, nodesBefore }: NodePresence, { openAfterMinutes }) {
    const awayMs = lastSeenAtMs === null ? 0 : nowMs - lastSeenAtMs
    const isOver = lastSeenAtMs === null || hasLeft || nodes >= nodesBefore || awayMs >= GIVE_UP_MS
    const verdict = isOver ? 'close' : awayMs >= openAfterMinutes * MINUTE_MS ? 'open' : 'keep'
    const isStarting = verdict === 'keep'
    return {
      verdict,
      isStarting,
      sinceMs: lastSeenAtMs ?? nowMs,
      details: { nodes, nodesBefore, isBack: lastSeenAtMs === null ? 'yes' : 'no' },
    }
  },
  opened: (name, { nodes, nodesBefore, forMs }) =>
    `The node ${name} stopped unexpectedly ${span(forMs)} ago. The remaining nodes (${String(nodes)} of ${String(nodesBefore)}) have taken over its work.`,
  closed: (name, { isBack, nodes }) =>
    isBack === 'yes' ? `The node ${name} is back.` : `The node ${name} has not come back. Nodes that are running: ${String(nodes)}.`,
  link: () => '/settings/nodes',
})
