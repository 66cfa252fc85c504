// Converts the tracking plans of a workspace. Segment's rules are JSON Schemas (draft 7) of whole messages, with labels and ids; rules here are schemas
// (draft 2020-12) of `properties` or `traits`. Violations are recorded and nothing is held back, whatever Segment does with them: modes are changed later.

import { isObject, isPlannedType, type JsonObject, type PlanRule, plannedField, ruleKey } from '@switchyard/protocol'
import { type Existing, type PlannedPlan, type PlannedSource, uniqueNames } from './planned-workspace.ts'
import type { ExportedPlan, ExportedRule } from './workspace-export.ts'

/** Of which sources of the workspace already have a plan here, and what was planned of them. */
export function planTrackingPlans(
  exported: readonly ExportedPlan[],
  sources: ReadonlyMap<string, PlannedSource>,
  existing: Existing,
): PlannedPlan[] {
  const names = uniqueNames(exported, ({ id }) => id)
  return exported.map((plan) => {
    const name = names.get(plan) as string
    const own = plan.sourceIds.flatMap((id) => sources.get(id) ?? []).filter(({ outcome }) => outcome !== 'not_supported')
    const planned: PlannedPlan = {
      name,
      segmentId: plan.id,
      outcome: 'create',
      reason: null,
      notes: [],
      hints: [],
      id: null,
      sources: own,
      body: { rules: [] },
    }
    const found = existing.plans.find((other) => other.name === name)
    if (found !== undefined) return { ...planned, outcome: 'exists', id: found.id }
    if (plan.type !== 'LIVE')
      return { ...planned, outcome: 'not_supported', reason: 'It is a library or a template, which no source uses.' }
    const taken = own.find(({ id }) => id !== null && existing.plans.some(({ sourceIds }) => sourceIds.includes(id)))
    if (taken !== undefined) return { ...planned, outcome: 'not_supported', reason: `Its source ${taken.name} already has a plan here.` }
    const rules = rulesOf(plan.rules, planned.notes)
    if (own.length === 0) planned.hints.push('It is attached to none of the imported sources, so it checks nothing yet.')
    const description = plan.description === '' ? {} : { description: plan.description.slice(0, 2_000) }
    return { ...planned, body: { name, ...description, unplanned: 'observe', rules } }
  })
}

function rulesOf(exported: readonly ExportedRule[], notes: string[]): PlanRule[] {
  const rules = new Map<string, { version: number; rule: PlanRule }>()
  for (const { type, key, version, schema, isDeprecated } of exported) {
    if (isDeprecated) continue
    const name = type.toLowerCase()
    const event = key === null || key === '' ? undefined : key
    if (!isPlannedType(name) || (name === 'track') !== (event !== undefined)) {
      notes.push(
        `The rule ${type}${event === undefined ? '' : ` ${event}`} is left out: rules are for a track event, or for all messages of another type.`,
      )
      continue
    }
    const id = ruleKey(name, event)
    if ((rules.get(id)?.version ?? -1) >= version) continue
    const parts = isObject(schema['properties']) ? schema['properties'] : {}
    const own = parts[plannedField(name)]
    const others = Object.entries(parts).filter(([part, value]) => part !== plannedField(name) && isRestrictive(value))
    for (const [part] of others)
      notes.push(`The rule ${id} is imported without its schema of ${part}: rules here are about ${plannedField(name)}.`)
    const description =
      typeof schema['description'] === 'string' && schema['description'] !== ''
        ? { description: schema['description'].slice(0, 2_000) }
        : {}
    const rule: PlanRule = {
      type: name,
      ...(event === undefined ? {} : { event }),
      ...description,
      mode: 'observe',
      schema: isObject(own) ? (converted(own) as JsonObject) : { type: 'object' },
    }
    rules.set(id, { version, rule })
  }
  return [...rules.values()].map(({ rule }) => rule)
}

/** Segment writes an empty schema for each part of a message that a rule does not describe. */
function isRestrictive(schema: unknown): boolean {
  if (!isObject(schema)) return false
  const { properties, required } = schema
  return (isObject(properties) && Object.keys(properties).length > 0) || (Array.isArray(required) && required.length > 0)
}

const LEFT_OUT: ReadonlySet<string> = new Set(['$schema', '$id', 'id', 'labels'])
const RENAMED: Readonly<Record<string, string>> = { definitions: '$defs' }
const MAPS: ReadonlySet<string> = new Set(['properties', 'patternProperties', '$defs', 'dependentSchemas'])
const SCHEMAS: ReadonlySet<string> = new Set(['items', 'additionalProperties', 'not', 'if', 'then', 'else', 'contains', 'propertyNames'])
const LISTS: ReadonlySet<string> = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems'])

/** A schema of draft 7 as one of draft 2020-12. Names of properties are not keywords. */
function converted(schema: unknown): unknown {
  if (!isObject(schema)) return schema
  const result: [string, unknown][] = []
  for (const [given, value] of Object.entries(schema)) {
    if (LEFT_OUT.has(given)) continue
    const isTuple = given === 'items' && Array.isArray(value)
    const keyword = isTuple ? 'prefixItems' : given === 'additionalItems' ? 'items' : (RENAMED[given] ?? given)
    if (keyword === '$ref' && typeof value === 'string') result.push([keyword, value.replace('#/definitions/', '#/$defs/')])
    else if (MAPS.has(keyword) && isObject(value))
      result.push([keyword, Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, converted(inner)]))])
    else if (SCHEMAS.has(keyword)) result.push([keyword, converted(value)])
    else if (LISTS.has(keyword) && Array.isArray(value)) result.push([keyword, value.map(converted)])
    else result.push([keyword, value])
  }
  return Object.fromEntries(result)
}
