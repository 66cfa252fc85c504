// A destination's settings while they are edited: as the form holds them, what is wrong with them by field, and what of them is sent to
// the API when they are saved (only what was changed, so that what another changed meanwhile stays). Pure.

import type { Operations, Schemas } from '../../api/types.ts'
import { parseDuration, writeDuration } from './durations.ts'
import {
  eventsProblem,
  type HeaderDraft,
  headerProblems,
  headersProblem,
  LIMITS,
  type MessageType,
  nameProblem,
  numberProblem,
  sharedSecretProblem,
  signingSecretProblems,
  urlProblems,
} from './validation.ts'

export type Destination = Schemas['Destination']
export type NewDestination = Operations['POST /api/destinations']['body']
export type DestinationChange = Operations['PATCH /api/destinations/{id}']['body']

/** Secrets go in and never come out: what is set can be kept, replaced or removed, and not looked at. */
export type SecretChange = { kind: 'keep' } | { kind: 'remove' } | { kind: 'set'; values: string[] }

export interface Draft {
  name: string
  enabled: boolean
  paused: boolean
  sourceIds: string[]
  urls: string[]
  headers: HeaderDraft[]
  sharedSecret: SecretChange
  signingSecrets: SecretChange
  batchSize: number | null
  batchBytes: number | null
  /** Lengths of time are edited as text: 4 h. */
  linger: string
  timeout: string
  retryWindow: string
  maxInFlight: number | null
  historical: boolean
  typesAllow: MessageType[]
  typesDeny: MessageType[]
  eventsAllow: string[]
  eventsDeny: string[]
}

export function newDraft(): Draft {
  return {
    name: '',
    enabled: true,
    paused: false,
    sourceIds: [],
    urls: [''],
    headers: [],
    sharedSecret: { kind: 'keep' },
    signingSecrets: { kind: 'keep' },
    batchSize: 1,
    batchBytes: 512_000,
    linger: '1 s',
    timeout: '5 s',
    retryWindow: '4 h',
    maxInFlight: 50,
    historical: true,
    typesAllow: [],
    typesDeny: [],
    eventsAllow: [],
    eventsDeny: [],
  }
}

export function draftOf({
  name,
  enabled,
  paused,
  sourceIds,
  urls,
  headers,
  batch,
  timeoutMs,
  retryWindowMs,
  maxInFlight,
  historical,
  filter,
}: Destination): Draft {
  return {
    name,
    enabled,
    paused,
    sourceIds: [...sourceIds],
    urls: [...urls],
    headers: Object.entries(headers).map(([header, value]) => ({ name: header, value })),
    sharedSecret: { kind: 'keep' },
    signingSecrets: { kind: 'keep' },
    batchSize: batch.size,
    batchBytes: batch.bytes,
    linger: writeDuration(batch.lingerMs),
    timeout: writeDuration(timeoutMs),
    retryWindow: writeDuration(retryWindowMs),
    maxInFlight,
    historical,
    typesAllow: [...(filter.types?.allow ?? [])],
    typesDeny: [...(filter.types?.deny ?? [])],
    eventsAllow: [...(filter.events?.allow ?? [])],
    eventsDeny: [...(filter.events?.deny ?? [])],
  }
}

/** By the API's name of the field, as `urls[0]` and `batch.size`; of headers `headers[0].name` and `headers[0].value`. */
export type Problems = ReadonlyMap<string, string>

export function problemsOf(draft: Draft): Problems {
  const problems = new Map<string, string>()
  const note = (field: string, problem: string | null): void => {
    if (problem !== null) problems.set(field, problem)
  }
  note('name', nameProblem(draft.name))
  if (draft.urls.length === 0 || draft.urls.length > LIMITS.urls) note('urls', `There are 1 to ${LIMITS.urls} URLs.`)
  for (const [at, problem] of urlProblems(draft.urls).entries()) note(`urls[${at}]`, problem)
  for (const [at, { name, value }] of headerProblems(draft.headers).entries()) {
    note(`headers[${at}].name`, name)
    note(`headers[${at}].value`, value)
  }
  note('headers', headersProblem(draft.headers))
  if (draft.sharedSecret.kind === 'set') note('sharedSecret', sharedSecretProblem(draft.sharedSecret.values[0] ?? ''))
  if (draft.signingSecrets.kind === 'set') {
    for (const [at, problem] of signingSecretProblems(draft.signingSecrets.values).entries()) note(`signingSecrets[${at}]`, problem)
  }
  note('batch.size', numberProblem(draft.batchSize, LIMITS.batchSize))
  note('batch.bytes', numberProblem(draft.batchBytes, LIMITS.batchBytes))
  note('batch.lingerMs', durationProblem(draft.linger, LIMITS.lingerMs))
  note('timeoutMs', durationProblem(draft.timeout, LIMITS.timeoutMs))
  note('retryWindowMs', durationProblem(draft.retryWindow, LIMITS.retryWindowMs))
  note('maxInFlight', numberProblem(draft.maxInFlight, LIMITS.maxInFlight))
  note('filter.events.allow', eventsProblem(draft.eventsAllow))
  note('filter.events.deny', eventsProblem(draft.eventsDeny))
  return problems
}

export function durationProblem(text: string, { min, max }: { min: number; max: number }): string | null {
  const ms = parseDuration(text)
  if (ms === null) return `A length of time such as ${writeDuration(max)}: a number and ms, s, min or h.`
  return ms < min || ms > max ? `From ${writeDuration(min)} to ${writeDuration(max)}.` : null
}

/** The whole of it. Only of a draft without problems. */
export function createBodyOf(draft: Draft): NewDestination {
  const { sharedSecret, signingSecrets } = draft
  return {
    ...settingsOf(draft),
    ...(sharedSecret.kind === 'set' ? { sharedSecret: sharedSecret.values[0] ?? null } : {}),
    ...(signingSecrets.kind === 'set' ? { signingSecrets: signingSecrets.values } : {}),
  }
}

/** What differs from what is saved; null when nothing does. Only of a draft without problems. */
export function patchBodyOf(saved: Destination, draft: Draft): DestinationChange | null {
  const before = settingsOf(draftOf(saved))
  const after = settingsOf(draft)
  const changed = (Object.keys(after) as (keyof typeof after)[]).filter(
    (field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]),
  )
  const change: DestinationChange = Object.fromEntries(changed.map((field) => [field, after[field]]))
  if (draft.sharedSecret.kind !== 'keep')
    change.sharedSecret = draft.sharedSecret.kind === 'set' ? (draft.sharedSecret.values[0] ?? null) : null
  if (draft.signingSecrets.kind !== 'keep') change.signingSecrets = draft.signingSecrets.kind === 'set' ? draft.signingSecrets.values : []
  return Object.keys(change).length === 0 ? null : change
}

function settingsOf(draft: Draft) {
  return {
    name: draft.name,
    enabled: draft.enabled,
    paused: draft.paused,
    sourceIds: draft.sourceIds,
    urls: draft.urls,
    headers: Object.fromEntries(draft.headers.map(({ name, value }) => [name, value])),
    batch: { size: draft.batchSize ?? 1, bytes: draft.batchBytes ?? 1, lingerMs: parseDuration(draft.linger) ?? 0 },
    timeoutMs: parseDuration(draft.timeout) ?? 0,
    retryWindowMs: parseDuration(draft.retryWindow) ?? 0,
    maxInFlight: draft.maxInFlight ?? 1,
    historical: draft.historical,
    filter: {
      types: { allow: draft.typesAllow, deny: draft.typesDeny },
      events: { allow: draft.eventsAllow, deny: draft.eventsDeny },
    },
  }
}

/** Whether anything differs from what is saved, be it right or wrong. */
export function isChanged(saved: Draft, draft: Draft): boolean {
  return JSON.stringify(saved) !== JSON.stringify(draft)
}

/** Where in the form the API's refusal belongs: its field by the names of `Problems`; null where no field shows it. */
export function formFieldOf(field: string | null, draft: Draft): string | null {
  if (field === null) return null
  if (field.startsWith('headers.')) {
    const at = draft.headers.findIndex(({ name }) => name === field.slice('headers.'.length))
    return at === -1 ? 'headers' : `headers[${at}].value`
  }
  if (field.startsWith('sourceIds')) return 'sourceIds'
  const filter = /^filter\.(types|events)\.(allow|deny)/.exec(field)
  if (filter !== null) return filter[0]
  if (/^(urls|signingSecrets)\[\d+\]$/.test(field)) return field
  return FIELDS.has(field) ? field : null
}

/** The API's sentence as it reads at the field: without the field's name at its beginning. */
export function messageAtField(field: string | null, message: string): string {
  const rest = field !== null && message.startsWith(`${field} `) ? message.slice(field.length + 1) : message
  return rest.charAt(0).toUpperCase() + rest.slice(1)
}

const FIELDS = new Set([
  'name',
  'urls',
  'headers',
  'sharedSecret',
  'signingSecrets',
  'batch.size',
  'batch.bytes',
  'batch.lingerMs',
  'timeoutMs',
  'retryWindowMs',
  'maxInFlight',
  'historical',
])

/** `whsec_` and the base64 of 32 bytes. */
export function signingSecretOf(bytes: Uint8Array): string {
  return `whsec_${btoa(String.fromCharCode(...bytes))}`
}

/** The last that is so. */
export function findLast<T>(list: readonly T[], isSo: (value: T) => boolean): T | undefined {
  return list.reduce<T | undefined>((found, value) => (isSo(value) ? value : found), undefined)
}

export function replaceAt<T>(list: readonly T[], at: number, value: T): T[] {
  return list.map((before, index) => (index === at ? value : before))
}
