// What a database server and the nodes on it tell about an installation: clocks, connections, standbys, who is alive.

import type { NodeSummary, ServerFacts } from '../../store/store.ts'
import type { Finding } from './finding.ts'

type Named = Finding & { name: string }

/** Row names carry a node's time, and leases are counted by the server's clock: both bear this much. */
const CLOCK_MS = 5_000
/** What one node opens at the most. */
const NODE_CONNECTIONS = 16
const LAG_MS = 60_000

export function checkServer(facts: ServerFacts): Named[] {
  return [checkClock(facts), checkConnections(facts), ...checkStandbys(facts)]
}

function checkClock({ clockAheadMs, version }: ServerFacts): Named {
  const name = 'server_clock'
  const awayMs = Math.abs(clockAheadMs)
  if (awayMs <= CLOCK_MS) return { name, state: 'good', message: `PostgreSQL ${version} and this node agree on the time.`, advice: null }
  return {
    name,
    state: 'warning',
    message: `The clock of PostgreSQL is ${Math.round(awayMs / 1_000)} s ${clockAheadMs > 0 ? 'ahead of' : 'behind'} this node's.`,
    advice: 'One of them is wrong: have both kept by NTP. Times that people read are stamped by the nodes.',
  }
}

function checkConnections({ connections: { used, max } }: ServerFacts): Named {
  const name = 'server_connections'
  const left = max - used
  const message = `${used} of ${max} connections to PostgreSQL are in use.`
  if (left >= NODE_CONNECTIONS) return { name, state: 'good', message, advice: null }
  return { name, state: 'warning', message, advice: 'There is no room for another node: raise max_connections, or see who else connects.' }
}

function checkStandbys({ synchronousStandbys, standbys }: ServerFacts): Named[] {
  const name = 'server_standbys'
  if (synchronousStandbys === '' && standbys.length === 0) return []
  const waitedFor = standbys.filter(({ sync }) => sync === 'sync' || sync === 'quorum')
  const told = standbys.map(({ name: standby, state, sync }) => `${standby || 'a standby'} (${sync}, ${state})`).join(', ')
  if (synchronousStandbys !== '' && waitedFor.length === 0 && standbys.every(({ sync }) => sync !== 'unknown'))
    return [
      {
        name,
        state: 'bad',
        message: 'Commits wait for a standby, and none is connected: nothing can be accepted.',
        advice: 'Start the standby, or take it out of synchronous_standby_names.',
      },
    ]
  const behind = standbys.filter(({ lagMs }) => lagMs !== null && lagMs > LAG_MS)
  if (behind.length > 0)
    return [
      { name, state: 'warning', message: `A standby is more than a minute behind: ${told}.`, advice: 'Look at its disk and its network.' },
    ]
  const advice = waitedFor.length > 0 ? null : 'Commits do not wait for it: what was accepted last may be lost with the primary.'
  return [{ name, state: 'good', message: `Standbys: ${told}.`, advice }]
}

export function checkNodes(nodes: readonly NodeSummary[]): Named {
  const name = 'nodes'
  const told = nodes.map((node) => `${node.name} (${node.version})`).join(', ')
  const message = `${nodes.length === 1 ? '1 node is' : `${nodes.length} nodes are`} alive: ${told}.`
  if (new Set(nodes.map(({ version }) => version)).size <= 1) return { name, state: 'good', message, advice: null }
  return { name, state: 'warning', message, advice: 'They are of different versions: finish the upgrade.' }
}
