// Routes for tracking plans. A plan is a resource like a source: it is read from the configuration in memory, and changes are checked against
// the stored configuration. The schemas of its rules are compiled before anything is saved.

import { isoTime } from '@switchyard/protocol'
import { array, integer, nullable, object, patchOf, string, time, withDefault } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import { checkRules } from '../../plans/check-rules.ts'
import { PLAN_FIELDS } from '../../plans/plan-fields.ts'
import type { Configuration, NewPlan, StoredPlan } from '../../store/store.ts'
import { audited } from '../access/audit.ts'
import { CREATION_QUERY, checkName } from '../name.ts'
import { listAnswer, listQuery, pageAnswer, pageOf, pageRequest } from '../query.ts'
import { type ControlParts, checkIfMatch, type Route, route } from '../route.ts'
import { checkSources } from '../sources/sources.ts'

const { description, ...REQUIRED } = PLAN_FIELDS
const NEW_PLAN_FIELDS = {
  ...REQUIRED,
  description: withDefault(nullable(description), null),
  sourceIds: withDefault(
    array(string(), {
      max: 1_000,
      identity: (id) => id,
      description: 'The sources whose messages are checked against the plan. A source has at most one plan.',
    }),
    [],
  ),
}
export const NEW_PLAN = object(NEW_PLAN_FIELDS)
const PLAN_PATCH = object(patchOf(NEW_PLAN_FIELDS))
const PLAN = object(
  {
    id: string(),
    ...REQUIRED,
    description: nullable(string()),
    sourceIds: array(string()),
    version: integer({ min: 1, description: 'The version of the plan. It starts at 1 and goes up by one each time the content changes.' }),
    createdAt: time(),
  },
  { title: 'TrackingPlan', description: 'Which events are sent, and what their properties look like.' },
)

export function planRoutes({ store }: ControlParts): Route[] {
  const plans = () => store.configuration().plans
  function found(plan: StoredPlan | undefined): StoredPlan {
    if (plan === undefined) throw new ApiError('plan_not_found')
    return plan
  }

  return [
    route({
      method: 'GET',
      path: '/plans',
      summary: 'List tracking plans, oldest first',
      query: listQuery({}),
      status: 200,
      answer: listAnswer(PLAN),
      errors: ['invalid_cursor'],
      handle: ({ query }) => pageAnswer('plans', pageOf(plans().values(), pageRequest('plans', query)), planView),
    }),
    route({
      method: 'POST',
      path: '/plans',
      summary: 'Create a tracking plan',
      description:
        'From then on, new messages of its sources are checked against the plan. Messages that are already stored are not checked.',
      query: CREATION_QUERY,
      body: NEW_PLAN,
      status: 201,
      answer: PLAN,
      tagged: true,
      errors: ['name_taken', 'source_has_plan'],
      async handle({ body: { description: about, ...body }, query, actor }) {
        await checkRules(body.rules)
        const checked = (configuration: Configuration): NewPlan => {
          checkName(query, body.name, configuration.plans)
          checkSources(configuration, body.sourceIds)
          return about === null ? body : { ...body, description: about }
        }
        return planView(await store.settings.createPlan(checked, audited(actor, 'plan.create', planView)))
      },
    }),
    route({
      method: 'GET',
      path: '/plans/:id',
      summary: 'Retrieve a tracking plan',
      status: 200,
      answer: PLAN,
      tagged: true,
      errors: ['plan_not_found'],
      handle: ({ params }) => planView(found(plans().get(params['id'] ?? ''))),
    }),
    route({
      method: 'PATCH',
      path: '/plans/:id',
      summary: 'Update a tracking plan',
      description: 'Changes only the fields that you send. `rules` and `sourceIds` replace the existing ones as a whole.',
      body: PLAN_PATCH,
      status: 200,
      answer: PLAN,
      tagged: true,
      errors: ['plan_not_found', 'source_has_plan'],
      async handle({ params, body: { description: about, ...body }, actor, exchange }) {
        const id = params['id'] ?? ''
        // Another node may have created it a moment ago. A change of nothing reads what is stored, and writes nothing.
        const { rules } = plans().get(id) ?? found(await store.settings.updatePlan(id, {}))
        if (body.rules !== undefined) await checkRules(body.rules, rules)
        const changed = (before: StoredPlan, configuration: Configuration): Partial<NewPlan> => {
          checkIfMatch(exchange, planView(before))
          checkSources(configuration, body.sourceIds)
          return about === undefined ? body : { ...body, description: about ?? '' }
        }
        return planView(found(await store.settings.updatePlan(id, changed, audited(actor, 'plan.update', planView))))
      },
    }),
    route({
      method: 'DELETE',
      path: '/plans/:id',
      summary: 'Delete a tracking plan',
      description:
        'Afterwards, messages of its sources are no longer checked. Messages that are in quarantine stay there until they are released or deleted.',
      status: 204,
      tagged: true,
      errors: ['plan_not_found'],
      async handle({ params, actor, exchange }) {
        const check = (before: StoredPlan): void => checkIfMatch(exchange, planView(before))
        if (!(await store.settings.deletePlan(params['id'] ?? '', audited(actor, 'plan.delete', planView), check)))
          throw new ApiError('plan_not_found')
      },
    }),
  ]
}

export function planView({ id, name, description: about, unplanned, rules, sourceIds, version, createdAtMs }: StoredPlan) {
  return {
    id,
    name,
    description: about === '' ? null : (about ?? null),
    unplanned,
    rules: rules.map((rule) => ({ ...rule })),
    sourceIds: [...sourceIds],
    version,
    createdAt: isoTime(createdAtMs),
  }
}
