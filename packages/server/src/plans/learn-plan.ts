// Learns a tracking plan from messages: a rule for each event that was sent, with what all its messages have in common. The plan flags none of
// the messages that it was learned from, and contains no values that may be personal data.

import {
  type JsonObject,
  PLANNED_TYPES,
  type PlannedType,
  type PlanRule,
  plannedField,
  ruleKey,
  type TrackingPlan,
} from '@switchyard/protocol'
import { type Budget, ObservedValues } from './observed-values.ts'
import { isGenerated } from './personal-data.ts'
import { byEvent, MAX_EVENT_LENGTH, MAX_RULES } from './plan-fields.ts'

/** How many properties are followed in all, in memory. */
const MAX_OBSERVED = 100_000
/** A request to the API can have 1 MiB, and the plan is not alone in it. */
const MAX_RULES_BYTES = 900_000
const MAX_SCHEMA_VALUES = 5_000

export interface LearnedPlan {
  plan: TrackingPlan
  /** The messages that the plan was learned from. */
  messages: number
  /** Events without a rule, because their names look generated or because there are too many, and the number of their messages. */
  leftOut: { events: number; messages: number }
}

interface Observed {
  type: PlannedType
  event?: string
  values: ObservedValues
}

export class PlanLearner {
  readonly #observed = new Map<string, Observed>()
  readonly #budget: Budget = { left: MAX_OBSERVED }
  readonly #leftOut = new Set<string>()
  #messages = 0
  #leftOutMessages = 0

  /** `message` as it was stored or as it is sent to destinations. Messages of types that a plan cannot describe are ignored. */
  add(message: JsonObject): void {
    const type = PLANNED_TYPES.find((planned) => planned === message['type'])
    if (type === undefined) return
    this.#messages++
    const { event, userId, anonymousId } = message
    const key = ruleKey(type, event)
    let observed = this.#observed.get(key)
    if (observed === undefined) {
      if (this.#observed.size >= MAX_RULES || (type === 'track' && (event.length > MAX_EVENT_LENGTH || isGenerated(event)))) {
        this.#leftOutMessages++
        if (this.#leftOut.size < MAX_OBSERVED) this.#leftOut.add(key.slice(0, MAX_EVENT_LENGTH))
        return
      }
      observed = { type, ...(type === 'track' ? { event } : {}), values: new ObservedValues('', this.#budget) }
      this.#observed.set(key, observed)
    }
    observed.values.add(message[plannedField(type)] ?? {}, String(userId ?? anonymousId).slice(0, 100))
  }

  learned(name: string): LearnedPlan {
    const frequent = [...this.#observed.values()].sort((left, right) => right.values.count - left.values.count)
    const rules: PlanRule[] = []
    const leftOut = { events: this.#leftOut.size, messages: this.#leftOutMessages }
    let bytes = 0
    for (const { values, ...subject } of frequent) {
      const rule: PlanRule = { ...subject, mode: 'observe', schema: boundedSchema(values) }
      bytes += Buffer.byteLength(JSON.stringify(rule))
      if (bytes <= MAX_RULES_BYTES) rules.push(rule)
      else {
        leftOut.events++
        leftOut.messages += values.count
      }
    }
    // An event without a rule was sent, so it is no violation.
    const unplanned = leftOut.events > 0 ? 'allow' : 'observe'
    return { plan: { name, unplanned, rules: rules.sort(byEvent) }, messages: this.#messages, leftOut }
  }
}

/** Leaves out the inner levels of a schema that is larger than the service accepts. */
function boundedSchema(values: ObservedValues): JsonObject {
  for (const levels of [8, 4, 2]) {
    const schema = values.schema(levels)
    if (countValues(schema) <= MAX_SCHEMA_VALUES) return schema
  }
  return values.schema(1)
}

function countValues(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce<number>((sum, inner) => sum + countValues(inner), 1)
}
