// A destination's settings while they are edited: the values in the form, the errors by field, and the request body for the API. Only
// changed fields are sent, so that fields that somebody else changed in the meantime are kept. Pure.

import type { Operations, Schemas } from '../../api/types.ts'
import { parseDuration, writeDuration } from './durations.ts'
import {
  type AuthDraft,
  authBodyOf,
  authDraftOf,
  authProblems,
  type TlsDraft,
  tlsBodyOf,
  tlsDraftOf,
  tlsProblems,
  withoutStored,
} from './form/auth-draft.ts'
import type { RetryTimes } from './form/retry-schedule.ts'
import { AGAIN, isMovedFrom, type NamedSecret, originsOf, secretProblems, secretsBodyOf, secretsDraftOf } from './form/secrets-draft.ts'
import type { ObjectSchema } from './integration/definition.ts'
import {
  type SettingsDraft,
  settingsChanges,
  settingsDraftOf,
  settingsProblems,
  settingsOf as writtenSettings,
} from './integration/settings-draft.ts'
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
  statusesProblem,
  urlProblems,
} from './validation.ts'

export type Destination = Schemas['Destination']
export type Webhook = Extract<Destination, { type: 'webhook' }>
export type Integration = Extract<Destination, { type: 'integration' }>
export type NewDestination = Operations['POST /api/destinations']['body']
export type DestinationChange = Operations['PATCH /api/destinations/{id}']['body']

/** What the form of an integration is made from. */
export interface IntegrationForm {
  slug: string
  schema: ObjectSchema
  /** The secrets that are stored, by key. */
  storedSecrets: readonly string[]
}

/** Secrets are write-only: a stored secret can be kept, replaced or removed, but not read. */
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
  /** Empty for none. */
  subscribe: string
  auth: AuthDraft
  tls: TlsDraft
  secrets: NamedSecret[]
  /** The servers that the stored secrets were given for; null for a new destination. */
  storedOrigins: readonly string[] | null
  /** The settings of the integration; null for a webhook. */
  settings: SettingsDraft | null
}

/** The sources of a new destination: the only one if there is only one besides the built-in source, otherwise none. */
export function onlySource(sources: readonly { id: string; builtIn: boolean }[]): string[] {
  const ids = sources.filter(({ builtIn }) => !builtIn).map(({ id }) => id)
  return ids.length === 1 ? ids : []
}

/** An integration has no URLs, and more time for its requests. */
export function newDraft(form: IntegrationForm | null = null): Draft {
  return {
    name: '',
    enabled: true,
    paused: false,
    sourceIds: [],
    urls: form === null ? [''] : [],
    headers: [],
    sharedSecret: { kind: 'keep' },
    signingSecrets: { kind: 'keep' },
    batchSize: 1,
    batchBytes: 512_000,
    linger: '1 s',
    timeout: form === null ? '5 s' : '30 s',
    retryWindow: '4 h',
    retryInitial: '5 s',
    retryMax: '10 min',
    retryFactor: 2,
    retryStatuses: [],
    failStatuses: [],
    deadLetter: null,
    maxInFlight: 50,
    historical: true,
    includeViolations: false,
    typesAllow: [],
    typesDeny: [],
    eventsAllow: [],
    eventsDeny: [],
    subscribe: '',
    auth: authDraftOf(null),
    tls: tlsDraftOf(null),
    secrets: [],
    storedOrigins: null,
    settings: form === null ? null : settingsDraftOf(form.schema, null),
  }
}

export function draftOf(destination: Destination, form: IntegrationForm | null = null): Draft {
  const { name, enabled, paused, sourceIds, batch, timeoutMs, retry, deadLetter, maxInFlight, filter, subscribe } = destination
  return {
    ...newDraft(),
    name,
    enabled,
    paused,
    sourceIds: [...sourceIds],
    urls: [],
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
    deadLetter,
    maxInFlight,
    historical: destination.historical,
    includeViolations: destination.includeViolations,
    typesAllow: [...(filter.types?.allow ?? [])],
    typesDeny: [...(filter.types?.deny ?? [])],
    eventsAllow: [...(filter.events?.allow ?? [])],
    eventsDeny: [...(filter.events?.deny ?? [])],
    subscribe: subscribe ?? '',
    ...(destination.type === 'webhook' ? webhookDraftOf(destination) : {}),
    ...(destination.type === 'integration' && form !== null ? { settings: settingsDraftOf(form.schema, destination.settings) } : {}),
  }
}

function webhookDraftOf({ urls, headers, auth, tls, secrets }: Webhook): Partial<Draft> {
  return {
    urls: [...urls],
    headers: Object.entries(headers).map(([header, value]) => ({ name: header, value })),
    auth: authDraftOf(auth),
    tls: tlsDraftOf(tls),
    secrets: secretsDraftOf(secrets),
    storedOrigins: originsOf(urls),
  }
}

/** Whether the URLs lead to a server that stored secrets were not given for. The service wants them again then. */
export function isMoved({ storedOrigins, urls }: Draft): boolean {
  return isMovedFrom(storedOrigins, urls)
}

function authOf(draft: Draft): AuthDraft {
  return isMoved(draft) ? withoutStored(draft.auth) : draft.auth
}

/** Keyed by the API's name of the field, such as `urls[0]` and `batch.size`; for headers `headers[0].name` and `headers[0].value`. */
export type Problems = ReadonlyMap<string, string>

export function problemsOf(draft: Draft, form: IntegrationForm | null = null): Problems {
  const problems = new Map<string, string>()
  const note = (field: string, problem: string | null): void => {
    if (problem !== null) problems.set(field, problem)
  }
  note('name', nameProblem(draft.name))
  if (draft.settings === null || form === null) for (const [field, problem] of webhookProblems(draft)) note(field, problem)
  else for (const [field, problem] of settingsProblems(form.schema, draft.settings, form.storedSecrets)) note(field, problem)
  note('batch.size', numberProblem(draft.batchSize, LIMITS.batchSize))
  note('batch.bytes', numberProblem(draft.batchBytes, LIMITS.batchBytes))
  note('batch.lingerMs', durationProblem(draft.linger, LIMITS.lingerMs))
  note('timeoutMs', durationProblem(draft.timeout, form === null ? LIMITS.timeoutMs : LIMITS.integrationTimeoutMs))
  note('retry.windowMs', durationProblem(draft.retryWindow, LIMITS.retryWindowMs))
  note('retry.initialMs', durationProblem(draft.retryInitial, LIMITS.retryInitialMs))
  note('retry.maxMs', durationProblem(draft.retryMax, LIMITS.retryMaxMs) ?? longestWaitProblem(draft))
  note('retry.factor', numberProblem(draft.retryFactor, LIMITS.retryFactor, { isWhole: false }))
  note('retry.retryStatuses', statusesProblem(draft.retryStatuses))
  note('retry.failStatuses', statusesProblem(draft.failStatuses, draft.retryStatuses))
  note('maxInFlight', numberProblem(draft.maxInFlight, LIMITS.maxInFlight))
  note('filter.events.allow', eventsProblem(draft.eventsAllow))
  note('filter.events.deny', eventsProblem(draft.eventsDeny))
  return problems
}

function webhookProblems(draft: Draft): Map<string, string> {
  const problems = new Map<string, string>()
  const note = (field: string, problem: string | null): void => {
    if (problem !== null) problems.set(field, problem)
  }
  for (const [field, problem] of [...authProblems(authOf(draft)), ...tlsProblems(draft.tls)]) note(field, problem)
  const { type, stored, secret } = draft.auth
  if (isMoved(draft) && type === 'basic' && stored.hasPassword && secret === '') note('auth.password', AGAIN)
  for (const [at, { name, value }] of secretProblems(draft.secrets, isMoved(draft)).entries()) {
    note(`secrets[${at}].name`, name)
    note(`secrets[${at}].value`, value)
  }
  if (draft.urls.length === 0 || draft.urls.length > LIMITS.urls) note('urls', `Enter 1 to ${LIMITS.urls} URLs.`)
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
  return problems
}

export function durationProblem(text: string, { min, max }: { min: number; max: number }): string | null {
  const ms = parseDuration(text)
  if (ms === null) return `Enter a duration such as ${writeDuration(max)}: a number followed by ms, s, min, h or d.`
  return ms < min || ms > max ? `Must be from ${writeDuration(min)} to ${writeDuration(max)}.` : null
}

function longestWaitProblem({ retryInitial, retryMax }: Draft): string | null {
  return (parseDuration(retryMax) ?? 0) < (parseDuration(retryInitial) ?? 0) ? 'Must be at least as long as the first wait.' : null
}

/** The retry policy for the picture; null if it has an error. */
export function retryTimesOf(draft: Draft): RetryTimes | null {
  const problems = problemsOf(draft)
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

/** The body that creates the destination. The draft must have no problems. */
export function createBodyOf(draft: Draft, form: IntegrationForm | null = null): NewDestination {
  const { sharedSecret, signingSecrets } = draft
  const { subscribe, deadLetter, ...shared } = settingsOf(draft)
  const optional = {
    ...(subscribe === null ? {} : { subscribe }),
    ...(deadLetter === null ? {} : { deadLetter }),
  }
  if (draft.settings !== null && form !== null)
    return { type: 'integration', integration: form.slug, ...shared, ...optional, settings: writtenSettings(form.schema, draft.settings) }
  const { auth, tls, ...webhook } = webhookSettingsOf(draft)
  const secrets = secretsBodyOf([], draft.secrets)
  return {
    ...shared,
    ...webhook,
    // A destination that uses none of these is the classic webhook, and says nothing about them.
    ...optional,
    ...(auth === null ? {} : { auth }),
    ...(tls === null ? {} : { tls }),
    ...(Object.keys(secrets).length === 0 ? {} : { secrets }),
    ...(sharedSecret.kind === 'set' ? { sharedSecret: sharedSecret.values[0] ?? null } : {}),
    ...(signingSecrets.kind === 'set' ? { signingSecrets: signingSecrets.values } : {}),
  }
}

/** The fields that differ from the saved ones; null if none do. The draft must have no problems. */
export function patchBodyOf(saved: Destination, draft: Draft, form: IntegrationForm | null = null): DestinationChange | null {
  const base = draftOf(saved, form)
  const change: DestinationChange = changedFields(settingsOf(base), settingsOf(draft))
  if (draft.settings !== null && base.settings !== null && form !== null) {
    const settings = settingsChanges(form.schema, base.settings, draft.settings)
    if (settings !== null) change.settings = settings
    return Object.keys(change).length === 0 ? null : change
  }
  Object.assign(change, changedFields(webhookSettingsOf(base), webhookSettingsOf(draft)))
  const secrets = secretsBodyOf(base.secrets, draft.secrets)
  if (Object.keys(secrets).length > 0) change.secrets = secrets
  if (isMoved(draft)) Object.assign(change, sentAgain(saved as Webhook, draft))
  if (draft.sharedSecret.kind !== 'keep')
    change.sharedSecret = draft.sharedSecret.kind === 'set' ? (draft.sharedSecret.values[0] ?? null) : null
  if (draft.signingSecrets.kind !== 'keep') change.signingSecrets = draft.signingSecrets.kind === 'set' ? draft.signingSecrets.values : []
  return Object.keys(change).length === 0 ? null : change
}

/** What the service wants again for another server. Header values and the request are shown in the dashboard, so they need not be typed again. */
function sentAgain({ request }: Webhook, draft: Draft): DestinationChange {
  const { headers, auth } = webhookSettingsOf(draft)
  return {
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    ...(auth === null ? {} : { auth }),
    ...(request === null ? {} : { request }),
  }
}

function changedFields<T extends object>(before: T, after: T): Partial<T> {
  const changed = (Object.keys(after) as (keyof T)[]).filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]))
  return Object.fromEntries(changed.map((field) => [field, after[field]])) as Partial<T>
}

/** What all destinations have. */
function settingsOf(draft: Draft) {
  return {
    name: draft.name,
    enabled: draft.enabled,
    paused: draft.paused,
    sourceIds: draft.sourceIds,
    batch: { size: draft.batchSize ?? 1, bytes: draft.batchBytes ?? 1, lingerMs: parseDuration(draft.linger) ?? 0 },
    timeoutMs: parseDuration(draft.timeout) ?? 0,
    retry: retryOf(draft),
    deadLetter: draft.deadLetter,
    maxInFlight: draft.maxInFlight ?? 1,
    historical: draft.historical,
    includeViolations: draft.includeViolations,
    filter: {
      types: { allow: draft.typesAllow, deny: draft.typesDeny },
      events: { allow: draft.eventsAllow, deny: draft.eventsDeny },
    },
    subscribe: draft.subscribe.trim() === '' ? null : draft.subscribe.trim(),
  }
}

function webhookSettingsOf(draft: Draft) {
  return {
    urls: draft.urls,
    headers: Object.fromEntries(draft.headers.map(({ name, value }) => [name, value])),
    auth: authBodyOf(authOf(draft)),
    tls: tlsBodyOf(draft.tls),
  }
}

/** Whether the draft differs from the saved one, valid or not. */
export function isChanged(saved: Draft, draft: Draft): boolean {
  return JSON.stringify(saved) !== JSON.stringify(draft)
}

/** The form field (a key of `Problems`) at which to show an error of the API; null if no field shows it. */
export function formFieldOf(field: string | null, draft: Draft): string | null {
  if (field === null) return null
  if (field.startsWith('headers.')) {
    const at = draft.headers.findIndex(({ name }) => name === field.slice('headers.'.length))
    return at === -1 ? 'headers' : `headers[${at}].value`
  }
  if (field.startsWith('secrets.')) {
    const at = draft.secrets.findIndex(({ name }) => name === field.slice('secrets.'.length))
    return at === -1 ? 'secrets' : `secrets[${at}].value`
  }
  if (field.startsWith('sourceIds')) return 'sourceIds'
  if (field.startsWith('settings.')) return field
  const filter = /^filter\.(types|events)\.(allow|deny)/.exec(field)
  if (filter !== null) return filter[0]
  if (/^(urls|signingSecrets)\[\d+\]$/.test(field)) return field
  if (field === 'retryWindowMs') return 'retry.windowMs'
  const statuses = /^retry\.(retry|fail)Statuses/.exec(field)
  if (statuses !== null) return statuses[0]
  return FIELDS.has(field) ? field : null
}

/** The API's error message without the field name at its start, to be shown at the field. */
export function messageAtField(field: string | null, message: string): string {
  const rest = field !== null && message.startsWith(`${field} `) ? message.slice(field.length + 1) : message
  return rest.charAt(0).toUpperCase() + rest.slice(1)
}

const FIELDS = new Set([
  'name',
  'urls',
  'headers',
  'secrets',
  'sharedSecret',
  'signingSecrets',
  'batch.size',
  'batch.bytes',
  'batch.lingerMs',
  'timeoutMs',
  'retry.windowMs',
  'retry.initialMs',
  'retry.maxMs',
  'retry.factor',
  'deadLetter',
  'maxInFlight',
  'historical',
  'includeViolations',
  'subscribe',
  'auth',
  'auth.username',
  'auth.password',
  'auth.token',
  'auth.tokenUrl',
  'auth.clientId',
  'auth.clientSecret',
  'auth.scope',
  'auth.audience',
  'tls',
  'tls.certificate',
  'tls.privateKey',
  'tls.ca',
])

/** `whsec_` followed by the bytes in base64. */
export function signingSecretOf(bytes: Uint8Array): string {
  return `whsec_${btoa(String.fromCharCode(...bytes))}`
}

export function findLast<T>(list: readonly T[], matches: (value: T) => boolean): T | undefined {
  return list.reduce<T | undefined>((found, value) => (matches(value) ? value : found), undefined)
}

export function replaceAt<T>(list: readonly T[], at: number, value: T): T[] {
  return list.map((before, index) => (index === at ? value : before))
}
