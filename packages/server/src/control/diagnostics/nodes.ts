// Routes for the nodes (the processes that use the store: one with SQLite, any number with PostgreSQL) and for facts about the installation.

import { array, boolean, integer, nullable, object, oneOf, string, time } from '../../api/schema.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

const NODES_ANSWER = object({
  data: array(
    object(
      {
        name: string({ description: 'The host name and port of the node.' }),
        version: string(),
        startedAt: nullable(time()),
        seenAt: time({ description: 'When the node sent its last heartbeat, according to the clock of the store.' }),
        current: boolean({ description: 'Whether this is the node that answers the request.' }),
      },
      { title: 'Node', description: 'A process of the service.' },
    ),
  ),
  next: nullable(string({ description: 'Always null: the list is complete.' })),
})

const INSTALLATION = object(
  {
    version: nullable(string()),
    startedAt: nullable(time({ description: 'When the node that answers the request started.' })),
    now: time({ description: 'The wall clock time of the service.' }),
    storeKind: nullable(oneOf(['sqlite', 'postgresql'])),
    store: nullable(string({ description: 'The location of the store: a path, or hosts and database. Null for viewers.' })),
    retentionDays: nullable(
      integer({ description: 'The number of days for which messages are kept after all their deliveries are settled.' }),
    ),
    backups: boolean({ description: 'Whether the service can make backups of the store.' }),
    command: string({
      description: 'How to run the command line on the machine of the service: a path, or `switchyard`. Viewers get `switchyard`.',
    }),
  },
  { title: 'Installation', description: 'Facts about the installation.' },
)

export function nodeRoutes({ store, clock, operatorTools }: ControlParts): Route[] {
  return [
    route('GET', '/installation', {
      summary: 'Retrieve facts about the installation: version, start time, store and retention',
      access: { role: 'viewer', sources: 'none' },
      answer: INSTALLATION,
      handle({ role }) {
        const { installation, backups = null } = operatorTools ?? {}
        return {
          version: installation?.version ?? null,
          startedAt: installation?.startedAtMs ?? null,
          now: clock.wallMs(),
          storeKind: installation === undefined ? null : installation.storePath === null ? 'postgresql' : 'sqlite',
          store: role === 'admin' ? (installation?.storePlace ?? null) : null,
          retentionDays: installation?.retentionDays ?? null,
          backups: backups !== null,
          command: role === 'admin' ? (installation?.command ?? 'switchyard') : 'switchyard',
        }
      },
    }),
    route('GET', '/nodes', {
      summary: 'List the nodes that are alive',
      access: { role: 'viewer', sources: 'none' },
      answer: NODES_ANSWER,
      handle() {
        const nodes = store.nodes?.nodes ?? []
        return {
          data: nodes.length > 0 ? nodes.map((node) => Object.assign({}, node, { current: node.isSelf })) : [onlyNode()],
          next: null,
        }
      },
    }),
  ]

  /** With a store for a single process, the only node is the one that answers. */
  function onlyNode() {
    const { installation } = operatorTools ?? {}
    return {
      name: installation?.nodeName ?? 'node',
      version: installation?.version ?? '',
      startedAt: installation?.startedAtMs ?? null,
      seenAt: clock.wallMs(),
      current: true,
    }
  }
}
