// Learns a tracking plan from the retained messages of a source, for the dashboard. The command line does the same with `switchyard plan learn`,
// for any number of messages. Nothing is stored. The work is bounded and yields after each page, because the main thread also accepts messages.

import { setImmediate } from 'node:timers/promises'
import { queryTime } from '../../api/query-values.ts'
import { anyObject, boolean, integer, object, optional, string } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import { PlanLearner } from '../../plans/learn-plan.ts'
import { planText } from '../../plans/plan-file.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

const MAX_MESSAGES = 20_000
const MAX_MS = 10_000
/** About 2 ms of the main thread. */
const PAGE = 200
const MAX_AT_ONCE = 2
const USUAL_PERIOD_MS = 7 * 86_400_000

const LEARN = object({
  source: string({ min: 1, description: 'The id or the name of the source.' }),
  from: optional(queryTime({ description: 'Only messages received at this time or later. Default: seven days ago.' })),
  name: optional(string({ min: 1, max: 100, description: 'The name of the plan. Default: the name of the source.' })),
})
const LEARNED = object({
  plan: anyObject({ description: 'The plan, as POST /api/plans accepts it.' }),
  yaml: string({ description: 'The plan as a file for `switchyard plan apply`, attached to the source.' }),
  messages: integer({ description: 'The number of messages that the plan was learned from.' }),
  complete: boolean({
    description: `Whether all messages of the period were read. At most the newest ${MAX_MESSAGES} are read, in at most ${MAX_MS / 1_000} seconds.`,
  }),
  leftOut: object(
    { events: integer(), messages: integer() },
    { description: 'Events without a rule, because their names look generated or because there are too many, and their messages.' },
  ),
})

export function learnPlanRoutes({ store, clock, learning = { running: 0 } }: ControlParts): Route[] {
  async function learn(sourceId: string, fromMs: number): Promise<{ learner: PlanLearner; complete: boolean }> {
    const learner = new PlanLearner()
    const endMs = clock.scheduleMs() + MAX_MS
    let cursor: string | null = null
    for (let read = 0; read < MAX_MESSAGES && clock.scheduleMs() < endMs; ) {
      const page = await store.history.messages({ sourceId, fromMs }, { limit: PAGE, cursor })
      // A purged message is null.
      for (const { content, index } of page.data) learner.add(content.items[index] ?? {})
      read += page.data.length
      cursor = page.next
      if (cursor === null) return { learner, complete: true }
      await setImmediate()
    }
    return { learner, complete: false }
  }

  return [
    route('POST', '/plans/learn', {
      summary: 'Learn a plan from the messages of a source',
      access: { role: 'viewer', sources: 'limited' },
      description:
        'Describes the messages that were sent: types, required properties, small sets of values and formats. Values that may be personal data are left out. Stores nothing.',
      body: LEARN,
      answer: LEARNED,
      errors: ['source_not_found', 'too_many_previews'],
      async handle({ body: { source: reference, from, name } }) {
        const { sources } = store.configuration()
        const source = sources.get(reference) ?? [...sources.values()].find((other) => other.name === reference)
        if (source === undefined) throw new ApiError('source_not_found', { field: 'source' })
        if (learning.running >= MAX_AT_ONCE)
          throw new ApiError('too_many_previews', {
            message: `Too many plans are being learned: at most ${MAX_AT_ONCE} at the same time. Try again in a few seconds.`,
          })
        learning.running++
        try {
          const { learner, complete } = await learn(source.id, from ?? clock.wallMs() - USUAL_PERIOD_MS)
          const { plan, messages, leftOut } = learner.learned(name ?? source.name)
          return { plan, yaml: await planText(plan, [source.name]), messages, complete, leftOut }
        } finally {
          learning.running--
        }
      },
    }),
  ]
}
