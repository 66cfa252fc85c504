// The flags with which the service authenticates itself to a receiver: `auth` and `tls`. Secrets are read from stdin, a file or the
// environment. The service keeps a stored secret that is not given again, as long as it is used for the same account.

import type { JsonObject } from '@switchyard/protocol'
import { type Call, type Flag, UsageProblem } from '../line/command.ts'
import { readEnvironment, readNamedFile, readSecret } from '../line/input.ts'

const TYPES = ['basic', 'bearer', 'oauth2', 'none'] as const

export const AUTH_FLAGS: Readonly<Record<string, Flag>> = {
  auth: {
    placeholder: 'TYPE',
    description: 'How to authenticate to the receiver. Use none to remove the stored credentials.',
    values: TYPES,
  },
  'auth-username': { placeholder: 'NAME', description: 'For basic: the user name. env:NAME reads it from an environment variable.' },
  'auth-secret': {
    placeholder: 'WHERE',
    description: 'Where to read the password, the token or the client secret: - for stdin, @FILE or env:NAME.',
  },
  'auth-token-url': { placeholder: 'URL', description: 'For oauth2: the token endpoint.' },
  'auth-client-id': { placeholder: 'ID', description: 'For oauth2: the client id.' },
  'auth-scope': {
    placeholder: 'SCOPES',
    description: 'For oauth2: the scopes to request, separated by spaces. Use none to request no scopes.',
  },
  'auth-audience': { placeholder: 'AUDIENCE', description: 'For oauth2: the audience to request. Use none to request no audience.' },
  'auth-credentials': {
    placeholder: 'PLACE',
    description: 'For oauth2: how the client id and secret are sent to the token endpoint, with HTTP Basic or in the body.',
    values: ['basic', 'body'],
  },
  'tls-certificate': {
    placeholder: 'FILE',
    description: 'The client certificate in PEM format (mutual TLS). Use none to remove it and its key.',
  },
  'tls-key': { placeholder: 'FILE', description: 'The private key of the client certificate in PEM format, not encrypted.' },
  'tls-ca': {
    placeholder: 'FILE',
    description: 'Certificate authorities in PEM format, trusted instead of the usual ones. Use none to remove them.',
  },
}

/** The fields of each type, with their flags. */
const FIELDS: Readonly<Record<string, readonly (readonly [field: string, flag: string])[]>> = {
  basic: [['username', 'auth-username']],
  bearer: [],
  oauth2: [
    ['tokenUrl', 'auth-token-url'],
    ['clientId', 'auth-client-id'],
    ['scope', 'auth-scope'],
    ['audience', 'auth-audience'],
    ['credentials', 'auth-credentials'],
  ],
}
const SECRETS: Readonly<Record<string, string>> = { basic: 'password', bearer: 'token', oauth2: 'clientSecret' }

/** Fields that are not given are taken from `before`, the current destination, if the type stays the same. */
export async function authOf(call: Call, before: JsonObject | undefined): Promise<{ auth?: JsonObject | null }> {
  const given = Object.keys(AUTH_FLAGS).filter((flag) => flag.startsWith('auth') && call.has(flag))
  if (given.length === 0) return {}
  const old = before?.['auth'] as JsonObject | null | undefined
  const type = call.flag('auth') ?? (old?.['type'] as string | undefined)
  if (type === undefined) throw new UsageProblem(`--${given[0]} needs --auth with a type: basic, bearer or oauth2.`)
  const fields = FIELDS[type] ?? []
  const unused = given.find(
    (flag) => flag !== 'auth' && !(type !== 'none' && flag === 'auth-secret') && !fields.some(([, own]) => own === flag),
  )
  if (unused !== undefined) throw new UsageProblem(`--${unused} cannot be used with --auth ${type}.`)
  if (type === 'none') return { auth: null }
  const auth: Record<string, unknown> = { type }
  for (const [field, flag] of fields) {
    const text = call.flag(flag)
    const kept = old?.['type'] === type ? old[field] : undefined
    const value = text === undefined ? kept : text === 'none' ? null : readEnvironment(`--${flag}`, text, call.env)
    if (value !== undefined) auth[field] = value
  }
  const where = call.flag('auth-secret')
  if (where !== undefined) auth[SECRETS[type] as string] = await readSecret('--auth-secret', where, call.env)
  return { auth }
}

export function tlsOf({ flag }: Call, before: JsonObject | undefined): { tls?: JsonObject | null } {
  const [certificate, key, ca] = [flag('tls-certificate'), flag('tls-key'), flag('tls-ca')]
  if (certificate === undefined && key === undefined && ca === undefined) return {}
  const old = before?.['tls'] as JsonObject | null | undefined
  const read = (name: string, path: string | undefined, kept: unknown): unknown => {
    if (path === undefined) return kept ?? null
    return path === 'none' ? null : readNamedFile(`--${name}`, path)
  }
  const tls: Record<string, unknown> = {
    certificate: read('tls-certificate', certificate, old?.['certificate']),
    ca: read('tls-ca', ca, old?.['ca']),
  }
  if (tls['certificate'] === null && tls['ca'] === null && key === undefined) return { tls: null }
  if (key !== undefined) tls['privateKey'] = read('tls-key', key, null)
  return { tls }
}
