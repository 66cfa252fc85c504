// Makes an event that a subscription matches and whose mapping finds a value at every path: first from the conditions of `subscribe`, then from
// the paths of the mapping, with values that fit the schema of the action's fields. Deterministic, so that two runs get the same events.

import { parseFql, validate } from '@segment/destination-subscriptions'
import type { CatalogAction, FieldSchema, ObjectSchema } from '@switchyard/integrations/catalog'

type Json = Record<string, unknown>
type Schema = Partial<FieldSchema> | undefined
/** A node of the syntax tree that the library's parser returns for an expression. */
interface Node {
  type?: string
  operator: string
  children?: Node[]
  name?: string
  value?: unknown
}

/** The event of the library's createTestEvent, without what is random or depends on the time of the call. */
export const BASE_EVENT: Json = {
  anonymousId: 'anonId1234',
  context: {
    ip: '8.8.8.8',
    library: { name: 'analytics.js', version: '2.11.1' },
    locale: 'en-US',
    location: { city: 'San Francisco', country: 'United States', latitude: 40.2964197, longitude: -76.9411617, speed: 0 },
    page: { path: '/academy/', referrer: '', search: '', title: 'Analytics Academy', url: 'https://segment.com/academy/' },
    timezone: 'Europe/Amsterdam',
    userAgent:
      'Mozilla/5.0 (iPhone; CPU iPhone OS 9_1 like Mac OS X) AppleWebKit/601.1.46 (KHTML, like Gecko) Version/9.0 Mobile/13B143 Safari/601.1',
  },
  event: 'Test Event',
  properties: { plan: 'premium' },
  traits: { plan: 'premium' },
  type: 'track',
  userId: 'user1234',
}

/** What Segment adds when a user enters an audience. */
export const AUDIENCE: Json = {
  context: {
    personas: {
      computation_class: 'audience',
      computation_key: 'sample_audience',
      computation_id: 'aud_1234',
      external_audience_id: '5678',
      audience_settings: {},
    },
  },
  properties: { audience_key: 'sample_audience', sample_audience: true },
  traits: { sample_audience: true },
}

const TYPES = ['track', 'identify', 'page', 'screen', 'group', 'alias']

/** Fields whose values have a form that the schema does not tell, by the end of their name. */
const VALUES: readonly [name: RegExp, value: unknown][] = [
  [/e-?mails?$/i, 'jane@example.com'],
  [/phone(_?number)?s?$/i, '+14155552671'],
  [/(url|uri|link|href|image|icon|avatar|website)$/i, 'https://www.example.com/path'],
  [/currency(_?code)?$/i, 'USD'],
  [/country(_?code)?$/i, 'US'],
  [/(^|_)ip(_?address)?$/i, '8.8.8.8'],
  [/(timezone|time_zone)$/i, 'Europe/Amsterdam'],
  [/(locale|language)$/i, 'en-US'],
  [/(birthday|birthdate|dob|date_of_birth)$/i, '1990-04-01'],
  [/(timestamp|_at|At|date|time|Date|Time)$/, '2026-11-01T10:20:30.000Z'],
  [/gender$/i, 'female'],
  [/(postal_?code|zip(_?code)?)$/i, '94103'],
  [/audience_?key$/i, 'sample_audience'],
  [/computation_?class$/i, 'audience'],
]

export interface EventDetails {
  /** Part of the event, whatever the mapping reads. */
  fields?: Json
  /** The path of a value that the mapping reads, but the event must not contain. */
  without?: readonly string[]
}

/** Null if no event matches the expression. */
export function matchingEvent(
  subscribe: string,
  mapping: Json,
  action: CatalogAction | undefined,
  { fields = {}, without = [] }: EventDetails = {},
): Json | null {
  const parsed = parseFql(subscribe)
  const base = JSON.stringify(mapping).includes('$.context.personas') ? merged(BASE_EVENT, AUDIENCE) : BASE_EVENT
  for (const type of TYPES) {
    const event = merged({ ...base, type }, fields)
    fulfil(parsed as Node, event)
    if (!validate(parsed, event)) continue
    const filled = structuredClone(event)
    fill(filled, mapping, objectField(action?.fields), '')
    const whole = validate(parsed, filled) ? filled : event
    const [last = ''] = without.slice(-1)
    delete (getAt(whole, without.slice(0, -1)) as Json)[last]
    return inForm(whole)
  }
  return null
}

function merged(base: Json, over: Json): Json {
  const result = structuredClone(base)
  for (const [key, value] of Object.entries(over)) {
    const below = result[key]
    const isMerged = typeof value === 'object' && value !== null && !Array.isArray(value) && typeof below === 'object' && below !== null
    result[key] = isMerged ? merged(below as Json, value as Json) : value
  }
  return result
}

/** A message has the fields of its type: traits belong to identify and group, properties to the others. */
function inForm(event: Json): Json {
  const { type } = event
  if (type === 'page' || type === 'screen') event['name'] ??= 'Home'
  if (type === 'group') event['groupId'] ??= 'group1234'
  if (type === 'alias') event['previousId'] ??= 'anonId1234'
  return event
}

function fulfil(node: Node, event: Json): void {
  if (node.children !== undefined) {
    // Of alternatives the first that can be fulfilled.
    for (const child of node.children) {
      fulfil(child, event)
      if (node.operator === 'or') return
    }
    return
  }
  const { type, operator, value, name = '' } = node
  const wanted = operator === '!=' ? `not ${String(value)}` : value
  if (type === 'event') event['event'] = wanted
  else if (type === 'event-property') setAt(event, ['properties', ...name.split('.')], wanted)
  else if (type === 'event-trait') setAt(event, ['traits', ...name.split('.')], wanted)
  else if (type === 'event-context') setAt(event, ['context', ...name.split('.')], wanted)
}

/** Sets each path that the mapping reads, if the event has nothing there. */
function fill(event: Json, mapping: unknown, schema: Schema, key: string): void {
  if (typeof mapping !== 'object' || mapping === null) return
  if (Array.isArray(mapping)) {
    for (const item of mapping) fill(event, item, itemField(schema), key)
    return
  }
  for (const [name, value] of Object.entries(mapping as Json)) {
    if (name === '@path') setMissing(event, value, () => valueFor(key, schema, stepsOf(value)?.at(-1)))
    else if (name === '@template' || name === '@liquid') {
      for (const [, path] of String(value).matchAll(/{{\s*([\w.[\]]+)\s*}}/g)) setMissing(event, path, () => valueFor(key, undefined))
    } else if (name === '@arrayPath') fillArray(event, value as [unknown, Json?], schema, key)
    else if (name === '@merge') for (const object of (value as { objects: unknown[] }).objects) fill(event, object, schema, key)
    else if (name === '@if') {
      const { exists, blank, then, else: otherwise } = value as Record<string, unknown>
      // First the values, which may contain the path of the condition.
      for (const part of [then, otherwise, exists, blank]) fill(event, part, schema, key)
    } else if (name.startsWith('@')) fill(event, value, schema, key)
    else fill(event, value, (schema?.properties ?? itemField(schema)?.properties)?.[name], name)
  }
}

function fillArray(event: Json, [source, shape]: [unknown, Json?], schema: Schema, key: string): void {
  const path = typeof source === 'object' && source !== null ? (source as Json)['@path'] : source
  const item: Json = {}
  fill(item, shape, itemField(schema), key)
  setMissing(event, path, () => [item])
  const steps = stepsOf(path)
  const at = steps === null ? undefined : getAt(event, steps)
  // An object counts as an array with one item.
  const existing: unknown = Array.isArray(at) ? at[0] : at
  if (typeof existing === 'object' && existing !== null) fill(existing as Json, shape, itemField(schema), key)
}

function setMissing(event: Json, path: unknown, value: () => unknown): void {
  const steps = stepsOf(path)
  if (steps === null || steps.length === 0) return
  const existing = getAt(event, steps)
  if (existing === undefined || existing === '') setAt(event, steps, value())
}

function stepsOf(path: unknown): string[] | null {
  if (typeof path !== 'string') return null
  const plain = path.replace(/^\$\.?/, '').replaceAll(/\[['"]?([^\]'"]+)['"]?\]/g, '.$1')
  return plain === '' ? [] : plain.split('.')
}

function getAt(root: unknown, steps: readonly string[]): unknown {
  let at = root
  for (const step of steps) at = typeof at === 'object' && at !== null ? (at as Json)[step] : undefined
  return at
}

function setAt(root: Json, steps: readonly string[], value: unknown): void {
  let at = root
  for (const [index, step] of steps.entries()) {
    if (index === steps.length - 1) at[step] = value
    else {
      const next = at[step]
      // A number names a place in an array.
      if (typeof next !== 'object' || next === null) at[step] = /^\d+$/.test(steps[index + 1] as string) ? [] : {}
      at = at[step] as Json
    }
  }
}

function valueFor(key: string, schema: Schema, step = key): unknown {
  if (schema?.oneOf !== undefined) return schema.oneOf[0]?.const
  const type = Array.isArray(schema?.type) ? schema.type[0] : (schema?.type as string | undefined)
  const [, form] = VALUES.find(([name]) => name.test(step)) ?? VALUES.find(([name]) => name.test(key)) ?? []
  switch (type) {
    case 'array':
      return [valueFor(key, itemField(schema), step)]
    case 'object':
      return Object.fromEntries(Object.entries(schema?.properties ?? {}).map(([name, field]) => [name, valueFor(name, field)]))
    case 'boolean':
      return true
    case 'integer':
    case 'number':
      return 42
    default:
  }
  if (schema?.format === 'date') return '1990-04-01'
  if (schema?.format === 'uuid') return '6a1f4a3c-5b1e-4c0e-9d0a-2f6f1c1b7a55'
  if (schema?.format === 'date-time' || schema?.format === 'date-like') return '2026-11-01T10:20:30.000Z'
  if (schema?.format === 'email') return 'jane@example.com'
  if (schema?.format === 'uri') return 'https://www.example.com/path'
  return form ?? `${key}-value`
}

function itemField(schema: Schema): Schema {
  const items = schema?.items
  return items ?? schema
}

function objectField(fields: ObjectSchema | undefined): Schema {
  return fields === undefined ? undefined : { type: 'object', properties: fields.properties }
}
