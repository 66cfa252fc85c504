// Compares two tracking plans and says in words what changed: rules, and in them properties, types, values and other keywords of schemas. Pure.

import { isDeepStrictEqual } from 'node:util'
import { isObject, type JsonObject, type PlanRule, plannedField, ruleKey, type TrackingPlan } from '@switchyard/protocol'
import { byEvent } from './plan-fields.ts'

export interface PlanChange {
  kind: 'added' | 'removed' | 'changed'
  /** The key of the rule; null for a setting of the plan. */
  rule: string | null
  /** The property, for example `properties.products.*.price`; null for the rule itself. */
  path: string | null
  /** What changed, without a full stop: `a number instead of a string`. */
  change: string
}

const MAX_SHOWN = 80

/** The names of the plans are not compared. */
export function comparePlans(before: TrackingPlan, after: TrackingPlan): PlanChange[] {
  const changes: PlanChange[] = []
  const settings = { rule: null, path: null, kind: 'changed' } as const
  if (before.unplanned !== after.unplanned)
    changes.push({ ...settings, change: `unplanned is ${after.unplanned} instead of ${before.unplanned}` })
  if (before.description !== after.description) changes.push({ ...settings, change: textChange('description', before, after) })
  const [old, now] = [rulesByKey(before), rulesByKey(after)]
  const all = [...new Map([...old, ...now])].sort(([, left], [, right]) => byEvent(left, right))
  for (const [rule] of all) {
    const [was, is] = [old.get(rule), now.get(rule)]
    if (was === undefined || is === undefined) {
      const kind = was === undefined ? 'added' : 'removed'
      changes.push({
        kind,
        rule,
        path: null,
        change: `${was === undefined ? 'new rule' : 'rule removed'}${contents((is ?? was) as PlanRule)}`,
      })
    } else changes.push(...ruleChanges(rule, was, is))
  }
  return changes
}

function rulesByKey({ rules }: TrackingPlan): Map<string, PlanRule> {
  return new Map(rules.map((rule) => [ruleKey(rule.type, rule.event), rule]))
}

function ruleChanges(rule: string, before: PlanRule, after: PlanRule): PlanChange[] {
  const found: Omit<PlanChange, 'rule'>[] = []
  if (before.mode !== after.mode) found.push({ kind: 'changed', path: null, change: `mode is ${after.mode} instead of ${before.mode}` })
  for (const field of ['description', 'owner'] as const)
    if (before[field] !== after[field]) found.push({ kind: 'changed', path: null, change: textChange(field, before, after) })
  found.push(...schemaChanges(plannedField(before.type), before.schema, after.schema))
  return found.map(({ kind, path, change }) => ({ kind, rule, path, change }))
}

function contents({ type, schema }: PlanRule): string {
  const count = Object.keys(objectAt(schema, 'properties')).length
  const required = namesAt(schema, 'required').length
  const [one, many] = plannedField(type) === 'traits' ? ['trait', 'traits'] : ['property', 'properties']
  return `, with ${count} ${count === 1 ? one : many}${count === 0 ? '' : ` (${required} required)`}`
}

function textChange(field: 'description' | 'owner', before: JsonObject, after: JsonObject): string {
  if (after[field] === undefined) return `${field} removed`
  return `${field} ${before[field] === undefined ? 'added' : 'changed'}: ${shortened(String(after[field]))}`
}

/** Keywords that `describeSchema` covers. */
const DESCRIBED = new Set(['type', 'enum', 'const', 'format'])
/** Keywords that describe nested values. */
const NESTED = new Set(['properties', 'required', 'items', 'additionalProperties'])

function schemaChanges(path: string, before: JsonObject, after: JsonObject): Omit<PlanChange, 'rule'>[] {
  const changes: Omit<PlanChange, 'rule'>[] = []
  const changed = (change: string): number => changes.push({ kind: 'changed', path, change })
  const values = valueChange(before, after)
  if (values !== null) changed(values)
  for (const keyword of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (DESCRIBED.has(keyword) || NESTED.has(keyword) || isDeepStrictEqual(before[keyword], after[keyword])) continue
    const [was, is] = [shownValue(before, keyword), shownValue(after, keyword)]
    changed(is === null ? `${keyword} removed` : was === null ? `${keyword} added: ${is}` : `${keyword} is ${is} instead of ${was}`)
  }
  changes.push(...propertyChanges(path, before, after))
  const others = 'additionalProperties'
  for (const keyword of ['items', others] as const) {
    const [was, is]: unknown[] = [before[keyword], after[keyword]]
    if (isObject(was) && isObject(is)) changes.push(...schemaChanges(`${path}.*`, was, is))
    else if (!isDeepStrictEqual(was ?? true, is ?? true))
      changed(`${keyword === others ? 'other properties' : 'elements'}: ${describeSchema(is)} instead of ${describeSchema(was)}`)
  }
  return changes
}

function propertyChanges(path: string, before: JsonObject, after: JsonObject): Omit<PlanChange, 'rule'>[] {
  const changes: Omit<PlanChange, 'rule'>[] = []
  const [old, now] = [objectAt(before, 'properties'), objectAt(after, 'properties')]
  const [oldRequired, nowRequired] = [namesAt(before, 'required'), namesAt(after, 'required')]
  const names = new Set([...Object.keys(old), ...Object.keys(now), ...oldRequired, ...nowRequired])
  for (const name of [...names].sort()) {
    const at = `${path}.${name}`
    const [wasRequired, isRequired] = [oldRequired.includes(name), nowRequired.includes(name)]
    const [was, is]: unknown[] = [old[name], now[name]]
    if (was === undefined && is !== undefined)
      changes.push({ kind: 'added', path: at, change: `new: ${describeSchema(is)}, ${isRequired ? 'required' : 'optional'}` })
    else if (was !== undefined && is === undefined)
      changes.push({
        kind: 'removed',
        path: at,
        change: `removed; it was ${describeSchema(was)}, ${wasRequired ? 'required' : 'optional'}`,
      })
    else {
      if (wasRequired !== isRequired)
        changes.push({ kind: 'changed', path: at, change: isRequired ? 'now required' : 'no longer required' })
      if (isObject(was) && isObject(is)) changes.push(...schemaChanges(at, was, is))
      else if (!isDeepStrictEqual(was, is))
        changes.push({ kind: 'changed', path: at, change: `${describeSchema(is)} instead of ${describeSchema(was)}` })
    }
  }
  return changes
}

/** The change of type, format and allowed values. */
function valueChange(before: JsonObject, after: JsonObject): string | null {
  const { enum: old, ...restBefore } = before
  const { enum: now, ...restAfter } = after
  if (!Array.isArray(old) || !Array.isArray(now)) return wordsChange(before, after)
  const more = now.filter((value) => !includes(old, value))
  const less = old.filter((value) => !includes(now, value))
  const parts = [more.length === 0 ? '' : `also allows ${listed(more)}`, less.length === 0 ? '' : `no longer allows ${listed(less)}`]
  return parts.filter((part) => part !== '').join(', ') || wordsChange(restBefore, restAfter)
}

function wordsChange(before: JsonObject, after: JsonObject): string | null {
  const [was, is] = [describeSchema(before), describeSchema(after)]
  return was === is ? null : `${is} instead of ${was}`
}

function includes(values: readonly unknown[], value: unknown): boolean {
  return values.some((other) => isDeepStrictEqual(other, value))
}

/** A schema in words: `a string`, `one of EUR, USD`, `a number or null`. */
export function describeSchema(schema: unknown): string {
  if (schema === false) return 'not allowed'
  if (!isObject(schema)) return 'anything'
  const { type, enum: values, const: constant, format } = schema as { type?: unknown; enum?: unknown; const?: unknown; format?: unknown }
  if (Array.isArray(values)) return `one of ${listed(values)}`
  if (constant !== undefined) return listed([constant])
  const types = (Array.isArray(type) ? type : type === undefined ? [] : [type]).map(String)
  // Null comes last.
  const sorted = types.sort((left, right) => Number(left === 'null') - Number(right === 'null') || (left < right ? -1 : 1))
  const words = sorted.map((name) => (name === 'null' ? name : `${/^[aeio]/.test(name) ? 'an' : 'a'} ${name}`)).join(' or ') || 'anything'
  return typeof format === 'string' ? `${words} in the format ${format}` : words
}

function listed(values: readonly unknown[]): string {
  return shortened(values.map((value) => (typeof value === 'string' ? value : JSON.stringify(value))).join(', '))
}

function shownValue(schema: JsonObject, keyword: string): string | null {
  return schema[keyword] === undefined ? null : shortened(JSON.stringify(schema[keyword]))
}

function shortened(text: string): string {
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN - 1)}…`
}

function objectAt(schema: JsonObject, keyword: string): JsonObject {
  const value: unknown = schema[keyword]
  return isObject(value) ? value : {}
}

function namesAt(schema: JsonObject, keyword: string): string[] {
  const value: unknown = schema[keyword]
  return Array.isArray(value) ? value.map(String) : []
}
