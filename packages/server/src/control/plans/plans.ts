// Routes for tracking plans. A plan is a resource like a source: it is read from the configuration in memory, and changes are checked against
// the stored configuration. The schemas of its rules are compiled before anything is saved.

import { readOnly, resource } from '../../api/resources/resource.ts'
import { array, integer, nullable, string, time, withDefault } from '../../api/schema.ts'
import { checkRules } from '../../plans/check-rules.ts'
import { PLAN_FIELDS } from '../../plans/plan-fields.ts'
import type { NewPlan, StoredPlan } from '../../store/store.ts'
import {
  CREATION_QUERY,
  createRoute,
  deleteRoute,
  found,
  listRoute,
  type ResourceKind,
  readRoute,
  updateRoute,
} from '../routes/resource-routes.ts'
import type { ControlParts, Route } from '../routes/route.ts'
import { checkSources } from '../sources/sources.ts'

const { description, ...REQUIRED } = PLAN_FIELDS
const PLAN = resource(
  {
    id: readOnly(string()),
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
    version: readOnly(
      integer({ min: 1, description: 'The version of the plan. It starts at 1 and goes up by one each time the content changes.' }),
    ),
    createdAt: readOnly(time()),
  },
  { title: 'TrackingPlan', description: 'Which events are sent, and what their properties look like.' },
)
export const NEW_PLAN = PLAN.create

export function planRoutes({ store }: ControlParts): Route[] {
  const kind: ResourceKind<StoredPlan> = {
    path: '/plans',
    noun: 'a tracking plan',
    plural: 'tracking plans',
    action: 'plan',
    subject: 'plan',
    changedBy: 'editor',
    sourcesOf: ({ sourceIds }) => sourceIds,
    notFound: 'plan_not_found',
    answer: PLAN.view,
    stored: () => store.configuration().plans,
    view: planView,
  }
  return [
    listRoute(kind),
    createRoute(kind, {
      description:
        'From then on, new messages of its sources are checked against the plan. Messages that are already stored are not checked.',
      body: PLAN.create,
      query: CREATION_QUERY,
      errors: ['source_has_plan'],
      others: ({ plans }) => plans,
      async wanted({ description: about, ...body }) {
        await checkRules(body.rules)
        return (configuration): NewPlan => {
          checkSources(configuration, body.sourceIds)
          return about === null ? body : { ...body, description: about }
        }
      },
      create: (wanted, audit) => store.resources.createPlan(wanted, audit),
    }),
    readRoute(kind),
    updateRoute(kind, {
      description: 'Changes only the fields that you send. `rules` and `sourceIds` replace the existing ones as a whole.',
      body: PLAN.patch,
      errors: ['source_has_plan'],
      async wanted({ description: about, ...body }, id) {
        // Another node may have created it a moment ago. A change of nothing reads what is stored, and writes nothing.
        const { rules } = kind.stored().get(id) ?? found(kind, await store.resources.updatePlan(id, {}))
        if (body.rules !== undefined) await checkRules(body.rules, rules)
        return (_before, configuration): Partial<NewPlan> => {
          checkSources(configuration, body.sourceIds)
          return about === undefined ? body : { ...body, description: about ?? '' }
        }
      },
      update: (id, change, audit) => store.resources.updatePlan(id, change, audit),
    }),
    deleteRoute(kind, {
      description:
        'Afterwards, messages of its sources are no longer checked. Messages that are in quarantine stay there until they are released or deleted.',
      remove: (id, audit, check) => store.resources.deletePlan(id, audit, check),
    }),
  ]
}

export function planView(plan: StoredPlan) {
  return PLAN.viewOf({ ...plan, description: plan.description || null })
}
