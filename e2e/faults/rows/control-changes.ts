// Changes through the control API of all nodes at once, while nodes die, checked against a model.

import { Changes } from '../control/changes.ts'
import type { Fault, Injection } from '../fault.ts'
import { injected } from '../round.ts'
import type { System } from '../system.ts'

const started = new WeakMap<System, Changes>()

const controlChanges: Injection = {
  key: 'control-changes',
  title: 'A node is killed during concurrent changes of the configuration',
  how: 'five callers change write keys, sources, destinations, tracking plans, replays, quarantine and deletions at the same time, on all nodes; SIGKILL to a node while a change is in flight on it',
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
  note: 'After each kill, an order of the calls must explain every answer and the configuration that all nodes show; a change whose answer was lost is there completely or not at all. In the end, the messages of these sources, the jobs and the deletion requests are compared too. The counts are those of the usual load.',
}

export const CONTROL_CHANGES: readonly Fault[] = [injected(controlChanges)]
