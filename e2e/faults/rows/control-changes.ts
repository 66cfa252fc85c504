// Changes through the control API of all nodes at once, while nodes die, checked against a model.

import { Changes } from '../control/changes.ts'
import type { Fault, Injection } from '../rounds/fault.ts'
import { injected } from '../rounds/round.ts'
import type { System } from '../system/system.ts'

const started = new WeakMap<System, Changes>()

const controlChanges: Injection = {
  key: 'control-changes',
  title: 'A node is killed during concurrent configuration changes',
  how: 'Five callers at a time change write keys, sources, destinations and tracking plans, create and cancel replays, release and delete quarantined messages, and request deletions of users, on all nodes (on PostgreSQL two or three). A node gets SIGKILL while a change is in flight on it.',
  stores: ['sqlite', 'postgres'],
  perRound: 25,
  between: [1, 10],
  system: ({ random }) => ({ nodes: random.int(2, 3), perSecond: 20, integration: false }),
  async cause(system, random) {
    const changes = started.get(system) ?? (await Changes.start(system, random))
    started.set(system, changes)
    await changes.killDuringChanges()
  },
  finish: async (system) => (await started.get(system)?.finish()) ?? [],
  note: 'After each kill, all nodes must show the same configuration, and there must be an order of the calls that explains it and every response. A change whose response was lost must have been made completely or not at all. At the end, the messages of the changed sources, the replays, the quarantine and the deletions are checked too. The numbers in the table are those of the usual load, without these messages.',
}

export const CONTROL_CHANGES: readonly Fault[] = [injected(controlChanges)]
