// The address of a PostgreSQL store, as libpq writes it: several hosts, which database, how to connect. The hosts are tried
// in their order until one is found that fits target_session_attrs. A password is never quoted in a problem.

import { readFileSync } from 'node:fs'

export interface PostgresAddress {
  hosts: readonly { host: string; port: number }[]
  database: string
  user: string | undefined
  password: string | undefined
  /** False: no encryption. Otherwise what node:tls is given. */
  ssl: false | { rejectUnauthorized: boolean; ca?: string }
  applicationName: string
  /** How long each host is tried; undefined: as long as is usual. */
  connectMs: number | undefined
}

export class AddressProblem extends Error {
  override name = 'AddressProblem'
}

const DEFAULT_PORT = 5432
/** Every wait has an end: libpq's 0, for ever, is not taken. */
const LONGEST_CONNECT_S = 60

/** Parameters that are understood; another is refused, for what was meant by it would silently not be done. */
const PARAMETERS = new Set([
  'host',
  'port',
  'target_session_attrs',
  'sslmode',
  'sslrootcert',
  'application_name',
  'user',
  'password',
  'dbname',
  'connect_timeout',
])

const SSL_MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full']

export function parsePostgresAddress(text: string): PostgresAddress {
  const match = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/.exec(text)
  if (match === null) throw new AddressProblem('The address of PostgreSQL must look like postgres://USER:PASSWORD@HOST:PORT/DATABASE.')
  const [, login = '', hostList = '', path = '', query = ''] = match
  // What was meant as part of a password would be taken for something else, and be shown.
  if (path.includes('@') || query.includes('@')) {
    throw new AddressProblem(
      'The address of PostgreSQL has an @ after a / or a ?: in the user and the password, write / as %2F, ? as %3F, # as %23 and @ as %40.',
    )
  }
  const parameters = new URLSearchParams(query)
  for (const name of parameters.keys()) {
    if (!PARAMETERS.has(name)) throw new AddressProblem(`The address of PostgreSQL has a parameter that is not known: ${name}.`)
  }
  const [user, password] = splitOnce(login, ':')
  const ports = parameters.get('port')?.split(',')
  const named = hostList !== '' ? hostList.split(',') : (parameters.get('host')?.split(',') ?? ['localhost'])
  const hosts = named.map((part, at) => {
    const [, bracketed, plain = '', port] = /^(?:\[([^\]]+)\]|([^:]*))(?::(\d+))?$/.exec(part) ?? []
    const host = decoded(bracketed ?? plain, 'host')
    const number = Number(port ?? ports?.[at] ?? ports?.[0] ?? DEFAULT_PORT)
    if (host === '' || !Number.isInteger(number) || number < 1 || number > 65_535) {
      throw new AddressProblem('The address of PostgreSQL has a host or port that cannot be read: write HOST:PORT,HOST:PORT.')
    }
    return { host, port: number }
  })
  const attributes = parameters.get('target_session_attrs') ?? 'read-write'
  if (!['any', 'read-write', 'primary'].includes(attributes)) {
    throw new AddressProblem('target_session_attrs must be read-write, primary or any: the store is written to.')
  }
  return {
    hosts,
    database: decoded(path, 'database') || (parameters.get('dbname') ?? decoded(user, 'user')) || 'postgres',
    user: decoded(user, 'user') || parameters.get('user') || undefined,
    password: decoded(password, 'password') || parameters.get('password') || undefined,
    ssl: sslOf(parameters),
    applicationName: parameters.get('application_name') ?? 'switchyard',
    connectMs: connectMsOf(parameters),
  }
}

/** For logs and for people: where, and not who. */
export function describeAddress({ hosts, database }: PostgresAddress): string {
  return `${hosts.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`).join(',')}/${database}`
}

function sslOf(parameters: URLSearchParams): PostgresAddress['ssl'] {
  const mode = parameters.get('sslmode') ?? 'prefer'
  if (!SSL_MODES.includes(mode)) throw new AddressProblem(`sslmode must be one of ${SSL_MODES.join(', ')}.`)
  const root = parameters.get('sslrootcert')
  // Without a word about it there is no encryption: a server on the same machine or network seldom has any.
  if (mode === 'disable' || mode === 'allow' || mode === 'prefer') return false
  const ca = root === null || root === 'system' ? undefined : certificate(root)
  return { rejectUnauthorized: mode.startsWith('verify') || ca !== undefined, ...(ca === undefined ? {} : { ca }) }
}

function connectMsOf(parameters: URLSearchParams): number | undefined {
  const text = parameters.get('connect_timeout')
  if (text === null) return undefined
  const seconds = /^\d{1,2}$/.test(text) ? Number(text) : 0
  if (seconds < 1 || seconds > LONGEST_CONNECT_S)
    throw new AddressProblem(`connect_timeout must be a whole number of seconds from 1 to ${LONGEST_CONNECT_S}.`)
  return seconds * 1_000
}

function certificate(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new AddressProblem(`sslrootcert cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown'}.`, { cause: error })
  }
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator)
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + separator.length)]
}

function decoded(text: string, what: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new AddressProblem(`The ${what} in the address of PostgreSQL is not encoded as in a URL: write % as %25.`)
  }
}
