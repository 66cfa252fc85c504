// Parses the URL of a PostgreSQL store in libpq's format, which allows several hosts. The hosts are tried in order until one accepts
// writes. Error messages never contain the password.

import { readFileSync } from 'node:fs'

export interface PostgresAddress {
  hosts: readonly { host: string; port: number }[]
  database: string
  user: string | undefined
  password: string | undefined
  /** False for no encryption, otherwise options for node:tls. */
  ssl: false | { rejectUnauthorized: boolean; ca?: string }
  applicationName: string
  /** The connect timeout per host; undefined for the default. */
  connectMs: number | undefined
}

export class AddressProblem extends Error {
  override name = 'AddressProblem'
}

const DEFAULT_PORT = 5432
/** Every wait must have a timeout, so libpq's 0 (wait forever) is rejected. */
const LONGEST_CONNECT_S = 60

/** Supported parameters. Others are rejected, because they would silently have no effect. */
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
  if (match === null) throw new AddressProblem('The PostgreSQL URL must have the form postgres://USER:PASSWORD@HOST:PORT/DATABASE.')
  const [, login = '', hostList = '', path = '', query = ''] = match
  // Part of an unescaped password would be parsed as something else, and shown in logs.
  if (path.includes('@') || query.includes('@')) {
    throw new AddressProblem(
      'The PostgreSQL URL has an @ after a / or a ?. In the user and the password, write / as %2F, ? as %3F, # as %23 and @ as %40.',
    )
  }
  const parameters = new URLSearchParams(query)
  for (const name of parameters.keys()) {
    if (!PARAMETERS.has(name))
      throw new AddressProblem(`The PostgreSQL URL has an unknown parameter: ${name}. Supported are ${[...PARAMETERS].join(', ')}.`)
  }
  const [user, password] = splitOnce(login, ':')
  const ports = parameters.get('port')?.split(',')
  const named = hostList !== '' ? hostList.split(',') : (parameters.get('host')?.split(',') ?? ['localhost'])
  const hosts = named.map((part, at) => {
    const [, bracketed, plain = '', port] = /^(?:\[([^\]]+)\]|([^:]*))(?::(\d+))?$/.exec(part) ?? []
    const host = decoded(bracketed ?? plain, 'host')
    const number = Number(port ?? ports?.[at] ?? ports?.[0] ?? DEFAULT_PORT)
    if (host === '' || !Number.isInteger(number) || number < 1 || number > 65_535) {
      throw new AddressProblem(
        'The PostgreSQL URL has an invalid host or port. Write HOST:PORT, or HOST:PORT,HOST:PORT for several servers.',
      )
    }
    return { host, port: number }
  })
  const attributes = parameters.get('target_session_attrs') ?? 'read-write'
  if (!['any', 'read-write', 'primary'].includes(attributes)) {
    throw new AddressProblem(
      'target_session_attrs in the PostgreSQL URL must be read-write, primary or any, because the store needs write access.',
    )
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

/** For logs and for people: hosts and database, without user and password. */
export function describeAddress({ hosts, database }: PostgresAddress): string {
  return `${hosts.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`).join(',')}/${database}`
}

function sslOf(parameters: URLSearchParams): PostgresAddress['ssl'] {
  const mode = parameters.get('sslmode') ?? 'prefer'
  if (!SSL_MODES.includes(mode)) throw new AddressProblem(`sslmode in the PostgreSQL URL must be one of ${SSL_MODES.join(', ')}.`)
  const root = parameters.get('sslrootcert')
  // The default is no encryption, because a server on the same machine or network seldom has a certificate.
  if (mode === 'disable' || mode === 'allow' || mode === 'prefer') return false
  const ca = root === null || root === 'system' ? undefined : certificate(root)
  return { rejectUnauthorized: mode.startsWith('verify') || ca !== undefined, ...(ca === undefined ? {} : { ca }) }
}

function connectMsOf(parameters: URLSearchParams): number | undefined {
  const text = parameters.get('connect_timeout')
  if (text === null) return undefined
  const seconds = /^\d{1,2}$/.test(text) ? Number(text) : 0
  if (seconds < 1 || seconds > LONGEST_CONNECT_S)
    throw new AddressProblem(`connect_timeout in the PostgreSQL URL must be a whole number of seconds from 1 to ${LONGEST_CONNECT_S}.`)
  return seconds * 1_000
}

function certificate(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new AddressProblem(
      `The file of sslrootcert in the PostgreSQL URL cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}.`,
      { cause: error },
    )
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
    throw new AddressProblem(`The ${what} in the PostgreSQL URL is not URL-encoded correctly: write % as %25.`)
  }
}
