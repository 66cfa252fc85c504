// The processes that work on the store: one with SQLite, any number with PostgreSQL.

import { isoTime } from '@switchyard/protocol'
import { array, boolean, integer, nullable, object, oneOf, string, time } from '../../api/schema.ts'
import type { NodeSummary } from '../../store/store.ts'
import { type ControlParts, type Route, route } from '../route.ts'

const NODES_ANSWER = object({
  data: array(
    object(
      {
        name: string({ description: 'Host name and port.' }),
        version: string(),
        startedAt: nullable(time()),
        seenAt: time({ description: "The time of its last heartbeat, by the store's clock." }),
        current: boolean({ description: 'Whether it is the node that answers this request.' }),
      },
      { title: 'Node', description: 'A process that serves this installation.' },
    ),
  ),
  next: nullable(string({ description: 'Always null: the list is complete.' })),
})

const INSTALLATION = object(
  {
    version: nullable(string()),
    startedAt: nullable(time({ description: 'Of the node that answers.' })),
    now: time({ description: 'Wall time of the service.' }),
    storeKind: nullable(oneOf(['sqlite', 'postgresql'])),
    store: nullable(string({ description: 'Where the store is: a path, or hosts and database. Null for viewers.' })),
    retentionDays: nullable(integer({ description: 'For how long settled messages are kept.' })),
    backups: boolean({ description: 'Whether the service itself makes copies of the store.' }),
  },
  { title: 'Installation', description: 'Facts about the installation that need no question to the store.' },
)

export function nodeRoutes({ store, clock, operatorTools }: ControlParts): Route[] {
  return [
    route({
      method: 'GET',
      path: '/installation',
      summary: 'Retrieve facts about the installation: version, start time, store and retention',
      status: 200,
      answer: INSTALLATION,
      handle({ role }) {
        const { installation, backups = null } = operatorTools ?? {}
        return {
          version: installation?.version ?? null,
          startedAt: installation === undefined ? null : isoTime(installation.startedAtMs),
          now: isoTime(clock.wallMs()),
          storeKind: installation === undefined ? null : installation.storePath === null ? 'postgresql' : 'sqlite',
          store: role === 'admin' ? (installation?.storePlace ?? null) : null,
          retentionDays: installation?.retentionDays ?? null,
          backups: backups !== null,
        }
      },
    }),
    route({
      method: 'GET',
      path: '/nodes',
      summary: 'List the nodes that are alive',
      status: 200,
      answer: NODES_ANSWER,
      handle() {
        const nodes = store.nodes?.nodes ?? []
        return { data: nodes.length > 0 ? nodes.map(nodeView) : [alone()], next: null }
      },
    }),
  ]

  /** A store for one process: it is the one that answers. */
  function alone() {
    const { installation } = operatorTools ?? {}
    return {
      name: installation?.nodeName ?? 'node',
      version: installation?.version ?? '',
      startedAt: installation === undefined ? null : isoTime(installation.startedAtMs),
      seenAt: isoTime(clock.wallMs()),
      current: true,
    }
  }
}

function nodeView({ name, version, startedAtMs, seenAtMs, isSelf }: NodeSummary) {
  return { name, version, startedAt: isoTime(startedAtMs), seenAt: isoTime(seenAtMs), current: isSelf }
}
