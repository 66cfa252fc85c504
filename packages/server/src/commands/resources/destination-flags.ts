// The settings of a destination as flags, and the request body that they make. The service validates the values. Only what is specific to
// the command line is handled here: durations, secrets read from elsewhere, and lists that keep the entries that are not given.

import type { JsonObject } from '@switchyard/protocol'
import { COMMON_SETTINGS } from '../../destinations/settings/common-settings.ts'
import { type Argument, type Call, type Flag, UsageProblem } from '../line/command.ts'
import { bodyFrom, flagsFor } from '../line/fields.ts'
import { readEnvironment, readFileText, readObjectFile, readSecret, readText } from '../line/input.ts'
import { idOf, idsOf, resourcePath } from '../line/references.ts'
import { parseCount, parseDuration } from '../line/times.ts'
import { AUTH_FLAGS, authOf, tlsOf } from './auth-flags.ts'
import { settingsOf } from './setting-flags.ts'

const TYPES = ['identify', 'track', 'page', 'screen', 'group', 'alias', 'delete'] as const
const SECRET_PLACES = '- for stdin, @FILE or env:NAME'

export const DESTINATION_ARGUMENT: Argument = { name: 'DESTINATION', description: "The destination's id or name." }

export function destinationPath(call: Call): Promise<string> {
  return resourcePath(call, 'destination')
}

/** The settings of all kinds whose values are given as they are. */
const { historical, includeViolations } = COMMON_SETTINGS.patch.fields
const SIMPLE = { fields: { ...numbers(COMMON_SETTINGS.patch.fields), historical, includeViolations } }

function numbers({ batch, retry, maxInFlight }: typeof COMMON_SETTINGS.create.fields | typeof COMMON_SETTINGS.patch.fields) {
  return { batch, retry, maxInFlight }
}

export const DESTINATION_FLAGS: Readonly<Record<string, Flag>> = {
  source: {
    placeholder: 'SOURCE',
    description: 'A source whose messages the destination receives, by id or name. Replaces all current sources.',
    many: true,
  },
  alias: {
    placeholder: 'NAME',
    description:
      'Another name by which the integrations object of a message may refer to the destination. Replaces the current list; none empties it.',
    many: true,
  },
  header: {
    placeholder: 'NAME:VALUE',
    description: 'A header to add to every request. The value env:NAME reads it from an environment variable.',
    many: true,
  },
  secret: {
    placeholder: 'NAME=WHERE',
    description: `A secret that the templates and the mapping of the request use as {{secrets.NAME}}. WHERE says where to read it: ${SECRET_PLACES}; none removes it. Other secrets are kept.`,
    many: true,
  },
  'shared-secret': {
    placeholder: 'WHERE',
    description: `Where to read the secret for X-Signature: ${SECRET_PLACES}. Use none to remove the secret.`,
  },
  'signing-secret': {
    placeholder: 'WHERE',
    description: `Where to read a secret for Standard Webhooks signatures (whsec_…): ${SECRET_PLACES}. Use none to remove all.`,
    many: true,
  },
  set: {
    placeholder: 'NAME=VALUE',
    description:
      'A setting of an integration; oauth.NAME sets a part of the setting oauth. The value gets the type that `switchyard catalog show` lists; write a list or an object as JSON. env:NAME reads the value from an environment variable, and - from stdin; use one of these for secrets. none removes the setting.',
    many: true,
  },
  'settings-file': {
    placeholder: 'FILE',
    description: 'A JSON or YAML file with an object of settings of an integration. - reads stdin. --set takes precedence.',
  },
  'subscriptions-file': {
    placeholder: 'FILE',
    description:
      'The subscriptions of an integration: a JSON or YAML file with the key `subscriptions`, a list of objects with name, action, subscribe, mapping, syncMode and enabled. - reads stdin. Replaces all current subscriptions.',
  },
  ...flagsFor(SIMPLE),
  timeout: { placeholder: 'DURATION', description: 'The timeout of one attempt, at most 5s; for an integration at most 30s.' },
  'retry-status': {
    placeholder: 'STATUS',
    description: 'An HTTP status to retry in addition to the usual ones. Replaces the current list; none empties it.',
    many: true,
  },
  'fail-status': {
    placeholder: 'STATUS',
    description: 'An HTTP status not to retry, although it is by default. Replaces the current list; none empties it.',
    many: true,
  },
  'dead-letter': {
    placeholder: 'DESTINATION',
    description:
      'The dead-letter destination, by id or name: it gets the messages whose delivery to this destination fails or expires. Use none to remove it.',
  },
  'allow-type': { placeholder: 'TYPE', description: 'Send only messages of this type.', many: true, values: TYPES },
  'deny-type': { placeholder: 'TYPE', description: 'Do not send messages of this type.', many: true, values: TYPES },
  'allow-event': { placeholder: 'EVENT', description: 'Among track messages, send only those with this event name.', many: true },
  'deny-event': { placeholder: 'EVENT', description: 'Do not send track messages with this event name.', many: true },
  'conditional-filters-file': {
    placeholder: 'FILE',
    description:
      'Filters for messages that match an expression: a JSON or YAML file with the key `conditionalFilters`, a list of objects with name, when, action (drop, sample, drop_properties or allow_properties), share, path, fields and enabled. - reads stdin. Replaces all current ones; none removes them.',
  },
  subscribe: {
    placeholder: 'EXPRESSION',
    description: 'Send only messages that match this expression. - reads it from stdin and @FILE from a file. Use none to remove it.',
  },
  'request-file': {
    placeholder: 'FILE',
    description:
      'How a message becomes an HTTP request: a JSON or YAML file with method, path, headers, body and format. - reads stdin. Use none for the classic webhook.',
  },
  'transformation-file': {
    placeholder: 'FILE',
    description:
      'The transformation: a JavaScript file whose function changes or drops each message before it is sent. - reads stdin. Use none to remove it.',
  },
  'transformation-timeout': {
    placeholder: 'DURATION',
    description: 'The CPU time that the transformation may use for one message: at most 1s, by default 50ms.',
  },
  'transformation-memory': {
    placeholder: 'MEGABYTES',
    description: 'The memory that the transformation may use for one message: 1 to 64, by default 8.',
  },
  ...AUTH_FLAGS,
}

/** The same, with the defaults of a new destination. */
export const NEW_DESTINATION_FLAGS: Readonly<Record<string, Flag>> = {
  ...DESTINATION_FLAGS,
  ...flagsFor({ fields: numbers(COMMON_SETTINGS.create.fields) }),
}

/** Builds the request body from the flags. `before` is the current destination, whose other headers and lists are kept. */
export async function destinationBody(call: Call, before?: JsonObject): Promise<Record<string, unknown>> {
  const { api, flags } = call
  if (
    Object.keys(DESTINATION_FLAGS)
      .flatMap(flags)
      .filter((where) => where === '-' || where.endsWith('=-')).length > 1
  )
    throw new UsageProblem('Only one flag can read stdin (-).')
  const body = { ...bodyFrom(call, SIMPLE), ...numbered(call, 'timeoutMs', 'timeout', parseDuration) }
  if (flags('source').length > 0) body['sourceIds'] = await idsOf(api, 'source', flags('source'))
  if (flags('alias').length > 0) body['aliases'] = flags('alias').filter((name) => name !== 'none')
  const subscribe = call.flag('subscribe')
  if (subscribe !== undefined) body['subscribe'] = subscribe === 'none' ? null : (await readText('--subscribe', subscribe)).trim()
  const deadLetter = call.flag('dead-letter')
  if (deadLetter !== undefined) body['deadLetter'] = deadLetter === 'none' ? null : await idOf(api, 'destination', deadLetter)
  const statuses = { ...statusesOf(call, 'retryStatuses', 'retry-status'), ...statusesOf(call, 'failStatuses', 'fail-status') }
  if (Object.keys(statuses).length > 0) body['retry'] = { ...(body['retry'] as object | undefined), ...statuses }
  Object.assign(body, headersOf(call, before), filterOf(call, before), await secretsOf(call))
  Object.assign(body, await settingsOf(call, before), await listOf(call, 'subscriptions-file', 'subscriptions'))
  Object.assign(body, await listOf(call, 'conditional-filters-file', 'conditionalFilters'))
  Object.assign(body, await requestOf(call), await transformationOf(call, before), await authOf(call, before), tlsOf(call, before))
  return body
}

/** A file with a list under the name of the setting. */
async function listOf({ flag }: Call, flagName: string, setting: string): Promise<Record<string, unknown>> {
  const path = flag(flagName)
  if (path === undefined) return {}
  if (path === 'none') return { [setting]: [] }
  const list = (await readObjectFile(`--${flagName}`, path))[setting]
  if (!Array.isArray(list)) throw new UsageProblem(`--${flagName}: ${path} must have the key ${setting}, with a list.`)
  return { [setting]: list }
}

function statusesOf({ flags }: Call, name: string, flag: string): Record<string, number[]> {
  const given = flags(flag)
  return given.length === 0 ? {} : { [name]: given.filter((text) => text !== 'none').map((text) => parseCount(flag, text)) }
}

async function requestOf({ flag }: Call): Promise<{ request?: JsonObject | null }> {
  const path = flag('request-file')
  if (path === undefined) return {}
  return { request: path === 'none' ? null : await readObjectFile('--request-file', path) }
}

/** The service replaces `transformation` as a whole, so what is not given is taken from the current one. */
async function transformationOf(call: Call, before: JsonObject | undefined): Promise<{ transformation?: JsonObject | null }> {
  const path = call.flag('transformation-file')
  const limits = {
    ...numbered(call, 'timeoutMs', 'transformation-timeout', parseDuration),
    ...numbered(call, 'memoryMb', 'transformation-memory', parseCount),
  }
  if (path === undefined && Object.keys(limits).length === 0) return {}
  if (path === 'none') return { transformation: null }
  const old = before?.['transformation'] as JsonObject | null | undefined
  if (path === undefined && old == null)
    throw new UsageProblem('The destination has no transformation yet: give --transformation-file as well.')
  const code = path === undefined ? {} : { code: await readFileText('--transformation-file', path) }
  return { transformation: { ...old, ...code, ...limits } }
}

function numbered(call: Call, name: string, flag: string, read: (flag: string, text: string) => number): Record<string, number> {
  const text = call.flag(flag)
  return text === undefined ? {} : { [name]: read(flag, text) }
}

function headersOf({ flags, env }: Call, before: JsonObject | undefined): { headers?: Record<string, string> } {
  const [given, removed] = [flags('header'), flags('remove-header').map((name) => name.toLowerCase())]
  if (given.length === 0 && removed.length === 0) return {}
  const named = given.map((text): [string, string] => {
    const [, name, value = ''] = /^([^:]+):(.*)$/s.exec(text) ?? []
    if (name === undefined) throw new UsageProblem('--header must have the form NAME:VALUE, such as X-Team:data.')
    return [name.trim(), readEnvironment(`--header ${name}`, value.trim(), env)]
  })
  const replaced = new Set([...removed, ...named.map(([name]) => name.toLowerCase())])
  const kept = Object.entries((before?.['headers'] ?? {}) as Record<string, string>).filter(([name]) => !replaced.has(name.toLowerCase()))
  return { headers: Object.fromEntries([...kept, ...named]) }
}

interface Names {
  allow: readonly string[]
  deny: readonly string[]
}

function filterOf({ flags, has }: Call, before: JsonObject | undefined): { filter?: { types: Names; events: Names } } {
  const names = ['allow-type', 'deny-type', 'allow-event', 'deny-event']
  const cleared = has('no-filter')
  if (!cleared && !names.some(has)) return {}
  const old = (cleared ? undefined : before?.['filter']) as { types?: Names; events?: Names } | undefined
  const list = (flag: string, fallback: readonly string[] = []): readonly string[] => (has(flag) ? flags(flag) : fallback)
  return {
    filter: {
      types: { allow: list('allow-type', old?.types?.allow), deny: list('deny-type', old?.types?.deny) },
      events: { allow: list('allow-event', old?.events?.allow), deny: list('deny-event', old?.events?.deny) },
    },
  }
}

interface Secrets {
  sharedSecret?: string | null
  signingSecrets?: string[]
  secrets?: Record<string, string | null>
}

async function secretsOf({ flag, flags, env }: Call): Promise<Secrets> {
  const shared = flag('shared-secret')
  const signing = flags('signing-secret')
  const secrets: Secrets = {}
  if (shared !== undefined) secrets.sharedSecret = shared === 'none' ? null : await readSecret('--shared-secret', shared, env)
  if (signing.length > 0) {
    secrets.signingSecrets = []
    for (const where of signing) if (where !== 'none') secrets.signingSecrets.push(await readSecret('--signing-secret', where, env))
  }
  for (const text of flags('secret')) {
    const [, name, where] = /^([^=]+)=(.*)$/s.exec(text) ?? []
    if (name === undefined || where === undefined)
      throw new UsageProblem('--secret must have the form NAME=WHERE, such as token=env:SLACK_TOKEN.')
    secrets.secrets ??= {}
    secrets.secrets[name] = where === 'none' ? null : await readSecret(`--secret ${name}`, where, env)
  }
  return secrets
}
