// Checks of the PostgreSQL server and of the nodes: clocks, connections, standbys, and which nodes are alive.

import { counted } from '../../api/counted.ts'
import type { NodeSummary, ServerFacts } from '../../store/store.ts'
import type { Finding } from './finding.ts'

type NamedFinding = Finding & { name: string }

/** Row ids contain the time of a node, and leases use the clock of the server. Both tolerate a difference of this size. */
const CLOCK_MS = 5_000
/** The maximum number of connections of one node. */
const NODE_CONNECTIONS = 16
const LAG_MS = 60_000

export function checkServer(facts: ServerFacts): NamedFinding[] {
  return [checkClock(facts), checkConnections(facts), ...checkStandbys(facts)]
}

function checkClock({ clockAheadMs, version }: ServerFacts): NamedFinding {
  const name = 'server_clock'
  const differenceMs = Math.abs(clockAheadMs)
  if (differenceMs <= CLOCK_MS)
    return { name, state: 'good', message: `The clocks of PostgreSQL ${version} and this node agree.`, advice: null }
  return {
    name,
    state: 'warning',
    message: `The clock of PostgreSQL is ${Math.round(differenceMs / 1_000)} s ${clockAheadMs > 0 ? 'ahead of' : 'behind'} this node's.`,
    advice: 'One of the clocks is wrong: synchronize both with NTP. Displayed times come from the clocks of the nodes.',
  }
}

function checkConnections({ connections: { used, max } }: ServerFacts): NamedFinding {
  const name = 'server_connections'
  const left = max - used
  const message = `${used} of ${max} connections to PostgreSQL are in use.`
  if (left >= NODE_CONNECTIONS) return { name, state: 'good', message, advice: null }
  return {
    name,
    state: 'warning',
    message,
    advice: 'There are not enough free connections for another node. Raise max_connections, or close connections of other programs.',
  }
}

function checkStandbys({ synchronousStandbys, standbys }: ServerFacts): NamedFinding[] {
  const name = 'server_standbys'
  if (synchronousStandbys === '' && standbys.length === 0) return []
  const synchronous = standbys.filter(({ sync }) => sync === 'sync' || sync === 'quorum')
  const list = standbys.map(({ name: standby, state, sync }) => `${standby || 'a standby'} (${sync}, ${state})`).join(', ')
  if (synchronousStandbys !== '' && synchronous.length === 0 && standbys.every(({ sync }) => sync !== 'unknown'))
    return [
      {
        name,
        state: 'bad',
        message: 'Commits wait for a synchronous standby, and none is connected. The service cannot accept messages.',
        advice: 'Start the standby, or remove it from synchronous_standby_names.',
      },
    ]
  const behind = standbys.filter(({ lagMs }) => lagMs !== null && lagMs > LAG_MS)
  if (behind.length > 0)
    return [
      { name, state: 'warning', message: `A standby is more than a minute behind: ${list}.`, advice: 'Check its disk and its network.' },
    ]
  const advice =
    synchronous.length > 0
      ? null
      : 'Commits do not wait for a standby. If the primary is lost, the most recently accepted messages may be lost too.'
  return [{ name, state: 'good', message: `Standbys: ${list}.`, advice }]
}

export function checkNodes(nodes: readonly NodeSummary[]): NamedFinding {
  const name = 'nodes'
  const list = nodes.map((node) => `${node.name} (${node.version})`).join(', ')
  const message = `${counted(nodes.length, 'node is', 'nodes are')} alive: ${list}.`
  if (new Set(nodes.map(({ version }) => version)).size <= 1) return { name, state: 'good', message, advice: null }
  return { name, state: 'warning', message, advice: 'The nodes have different versions: finish the upgrade.' }
}
