// The fields of a tracking plan, in the API and in its file: one definition for both. What a schema may contain is checked where schemas are
// compiled, not here.

import { PLAN_MODES, PLANNED_TYPES, type PlanRule, ruleKey, type TrackingPlan, UNPLANNED_MODES } from '@switchyard/protocol'
import { anyObject, array, invalidField, object, oneOf, optional, type Schema, string, withDefault } from '../api/schema.ts'

export const MAX_RULES = 2_000
export const MAX_EVENT_LENGTH = 500

const RULE_FIELDS = object(
  {
    type: oneOf(PLANNED_TYPES, { description: 'The type of the messages that the rule applies to.' }),
    event: optional(
      string({
        min: 1,
        max: MAX_EVENT_LENGTH,
        description: 'The name of the event. Required if the type is `track`, otherwise not allowed.',
      }),
    ),
    description: optional(string({ max: 2_000, description: 'What the event means.' })),
    owner: optional(string({ max: 200, description: 'Who answers questions about the event, for example a team.' })),
    mode: withDefault(
      oneOf(PLAN_MODES, {
        description:
          'What happens to a message that violates the rule. `observe`: it is routed as usual, and the violation is recorded. `quarantine`: it is stored but not routed until it is released. `strip`: properties that are not planned are removed before routing.',
      }),
      'observe',
    ),
    schema: anyObject({ description: 'A JSON Schema (draft 2020-12) of `properties`, or of `traits` if the type is identify or group.' }),
  },
  { title: 'PlanRule' },
)
const RULE: Schema<PlanRule> = {
  ...RULE_FIELDS,
  parse(value, path) {
    const rule = RULE_FIELDS.parse(value, path)
    if (rule.type === 'track' && rule.event === undefined) throw invalidField(`${path}.event`, 'is required if the type is track')
    if (rule.type !== 'track' && rule.event !== undefined) throw invalidField(`${path}.event`, 'is only allowed if the type is track')
    return rule
  },
}

export const PLAN_FIELDS = {
  name: string({
    min: 1,
    max: 100,
    description: 'The name of the plan.',
    check: (name) => (name.trim() === '' || /\p{Cc}/u.test(name) ? 'must not be blank and must not contain control characters' : null),
  }),
  description: optional(string({ max: 2_000, description: 'What the plan is for.' })),
  unplanned: withDefault(
    oneOf(UNPLANNED_MODES, {
      description:
        'What happens to a message that has no rule. `allow`: nothing. `observe`: it is routed as usual, and a violation is recorded. `quarantine`: it is stored but not routed until it is released.',
    }),
    'allow',
  ),
  rules: array(RULE, {
    max: MAX_RULES,
    identity: ({ type, event }) => ruleKey(type, event),
    description: 'At most one rule for each event, and one for each other type.',
  }),
} satisfies Record<keyof TrackingPlan, Schema<unknown>>

/** The order of rules in a file. */
export function byEvent(left: PlanRule, right: PlanRule): number {
  const types = PLANNED_TYPES.indexOf(left.type) - PLANNED_TYPES.indexOf(right.type)
  return types !== 0 ? types : (left.event ?? '') < (right.event ?? '') ? -1 : 1
}
