// Routes for the upkeep of a warehouse: what the last run did, and asking for one now.

import { array, integer, nullable, object, oneOf, string, time } from '../../api/schema.ts'
import { readUpkeep, type UpkeepRun } from '../../store/port/warehouse-upkeep.ts'
import { recordAction } from '../routes/audit-entries.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'
import { storedWarehouse } from './tables.ts'

const UPKEEP = object(
  {
    state: oneOf(['never', 'waiting', 'running', 'done'], {
      description: '`waiting`: the run is asked for, or continues later, because a step failed or the destination is paused.',
    }),
    startedAt: nullable(time()),
    finishedAt: nullable(time()),
    changed: integer({ description: 'How many files the run has merged or removed, or how many rows it has deleted.' }),
    problems: array(object({ code: string(), message: string() }), {
      description: 'What the run has found, such as a file that is gone although the manifest of its table names it. At most 20.',
    }),
    error: nullable(string({ description: 'Why the last step failed; null if it did not fail. It is repeated.' })),
  },
  { title: 'WarehouseUpkeep' },
)

export function warehouseUpkeepRoutes({ store, clock, upkeep }: ControlParts): Route[] {
  return [
    route('GET', '/destinations/:id/upkeep', {
      summary: 'Show the upkeep of a warehouse',
      description:
        'Once a day, half an hour after midnight UTC, small files of past days are merged, and rows that are older than `keepDays` are removed. Only for warehouses.',
      access: { role: 'viewer', sources: 'limited', subject: 'destination', whole: true },
      answer: UPKEEP,
      errors: ['destination_not_found', 'not_a_warehouse'],
      async handle({ params }) {
        const { id } = storedWarehouse(store, params['id'])
        return shown(await readUpkeep(store.documents, id), clock.scheduleMs())
      },
    }),
    route('POST', '/destinations/:id/upkeep', {
      summary: 'Look after the tables of a warehouse now',
      description: 'Does what is otherwise done once a day, and does not wait until it has ended. Only for warehouses.',
      access: { role: 'editor', sources: 'limited', subject: 'destination', whole: true },
      status: 202,
      answer: UPKEEP,
      errors: ['destination_not_found', 'not_a_warehouse'],
      async handle({ params, actor }) {
        const { id, sourceIds } = storedWarehouse(store, params['id'])
        await recordAction(store.history, { actor, action: 'destination.upkeep', subject: id, after: {}, sources: sourceIds })
        await upkeep?.want(id)
        return shown(await readUpkeep(store.documents, id), clock.scheduleMs())
      },
    }),
  ]
}

function shown(run: UpkeepRun | null, scheduleMs: number) {
  if (run === null) return { state: 'never' as const, startedAt: null, finishedAt: null, changed: 0, problems: [], error: null }
  const isRunning = run.holder !== null && run.leaseUntilMs > scheduleMs
  const waits = run.finishedAtMs === null || run.wantedAtMs !== null
  return {
    state: isRunning ? ('running' as const) : waits ? ('waiting' as const) : ('done' as const),
    startedAt: run.startedAtMs === 0 ? null : run.startedAtMs,
    finishedAt: run.finishedAtMs === 0 ? null : run.finishedAtMs,
    changed: run.changed,
    problems: [...run.problems],
    error: run.error,
  }
}
