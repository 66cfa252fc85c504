// Reads an export of a Segment workspace: the answers of Segment's Public API to GET /sources, /destinations,
// /destinations/{id}/subscriptions and /destination/{id}/filters, as one JSON value. Anything else in the file is counted, so that it can be listed as not imported.

import { type CommandProblem, UsageProblem } from '../service/problem.ts'

export interface ExportedSource {
  id: string
  name: string
  slug: string
  enabled: boolean
  writeKeys: readonly string[]
  /** The kind of source, such as "Javascript". */
  kind: string
  /** The categories of its kind, such as "Website" or "Warehouse". */
  categories: readonly string[]
  /** Whether a cloud application sends events to it, instead of a client library. */
  isCloudEventSource: boolean
}

export interface ExportedDestination {
  id: string
  name: string
  enabled: boolean
  sourceId: string
  /** The slug and the id of the integration in Segment's catalogue. */
  slug: string
  catalogId: string
  /** The name of the integration. */
  kind: string
  /** This name and those that the integration had before. Keys of `integrations` may use any of them. */
  publishedNames: readonly string[]
  settings: Readonly<Record<string, unknown>>
  /** The actions of the integration, and where each one runs: `cloud`, `web` or `mobile`. Empty for a classic destination. */
  platforms: ReadonlyMap<string, string>
}

export interface ExportedSubscription {
  id: string
  destinationId: string
  name: string
  action: string
  enabled: boolean
  trigger: string
  mapping: Readonly<Record<string, unknown>>
  isReverseEtl: boolean
}

/** A destination filter. */
export interface ExportedFilter {
  id: string
  destinationId: string
  title: string
  /** In Segment's filter language; `all` for every message. */
  condition: string
  enabled: boolean
  actions: readonly ExportedFilterAction[]
}

export interface ExportedFilterAction {
  type: string
  percent: number | null
  path: string | null
  /** Keys, by the path of the object that has them; the empty path is the message itself. */
  fields: ReadonlyMap<string, readonly string[]>
}

/** A tracking plan. */
export interface ExportedPlan {
  id: string
  name: string
  description: string
  /** `LIVE`, or a kind of library. */
  type: string
  /** The sources that it is attached to. */
  sourceIds: readonly string[]
  rules: readonly ExportedRule[]
}

export interface ExportedRule {
  /** Such as `TRACK`. */
  type: string
  /** The event of a track rule. */
  key: string | null
  version: number
  /** A JSON Schema of the whole message. */
  schema: Readonly<Record<string, unknown>>
  isDeprecated: boolean
}

export interface Workspace {
  sources: readonly ExportedSource[]
  destinations: readonly ExportedDestination[]
  /** By the id of the destination. */
  subscriptions: ReadonlyMap<string, readonly ExportedSubscription[]>
  /** By the id of the destination. Null if the export has no answers about filters, so that it is not known whether there are any. */
  filters: ReadonlyMap<string, readonly ExportedFilter[]> | null
  plans: readonly ExportedPlan[]
  /** The names of destination functions, by their id in Segment's catalogue. */
  functions: ReadonlyMap<string, string>
  /** Other lists in the export, such as warehouses, and how many entries each has. */
  others: ReadonlyMap<string, number>
}

/** Throws a CommandProblem if the text is not an export. */
export function parseWorkspace(text: string, path: string): Workspace {
  let value: unknown
  try {
    value = JSON.parse(text)
    // A value that cannot be written again, because it is nested too deeply, could not be sent either.
    JSON.stringify(value)
  } catch (cause) {
    throw new UsageProblem(`${path} is not valid JSON: ${(cause as Error).message}.`, { cause })
  }
  const sources = new Map<string, ExportedSource>()
  const destinations = new Map<string, ExportedDestination>()
  const subscriptions = new Map<string, ExportedSubscription>()
  const filters = new Map<string, ExportedFilter>()
  const functions = new Map<string, string>()
  const plans = new Map<string, ExportedPlan & { sourceIds: string[]; rules: ExportedRule[] }>()
  const planPages: { planId: string; data: Fields }[] = []
  let hasFilters = false
  const others = new Map<string, number>()
  // An entry can be on two pages if the workspace changed while it was exported.
  const add = <T extends { id: string }>(to: Map<string, T>, entry: T): void => void (to.has(entry.id) || to.set(entry.id, entry))
  const pages = Array.isArray(value) ? (value as unknown[]) : [value]
  for (const [index, given] of pages.entries()) {
    const page = new Fields(given, Array.isArray(value) ? `${path}[${index}]` : path)
    const data = page.has('data') ? page.object('data') : page
    // The rules and the sources of a plan do not name it, so the script of the guide writes its id beside them.
    if (page.has('trackingPlanId')) {
      planPages.push({ planId: page.text('trackingPlanId'), data })
      continue
    }
    for (const part of data.names()) {
      if (part === 'sources') for (const entry of data.list(part)) add(sources, parseSource(entry))
      else if (part === 'destinations') for (const entry of data.list(part)) add(destinations, parseDestination(entry))
      else if (part === 'subscriptions') for (const entry of data.list(part)) add(subscriptions, parseSubscription(entry))
      else if (part === 'trackingPlans') for (const entry of data.list(part)) add(plans, parsePlan(entry))
      else if (part === 'filters') {
        hasFilters = true
        for (const entry of data.list(part)) add(filters, parseFilter(entry))
      } else if (data.length(part) > 0) {
        if (part === 'functions')
          for (const entry of data.list(part)) functions.set(entry.text('catalogId', ''), entry.text('displayName', 'It'))
        others.set(part, (others.get(part) ?? 0) + data.length(part))
      }
    }
  }
  for (const { planId, data } of planPages) {
    const plan = plans.get(planId)
    if (plan === undefined) continue
    plan.rules.push(...data.list('rules').map(parseRule))
    plan.sourceIds.push(...data.list('sources').map((source) => source.text('id')))
  }
  if (sources.size === 0 && destinations.size === 0)
    throw new UsageProblem(
      `${path} contains neither sources nor destinations. It must contain the answers of Segment's Public API, such as { "data": { "sources": […] } }, as one object or a list.`,
    )
  return {
    sources: [...sources.values()],
    destinations: [...destinations.values()],
    subscriptions: byDestination(subscriptions.values()),
    plans: [...plans.values()],
    functions,
    filters: hasFilters ? byDestination(filters.values()) : null,
    others,
  }
}

function byDestination<T extends { destinationId: string }>(entries: Iterable<T>): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const each of entries) groups.set(each.destinationId, [...(groups.get(each.destinationId) ?? []), each])
  return groups
}

function parseSource(source: Fields): ExportedSource {
  const metadata = source.object('metadata')
  const slug = source.text('slug')
  return {
    id: source.text('id'),
    slug,
    name: source.text('name', slug),
    enabled: source.boolean('enabled', true),
    writeKeys: source.texts('writeKeys'),
    kind: metadata.text('name', ''),
    categories: metadata.texts('categories'),
    isCloudEventSource: metadata.boolean('isCloudEventSource', false),
  }
}

function parseDestination(destination: Fields): ExportedDestination {
  const metadata = destination.object('metadata')
  const kind = metadata.text('name', metadata.text('slug'))
  return {
    id: destination.text('id'),
    name: destination.text('name', kind),
    enabled: destination.boolean('enabled', true),
    sourceId: destination.text('sourceId'),
    slug: metadata.text('slug'),
    catalogId: metadata.text('id', ''),
    kind,
    publishedNames: [...new Set([kind, ...metadata.texts('previousNames')])].filter((name) => name.trim() !== ''),
    settings: destination.object('settings').value,
    platforms: new Map(metadata.list('actions').map((action) => [action.text('slug'), action.text('platform', '').toLowerCase()])),
  }
}

function parseSubscription(subscription: Fields): ExportedSubscription {
  const action = subscription.text('actionSlug')
  return {
    id: subscription.text('id'),
    destinationId: subscription.text('destinationId'),
    name: subscription.text('name', action),
    action,
    enabled: subscription.boolean('enabled', true),
    trigger: subscription.text('trigger', ''),
    mapping: subscription.object('settings').value,
    isReverseEtl: subscription.has('modelId') || subscription.has('reverseETLSchedule'),
  }
}

function parsePlan(plan: Fields): ExportedPlan & { sourceIds: string[]; rules: ExportedRule[] } {
  const id = plan.text('id')
  return {
    id,
    name: plan.text('name', id),
    description: plan.text('description', ''),
    type: plan.text('type', 'LIVE'),
    sourceIds: [],
    rules: [],
  }
}

function parseRule(rule: Fields): ExportedRule {
  return {
    type: rule.text('type'),
    key: rule.text('key', '') || null,
    version: rule.number('version') ?? 0,
    schema: rule.object('jsonSchema').value,
    // Segment writes a time long ago for rules that are not deprecated.
    isDeprecated: Date.parse(rule.text('deprecatedAt', '')) > 0,
  }
}

function parseFilter(filter: Fields): ExportedFilter {
  const id = filter.text('id')
  return {
    id,
    destinationId: filter.text('destinationId'),
    title: filter.text('title', id),
    condition: filter.text('if', 'all'),
    enabled: filter.boolean('enabled', true),
    actions: filter.list('actions').map((action) => {
      const fields = action.object('fields')
      return {
        type: action.text('type'),
        percent: action.number('percent'),
        path: action.text('path', '') || null,
        // Older filters have the keys in an object.
        fields: new Map(
          fields.names().map((path) => [path, fields.isList(path) ? fields.texts(path) : fields.object(path).texts('fields')]),
        ),
      }
    }),
  }
}

/** An object of the export. Its fields are checked when they are read. Null is the same as a missing field. */
class Fields {
  readonly value: Readonly<Record<string, unknown>>
  readonly #place: string

  constructor(value: unknown, place: string) {
    this.#place = place
    this.value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
    if (Array.isArray(value) || this.value !== value) throw this.#problem('', 'must be an object')
  }

  names(): string[] {
    return Object.keys(this.value)
  }

  has(name: string): boolean {
    return this.#read(name) !== undefined
  }

  /** The length of a list; 0 if the value is something else. */
  length(name: string): number {
    const value = this.#read(name)
    return Array.isArray(value) ? value.length : 0
  }

  /** An empty text counts as missing. */
  text(name: string, missing?: string): string {
    const value = this.#read(name) ?? ''
    if (typeof value !== 'string') throw this.#problem(name, 'must be a string')
    if (value.trim() !== '') return value
    if (missing === undefined) throw this.#problem(name, 'is missing')
    return missing
  }

  boolean(name: string, missing: boolean): boolean {
    const value = this.#read(name) ?? missing
    if (typeof value !== 'boolean') throw this.#problem(name, 'must be true or false')
    return value
  }

  /** Null if it is missing. */
  number(name: string): number | null {
    const value = this.#read(name) ?? null
    if (value !== null && typeof value !== 'number') throw this.#problem(name, 'must be a number')
    return value
  }

  isList(name: string): boolean {
    return Array.isArray(this.#read(name))
  }

  texts(name: string): string[] {
    const values = this.#read(name) ?? []
    if (!Array.isArray(values) || values.some((value) => typeof value !== 'string')) throw this.#problem(name, 'must be a list of strings')
    return values as string[]
  }

  object(name: string): Fields {
    return new Fields(this.#read(name) ?? {}, `${this.#place}.${name}`)
  }

  list(name: string): Fields[] {
    const values = this.#read(name) ?? []
    if (!Array.isArray(values)) throw this.#problem(name, 'must be a list')
    return values.map((value, index) => new Fields(value, `${this.#place}.${name}[${index}]`))
  }

  #read(name: string): unknown {
    return Object.hasOwn(this.value, name) ? (this.value[name] ?? undefined) : undefined
  }

  #problem(name: string, what: string): CommandProblem {
    const place = name === '' ? this.#place : `${this.#place}.${name}`
    return new UsageProblem(`${place} ${what}. The file is not an export of Segment's Public API.`)
  }
}
