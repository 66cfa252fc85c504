// The settings that every destination has, while they are edited: the values in the form, the errors by field, and the request body for the API.
// A kind adds its own settings (kinds/*/form). Only changed fields are sent, so that fields that somebody else changed in the meantime are
// kept. Pure.

import { FIELDS } from '../../api/rules.ts'
import type { Operations } from '../../api/types.ts'
import { capitalized } from '../../text/format.ts'
import type { Destination } from '../kind.ts'
import { parseDuration, writeDuration } from './durations.ts'
import { type OrderDraft, orderDraftOf, orderOf, orderProblems } from './order-draft.ts'
import type { RetryTimes } from './retry-schedule.ts'
import {
  aliasesProblem,
  durationProblem,
  eventsProblem,
  listProblem,
  type MessageType,
  nameProblem,
  numberProblem,
  type Problem,
  type Range,
  statusesProblem,
} from './validation.ts'

export type NewDestination = Operations['POST /api/destinations']['body']
export type DestinationChange = Operations['PATCH /api/destinations/{id}']['body']

export interface Draft extends OrderDraft {
  name: string
  aliases: string[]
  enabled: boolean
  paused: boolean
  sourceIds: string[]
  batchSize: number | null
  batchBytes: number | null
  /** Durations are edited as text: 4 h. */
  linger: string
  timeout: string
  retryWindow: string
  retryInitial: string
  retryMax: string
  retryFactor: number | null
  /** As typed. */
  retryStatuses: string[]
  failStatuses: string[]
  deadLetter: string | null
  maxInFlight: number | null
  historical: boolean
  includeViolations: boolean
  typesAllow: MessageType[]
  typesDeny: MessageType[]
  eventsAllow: string[]
  eventsDeny: string[]
  /** As JSON; empty for none. */
  conditionalFilters: string
  /** Empty for none. */
  subscribe: string
}

/** The fields that are numbers or durations: their names in the API. */
const NUMBERS = { batchSize: 'batch.size', batchBytes: 'batch.bytes', maxInFlight: 'maxInFlight', retryFactor: 'retry.factor' } as const
const DURATIONS = {
  linger: 'batch.lingerMs',
  timeout: 'timeoutMs',
  retryWindow: 'retry.windowMs',
  retryInitial: 'retry.initialMs',
  retryMax: 'retry.maxMs',
} as const

/** The sources of a new destination: the only one if there is only one besides the built-in source, otherwise none. */
export function onlySource(sources: readonly { id: string; builtIn: boolean }[]): string[] {
  const ids = sources.filter(({ builtIn }) => !builtIn).map(({ id }) => id)
  return ids.length === 1 ? ids : []
}

/** The settings that the form edits as the API has them. */
const AS_THEY_ARE = ['name', 'aliases', 'enabled', 'paused', 'sourceIds', 'deadLetter', 'historical', 'includeViolations'] as const
type AsTheyAre = (typeof AS_THEY_ARE)[number]

function asTheyAre<T extends Pick<Draft, AsTheyAre>>(from: T): Pick<T, AsTheyAre> {
  return Object.fromEntries(AS_THEY_ARE.map((name) => [name, from[name]])) as Pick<T, AsTheyAre>
}

type Settings = Pick<
  Destination,
  AsTheyAre | 'batch' | 'timeoutMs' | 'retry' | 'maxInFlight' | 'order' | 'filter' | 'conditionalFilters' | 'subscribe'
>

/** With the defaults of the service. */
export function newDraft(timeoutMs: number): Draft {
  return draftOf({
    name: '',
    aliases: [],
    enabled: FIELDS.enabled.default,
    paused: FIELDS.paused.default,
    sourceIds: [],
    batch: { size: FIELDS['batch.size'].default, bytes: FIELDS['batch.bytes'].default, lingerMs: FIELDS['batch.lingerMs'].default },
    timeoutMs,
    retry: {
      windowMs: FIELDS['retry.windowMs'].default,
      initialMs: FIELDS['retry.initialMs'].default,
      maxMs: FIELDS['retry.maxMs'].default,
      factor: FIELDS['retry.factor'].default,
      retryStatuses: [],
      failStatuses: [],
    },
    deadLetter: null,
    maxInFlight: FIELDS.maxInFlight.default,
    order: FIELDS.order.default,
    historical: FIELDS.historical.default,
    includeViolations: FIELDS.includeViolations.default,
    filter: {},
    conditionalFilters: [],
    subscribe: null,
  })
}

export function draftOf(settings: Settings): Draft {
  const { batch, timeoutMs, retry, maxInFlight, order, filter, conditionalFilters, subscribe } = settings
  return {
    ...asTheyAre(settings),
    ...orderDraftOf(order),
    batchSize: batch.size,
    batchBytes: batch.bytes,
    linger: writeDuration(batch.lingerMs),
    timeout: writeDuration(timeoutMs),
    retryWindow: writeDuration(retry.windowMs),
    retryInitial: writeDuration(retry.initialMs),
    retryMax: writeDuration(retry.maxMs),
    retryFactor: retry.factor,
    retryStatuses: retry.retryStatuses.map(String),
    failStatuses: retry.failStatuses.map(String),
    maxInFlight,
    typesAllow: [...(filter.types?.allow ?? [])],
    typesDeny: [...(filter.types?.deny ?? [])],
    eventsAllow: [...(filter.events?.allow ?? [])],
    eventsDeny: [...(filter.events?.deny ?? [])],
    conditionalFilters: conditionalFilters.length === 0 ? '' : JSON.stringify(conditionalFilters, null, 2),
    subscribe: subscribe ?? '',
  }
}

/** Keyed by the API's name of the field, such as `urls[0]` and `batch.size`; for headers `headers[0].name` and `headers[0].value`. */
export type Problems = ReadonlyMap<string, string>
export type Noted = [field: string, problem: Problem]

export function problemsIn(noted: readonly Noted[]): Map<string, string> {
  return new Map(noted.flatMap(([field, problem]) => (problem === null ? [] : [[field, problem]])))
}

/** `own`: the problems of the settings of the kind, which come after the name. */
export function problemsOf(draft: Draft, own: readonly Noted[], timeoutMs: Range): Problems {
  const numbers = (Object.keys(NUMBERS) as (keyof typeof NUMBERS)[]).map((key): Noted => {
    const field = NUMBERS[key]
    return [field, numberProblem(draft[key], FIELDS[field], { isWhole: key !== 'retryFactor' })]
  })
  const durations = (Object.keys(DURATIONS) as (keyof typeof DURATIONS)[]).map((key): Noted => {
    const field = DURATIONS[key]
    return [field, durationProblem(draft[key], field === 'timeoutMs' ? timeoutMs : FIELDS[field])]
  })
  const problems = problemsIn([
    ['name', nameProblem(draft.name)],
    ['aliases', aliasesProblem(draft.aliases)],
    ...own,
    ...numbers,
    ...durations,
    ...orderProblems(draft),
    ['retry.retryStatuses', statusesProblem(draft.retryStatuses)],
    ['retry.failStatuses', statusesProblem(draft.failStatuses, draft.retryStatuses)],
    ['filter.events.allow', eventsProblem(draft.eventsAllow)],
    ['filter.events.deny', eventsProblem(draft.eventsDeny)],
    ['conditionalFilters', listProblem(draft.conditionalFilters)],
  ])
  const { initialMs, maxMs } = retryOf(draft)
  if (!problems.has('retry.maxMs') && maxMs < initialMs) problems.set('retry.maxMs', 'Must be at least as long as the first wait.')
  return problems
}

/** The retry policy for the picture; null if it has an error. */
export function retryTimesOf(draft: Draft): RetryTimes | null {
  const problems = problemsOf(draft, [], { min: 0, max: Number.POSITIVE_INFINITY })
  if (['windowMs', 'initialMs', 'maxMs', 'factor'].some((field) => problems.has(`retry.${field}`))) return null
  const { windowMs, initialMs, maxMs, factor } = retryOf(draft)
  return { windowMs, initialMs, maxMs, factor }
}

function retryOf(draft: Draft) {
  return {
    windowMs: parseDuration(draft.retryWindow) ?? 0,
    initialMs: parseDuration(draft.retryInitial) ?? 0,
    maxMs: parseDuration(draft.retryMax) ?? 0,
    factor: draft.retryFactor ?? 1,
    retryStatuses: draft.retryStatuses.map(Number),
    failStatuses: draft.failStatuses.map(Number),
  }
}

/** What the API gets. The draft must have no problems. */
export function settingsOf(draft: Draft) {
  const { typesAllow, typesDeny, eventsAllow, eventsDeny } = draft
  return {
    ...asTheyAre(draft),
    batch: { size: draft.batchSize ?? 1, bytes: draft.batchBytes ?? 1, lingerMs: parseDuration(draft.linger) ?? 0 },
    timeoutMs: parseDuration(draft.timeout) ?? 0,
    retry: retryOf(draft),
    maxInFlight: draft.maxInFlight ?? 1,
    order: orderOf(draft),
    filter: { types: { allow: typesAllow, deny: typesDeny }, events: { allow: eventsAllow, deny: eventsDeny } },
    conditionalFilters: (draft.conditionalFilters.trim() === ''
      ? []
      : JSON.parse(draft.conditionalFilters)) as Settings['conditionalFilters'],
    subscribe: draft.subscribe.trim() === '' ? null : draft.subscribe.trim(),
  }
}

/** The body that creates a destination, without the settings of its kind and without settings that are null by default. */
export function newSettingsOf(draft: Draft): NewDestination {
  const { subscribe, deadLetter, order, ...settings } = settingsOf(draft)
  return { ...settings, ...withoutNull({ subscribe, deadLetter, order }) }
}

export function withoutNull<T extends object>(fields: T): { [Name in keyof T]?: NonNullable<T[Name]> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null)) as { [Name in keyof T]?: NonNullable<T[Name]> }
}

export function changedFields<T extends object>(before: T, after: T): Partial<T> {
  const changed = (Object.keys(after) as (keyof T)[]).filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]))
  return Object.fromEntries(changed.map((field) => [field, after[field]])) as Partial<T>
}

/** Null if nothing changes. */
export function changeOf(change: DestinationChange): DestinationChange | null {
  return Object.keys(change).length === 0 ? null : change
}

/** Whether the draft differs from the saved one, valid or not. */
export function isChanged<T extends Draft>(saved: T, draft: T): boolean {
  return JSON.stringify(saved) !== JSON.stringify(draft)
}

const SHOWN_FIELDS = new Set<string>([
  ...Object.values(NUMBERS),
  ...Object.values(DURATIONS),
  'name',
  'deadLetter',
  'order',
  'order.by',
  'order.onFailure',
  'order.maxWaiting',
  'historical',
  'includeViolations',
  'subscribe',
])

/** The form field (a key of `Problems`) at which to show an error of the API; null if no field shows it. */
export function formFieldOf(field: string): string | null {
  if (field.startsWith('sourceIds')) return 'sourceIds'
  if (field.startsWith('aliases')) return 'aliases'
  if (field.startsWith('conditionalFilters')) return 'conditionalFilters'
  if (field === 'retryWindowMs') return 'retry.windowMs'
  const list = /^(filter\.(types|events)\.(allow|deny)|retry\.(retry|fail)Statuses)/.exec(field)
  if (list !== null) return list[0]
  return SHOWN_FIELDS.has(field) ? field : null
}

/** The API's error message without the field name at its start, to be shown at the field. */
export function messageAtField(field: string | null, message: string): string {
  const rest = field !== null && message.startsWith(`${field} `) ? message.slice(field.length + 1) : message
  return capitalized(rest)
}

export function replaceAt<T>(list: readonly T[], at: number, value: T): T[] {
  return list.map((before, index) => (index === at ? value : before))
}
