// A tracking plan: which events a team sends, and what their properties look like. The types are shared by the service, the command line
// and the client for tests.

import type { JsonObject, MessageType } from './messages.ts'

/** Types of messages that a rule can be about. An alias has neither properties nor traits. */
export const PLANNED_TYPES = ['track', 'identify', 'page', 'screen', 'group'] as const satisfies readonly MessageType[]
export type PlannedType = (typeof PLANNED_TYPES)[number]

const PLANNED: ReadonlySet<unknown> = new Set(PLANNED_TYPES)

export function isPlannedType(value: unknown): value is PlannedType {
  return PLANNED.has(value)
}

/**
 * What happens to a message that violates a rule. `observe`: it is routed as usual, and the violation is recorded. `quarantine`: it is stored but not
 * routed until somebody releases it. `strip`: properties that are not planned are removed before routing.
 */
export const PLAN_MODES = ['observe', 'quarantine', 'strip'] as const
export type PlanMode = (typeof PLAN_MODES)[number]

/** What happens to a message that no rule is about. */
export const UNPLANNED_MODES = ['allow', 'observe', 'quarantine'] as const
export type UnplannedMode = (typeof UNPLANNED_MODES)[number]

export interface PlanRule {
  type: PlannedType
  /** The name of the event: present if and only if the type is `track`. */
  event?: string
  description?: string
  /** Who answers questions about the event, for example a team or an email address. */
  owner?: string
  mode: PlanMode
  /** A JSON Schema (draft 2020-12) of `properties`, or of `traits` if the type is identify or group. */
  schema: JsonObject
}

/** The content of a plan, as it is in its file. */
export interface TrackingPlan {
  name: string
  description?: string
  unplanned: UnplannedMode
  /** At most one rule for each type and event. */
  rules: readonly PlanRule[]
}

/** How a message differs from what was planned. It contains no values of the message, which may be personal data. */
export interface Violation {
  /** The rule, as `track Order Completed` or `identify`: see `ruleKey`. */
  rule: string
  code: ViolationCode
  /** Where in the message, for example `properties.products.0.price`. For `unplanned_event`: `event`, or `type` if it is not a track message. */
  path: string
  /** In words, for example `a number`. */
  expected: string
  /** In words, for example `a string` or `nothing`. */
  found: string
}

export const VIOLATION_CODES = [
  /** No rule is about the event. */
  'unplanned_event',
  /** A required property is missing. */
  'missing_property',
  /** The schema does not allow the property. */
  'unplanned_property',
  'wrong_type',
  /** The value is not one of those listed in `enum` or `const`. */
  'wrong_value',
  /** A string does not have the format or the pattern. */
  'wrong_format',
  /** A number, a length or a number of elements is too small or too large. */
  'out_of_range',
  /** Any other keyword of the schema. */
  'other',
] as const
export type ViolationCode = (typeof VIOLATION_CODES)[number]

/** The field of a message that rules of this type describe. */
export function plannedField(type: PlannedType): 'properties' | 'traits' {
  return type === 'identify' || type === 'group' ? 'traits' : 'properties'
}

/** The key of a rule, and of an event in the event catalogue: the type and, for track, the name. */
export function ruleKey(type: string, event: string | undefined): string {
  return type === 'track' ? `track ${event ?? ''}` : type
}
