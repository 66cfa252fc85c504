// Judges messages by a tracking plan. A plan becomes a judge once per version; a rule is compiled when its first message arrives, because a
// plan can have many rules and compiling one takes about a millisecond. Large schemas can be compiled before that. Invariant: no message is lost because of a plan. If a rule cannot be
// compiled, or a validator throws, the fault is reported once and the messages of the rule count as valid. If there is no compiler yet,
// because it cannot be loaded, the next message tries again.

import { type StepBudget, StepsExceeded } from './judging-steps.ts'
import { isObject, type JsonObject } from './messages.ts'
import { type CreateSchemaCompiler, MAX_ERRORS, type SchemaValidator } from './plan-schema.ts'
import { shortened, violationsOf, withoutProperties } from './plan-violations.ts'
import {
  isPlannedType,
  type PlanMode,
  type PlanRule,
  plannedField,
  ruleKey,
  type TrackingPlan,
  type UnplannedMode,
  type Violation,
} from './tracking-plan.ts'

/** What is wrong with a message. A message that is as planned has none. */
export interface PlanVerdict {
  /** See `ruleKey`. Of a message that no rule is about: the key that its rule would have. */
  rule: string
  mode: PlanMode
  /** At least one, at most MAX_VIOLATIONS. */
  violations: readonly Violation[]
  /** The message without the properties that are not planned, if the mode is `strip` and it has any. The message itself is not changed. */
  stripped: JsonObject | null
}

export interface PlanFault {
  rule: string
  message: string
}

export interface PlanJudge {
  /**
   * Returns null if the message is as planned. The message must be valid: see `parseMessage`. `budget` is what the messages of one request have
   * together: see `requestBudget`.
   */
  judge: (message: JsonObject, budget?: StepBudget) => PlanVerdict | null
  /** Compiles the next rule with a large schema, and returns false if there is none. So they can be compiled before their messages arrive. */
  compileNext: () => boolean
  /** The rules that could not be applied so far. */
  readonly faults: readonly PlanFault[]
}

interface CompiledRule {
  key: string
  mode: PlanMode
  field: 'properties' | 'traits'
  validate: SchemaValidator
  /** Compiles the schema. */
  prepare: () => void
}

/** Every message of such a rule is valid. */
const NOTHING: SchemaValidator = () => true
/** Names of events without a rule come from the sender, so they are truncated to this length. */
const MAX_NAME_LENGTH = 200
/** Characters. Compiling a schema of this size takes about 5 ms. */
const LARGE_SCHEMA = 5_000
const NO_PROPERTIES: JsonObject = Object.freeze({})

export function createPlanJudge(
  plan: Pick<TrackingPlan, 'rules' | 'unplanned'>,
  createCompiler: CreateSchemaCompiler,
  onFault?: (fault: PlanFault) => void,
): PlanJudge {
  const faults: PlanFault[] = []
  // By the name of the event or the type, so that no key has to be composed for each message.
  const tracked = new Map<unknown, CompiledRule>()
  const others = new Map<unknown, CompiledRule>()
  let compile: ReturnType<CreateSchemaCompiler> | undefined
  /** Of those with large schemas. */
  const uncompiled = new Set<CompiledRule>()
  for (const rule of plan.rules) {
    const compiled: CompiledRule = {
      key: ruleKey(rule.type, rule.event),
      mode: rule.mode,
      field: plannedField(rule.type),
      validate: (value, budget) => {
        compiled.prepare()
        return compiled.validate(value, budget)
      },
      prepare: () => {
        if (compile === undefined) {
          compile = createCompiler()
          // So far, all faults were that there was none.
          faults.length = 0
        }
        uncompiled.delete(compiled)
        compiled.validate = compile(closedSchema(rule))
      },
    }
    if (JSON.stringify(rule.schema).length > LARGE_SCHEMA) uncompiled.add(compiled)
    if (rule.type === 'track') tracked.set(rule.event, compiled)
    else others.set(rule.type, compiled)
  }

  function fail(rule: CompiledRule, error: unknown): void {
    if (compile !== undefined) rule.validate = NOTHING
    else if (faults.some((known) => known.rule === rule.key)) return
    const fault = { rule: rule.key, message: error instanceof Error ? error.message : String(error) }
    faults.push(fault)
    onFault?.(fault)
  }

  return {
    faults,
    compileNext() {
      const [next] = uncompiled
      if (next === undefined) return false
      uncompiled.delete(next)
      try {
        next.prepare()
      } catch (error) {
        fail(next, error)
      }
      return true
    },
    judge(message, budget) {
      const type: unknown = message['type']
      const rule = type === 'track' ? tracked.get(message['event']) : others.get(type)
      if (rule === undefined) return unplannedVerdict(plan.unplanned, type, message['event'])
      const value: unknown = message[rule.field] ?? NO_PROPERTIES
      try {
        if (rule.validate(value, budget)) return null
        const { key, field } = rule
        const errors = rule.validate.errors ?? []
        // Not everything was examined, so what is not planned is not known. In quarantine, it is neither lost nor sent.
        const mode = rule.mode === 'strip' && errors.length >= MAX_ERRORS ? 'quarantine' : rule.mode
        const { violations, unplannedPaths } = violationsOf(key, field, value, errors)
        const stripped =
          mode === 'strip' && unplannedPaths.length > 0 ? { ...message, [field]: withoutProperties(value, unplannedPaths) } : null
        return { rule: key, mode, violations, stripped }
      } catch (error) {
        if (error instanceof StepsExceeded) return unexamined(rule)
        fail(rule, error)
        return null
      }
    },
  }
}

/** The verdict on a message that no rule is about. */
function unplannedVerdict(mode: UnplannedMode, type: unknown, event: unknown): PlanVerdict | null {
  if (mode === 'allow' || !isPlannedType(type)) return null
  const isTrack = type === 'track'
  const rule = ruleKey(type, isTrack ? shortened(String(event), MAX_NAME_LENGTH) : undefined)
  const violation: Violation = {
    rule,
    code: 'unplanned_event',
    path: isTrack ? 'event' : 'type',
    expected: isTrack ? 'the name of a planned event' : 'a planned type',
    found: isTrack ? 'another name' : `the type ${type}`,
  }
  return { rule, mode, violations: [violation], stripped: null }
}

/** The verdict on a message that would take too long to examine. In quarantine, it is neither lost nor sent. */
function unexamined({ key, mode, field }: CompiledRule): PlanVerdict {
  const violation: Violation = {
    rule: key,
    code: 'other',
    path: field,
    expected: 'a message that can be checked with a limited number of steps',
    found: 'a message that needs more steps',
  }
  return { rule: key, mode: mode === 'strip' ? 'quarantine' : mode, violations: [violation], stripped: null }
}

/**
 * JSON Schema allows every property that the schema does not mention. In the mode `strip`, those are the ones to remove, so a schema that
 * does not say what happens to them is closed, at its top level. A property that is required, or that only a branch mentions, is planned,
 * even if the message fits no branch.
 */
function closedSchema({ mode, schema }: PlanRule): JsonObject {
  const isOpen = schema['additionalProperties'] === undefined && schema['unevaluatedProperties'] === undefined
  if (mode !== 'strip' || !isOpen) return schema
  const mentioned = { properties: new Set<string>(), patternProperties: new Set<string>() }
  const visited = new Set<unknown>()
  const definitions = isObject(schema['$defs']) ? schema['$defs'] : {}
  function visit(part: unknown): void {
    if (!isObject(part) || visited.has(part)) return
    visited.add(part)
    const { required, dependentRequired, dependentSchemas, $ref } = part
    for (const names of [required, ...Object.values(isObject(dependentRequired) ? dependentRequired : {})])
      for (const name of Array.isArray(names) ? names : []) mentioned.properties.add(String(name))
    for (const field of ['properties', 'patternProperties'] as const)
      for (const name of Object.keys(isObject(part[field]) ? part[field] : {})) mentioned[field].add(name)
    for (const branches of [part['allOf'], part['anyOf'], part['oneOf']]) if (Array.isArray(branches)) branches.forEach(visit)
    for (const branch of [part['if'], part['then'], part['else'], ...Object.values(isObject(dependentSchemas) ? dependentSchemas : {})])
      visit(branch)
    if (typeof $ref === 'string') visit(definitions[$ref.slice('#/$defs/'.length)])
  }
  visit(schema)
  const closed: JsonObject = { ...schema, unevaluatedProperties: false }
  for (const field of ['properties', 'patternProperties'] as const) {
    const own = isObject(schema[field]) ? schema[field] : {}
    const others = [...mentioned[field]].filter((name) => !Object.hasOwn(own, name))
    if (others.length > 0) closed[field] = Object.fromEntries([...Object.entries(own), ...others.map((name) => [name, {}])])
  }
  return closed
}
