// The settings of the service as one table: environment variable, flag, parser, default and description. The parser, the help
// of `serve` and the reference are all derived from it. Everything is parsed here, so the rest of the service sees typed values
// and never text. Nothing here exits, prints or reads a file, except a certificate that a database URL refers to. Problems are
// returned as data. A secret is never quoted.

import { isIP } from 'node:net'
import { nearest } from './api/nearest.ts'
import {
  type Parsed,
  parseAutoOr,
  parseChoice,
  parseGateway,
  parseHost,
  parseInteger,
  parseLimit,
  parsePath,
  parsePublicUrl,
  parseRanges,
  parseSwitch,
  parseToken,
} from './api/parse-values.ts'
import { halfSetLogin, LOGIN_SETTINGS } from './api/settings/login-settings.ts'
import { type Setting, setting } from './api/settings/setting.ts'
import { AddressProblem, parsePostgresAddress } from './store/postgres/session/address.ts'

const MIN_TOKEN_CHARACTERS = 16
export const MAX_PROCESSES = 64

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

export type StoreAddress = { kind: 'sqlite'; path: string } | { kind: 'postgres'; url: string }

export const SETTINGS = {
  host: setting({
    variable: 'SWITCHYARD_HOST',
    placeholder: 'HOST',
    parse: parseHost,
    fallback: '127.0.0.1',
    description: 'The address that the service listens on.',
  }),
  port: setting({
    variable: 'SWITCHYARD_PORT',
    placeholder: 'PORT',
    parse: (text) => parseInteger(text, 0, 65_535),
    fallback: 8080,
    description: 'The port that the service listens on; 0 picks a free port, which is printed at startup.',
  }),
  store: setting({
    variable: 'SWITCHYARD_STORE',
    placeholder: 'ADDRESS',
    parse: parseStore,
    fallback: { kind: 'sqlite', path: './data/switchyard.db' },
    defaultText: 'sqlite:./data/switchyard.db',
    description:
      'Where messages are stored: sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE, with several hosts separated by commas.',
    // A database URL may contain a password.
    secret: true,
  }),
  processes: setting<number | 'auto'>({
    variable: 'SWITCHYARD_PROCESSES',
    placeholder: 'NUMBER',
    parse: (text) => parseAutoOr(text, 1, MAX_PROCESSES),
    fallback: 1,
    description: 'The number of processes that share the port and the work, or auto for one per core. More than 1 requires PostgreSQL.',
  }),
  adminToken: setting<string | null>({
    variable: 'SWITCHYARD_ADMIN_TOKEN',
    placeholder: 'TOKEN',
    parse: parseToken,
    fallback: null,
    defaultText: 'generated at the first start, printed once, stored as a hash',
    description: 'The bearer token for the control API and for the first login to the dashboard.',
    secret: true,
  }),
  allowAddresses: setting<readonly string[]>({
    variable: 'SWITCHYARD_ALLOW_ADDRESSES',
    placeholder: 'RANGES',
    parse: parseRanges,
    fallback: [],
    description: 'Address ranges (CIDR, separated by commas) that webhooks may reach even though they are not public.',
  }),
  privateAddresses: setting<'auto' | 'allow' | 'refuse'>({
    variable: 'SWITCHYARD_PRIVATE_ADDRESSES',
    placeholder: 'POLICY',
    parse: (text) => parseChoice(text, ['auto', 'allow', 'refuse']),
    fallback: 'auto',
    description:
      'Whether webhooks may reach private and loopback addresses: allow or refuse; auto allows them while the service listens on loopback.',
  }),
  secretKey: setting<string | null>({
    variable: 'SWITCHYARD_SECRET_KEY',
    placeholder: 'KEY',
    parse: (text) => ({ value: text }),
    fallback: null,
    defaultText: 'generated beside the SQLite file; required with Postgres',
    description: 'The key that encrypts stored secrets: at least 16 characters, the same on every node.',
    secret: true,
  }),
  retentionDays: setting({
    variable: 'SWITCHYARD_RETENTION_DAYS',
    placeholder: 'DAYS',
    parse: (text) => parseInteger(text, 1, 3_650),
    fallback: 7,
    description: 'The number of days that messages and attempts are kept.',
  }),
  quarantineDays: setting({
    variable: 'SWITCHYARD_QUARANTINE_DAYS',
    placeholder: 'DAYS',
    parse: (text) => parseInteger(text, 0, 3_650),
    fallback: 30,
    description: 'The number of days after which messages in quarantine are deleted. 0 keeps them until somebody releases or deletes them.',
  }),
  log: setting<LogLevel>({
    variable: 'SWITCHYARD_LOG',
    placeholder: 'LEVEL',
    parse: parseLogLevel,
    fallback: 'info',
    description: `The lowest level that is logged: ${LOG_LEVELS.join(', ')}.`,
  }),
  lenientKeys: setting({
    variable: 'SWITCHYARD_LENIENT_KEYS',
    placeholder: null,
    parse: parseSwitch,
    fallback: false,
    description: 'Answers requests with a missing or unknown write key with 200 instead of 401, and drops their messages.',
  }),
  trustedProxies: setting<readonly string[]>({
    variable: 'SWITCHYARD_TRUSTED_PROXIES',
    placeholder: 'RANGES',
    parse: parseRanges,
    fallback: [],
    description: 'Address ranges (CIDR, separated by commas) of the proxies whose X-Forwarded-For, -Proto and -Host headers are trusted.',
  }),
  publicUrl: setting<string | null>({
    variable: 'SWITCHYARD_PUBLIC_URL',
    placeholder: 'URL',
    parse: parsePublicUrl,
    fallback: null,
    defaultText: "each request's own Host header",
    description:
      'The address that applications and browsers use, such as https://events.example.com. Set it if there is a proxy in front, especially one that terminates TLS.',
  }),
  metrics: setting<'auto' | 'open' | 'token' | 'off'>({
    variable: 'SWITCHYARD_METRICS',
    placeholder: 'ACCESS',
    parse: (text) => parseChoice(text, ['auto', 'open', 'token', 'off']),
    fallback: 'auto',
    description:
      'Who may read GET /metrics: open (everyone), token (anyone with a control token) or off (no one). auto means open to requests from this machine if the service listens on loopback, otherwise token.',
  }),
  eventCatalog: setting<'on' | 'off'>({
    variable: 'SWITCHYARD_EVENT_CATALOG',
    placeholder: 'STATE',
    parse: (text) => parseChoice(text, ['on', 'off']),
    fallback: 'on',
    description:
      'Whether the service keeps the event catalogue: which events each source sends, how often, and with which properties. With off, nothing new is counted.',
  }),
  rateLimit: setting<number | null>({
    variable: 'SWITCHYARD_RATE_LIMIT',
    placeholder: 'NUMBER',
    parse: (text) => parseLimit(text, 'a whole number of messages per second, or off'),
    fallback: null,
    description:
      'The number of messages per second that each source may send to all nodes together; requests above it are rejected with 429.',
  }),
  maxBacklog: setting<number | null>({
    variable: 'SWITCHYARD_MAX_BACKLOG',
    placeholder: 'NUMBER',
    parse: (text) => parseLimit(text, 'a whole number of deliveries, or off'),
    fallback: null,
    description:
      'If a destination has at least this many pending deliveries, requests with messages for it are rejected with 503. Applies only while the load on the service delays the deliveries, not while the receiver is slow or failing.',
  }),
  senders: setting<'auto' | number>({
    variable: 'SWITCHYARD_SENDERS',
    placeholder: 'NUMBER',
    parse: (text) => parseAutoOr(text, 0, 64),
    fallback: 'auto',
    description:
      'The number of sender threads, which sign and send requests to destinations, from 0 to 64. With 0, the main thread does this. auto means one for each core beyond the first two and those of SWITCHYARD_INGEST_THREADS, and at least one; with a single core, 0. With SWITCHYARD_PROCESSES above 1, each process has this many, and auto divides the cores among the processes.',
  }),
  ingestThreads: setting<'auto' | number>({
    variable: 'SWITCHYARD_INGEST_THREADS',
    placeholder: 'NUMBER',
    parse: (text) => parseAutoOr(text, 0, 16),
    fallback: 'auto',
    description:
      'The number of threads that accept connections, read and decompress requests with messages, and write the responses, from 0 to 16. With 0, the main thread does this. auto means 0 with up to 4 cores, otherwise one for every 4 cores, and at most 4. Only on Linux, and not with SWITCHYARD_PROCESSES above 1.',
  }),
  integrationHosts: setting<'auto' | number>({
    variable: 'SWITCHYARD_INTEGRATION_HOSTS',
    placeholder: 'NUMBER',
    parse: (text) => parseAutoOr(text, 1, 64),
    fallback: 'auto',
    description:
      'The number of processes that run integrations, from 1 to 64. They are started when integrations have work. auto means one for each core, and at most 4. With SWITCHYARD_PROCESSES above 1, each process has this many, and auto divides the cores among the processes.',
  }),
  integrationsGateway: setting<{ host: string; port: number } | null>({
    variable: 'SWITCHYARD_INTEGRATIONS_GATEWAY',
    placeholder: 'HOST:PORT',
    parse: parseGateway,
    fallback: null,
    description:
      'The address of an egress gateway. Integrations make all their connections to it. The TLS server name and the Host header contain the original host.',
  }),
  integrationsCa: setting<string | null>({
    variable: 'SWITCHYARD_INTEGRATIONS_CA',
    placeholder: 'PATH',
    parse: parsePath,
    fallback: null,
    description: 'A PEM file with certificate authorities that integrations trust in addition to the default ones.',
  }),
  lakeDir: setting<string | null>({
    variable: 'SWITCHYARD_LAKE_DIR',
    placeholder: 'PATH',
    parse: parsePath,
    fallback: null,
    defaultText: 'lake beside the SQLite file; with PostgreSQL none',
    description: 'The folder below which warehouses may write Parquet files. With several nodes, they must share it.',
  }),
  warehouseFolder: setting<string | null>({
    variable: 'SWITCHYARD_WAREHOUSE_FOLDER',
    placeholder: 'PATH',
    parse: parsePath,
    fallback: null,
    defaultText: 'warehouse beside the SQLite file; with PostgreSQL ./data/warehouse',
    description: 'The folder in which `switchyard warehouse install` installs the warehouse package. Not used in a clone.',
  }),
  integrationsFolder: setting<string | null>({
    variable: 'SWITCHYARD_INTEGRATIONS_FOLDER',
    placeholder: 'PATH',
    parse: parsePath,
    fallback: null,
    defaultText: 'integrations beside the SQLite file; with PostgreSQL ./data/integrations',
    description: 'The folder in which `switchyard catalog install` installs the integrations package. Not used in a clone.',
  }),
  ...LOGIN_SETTINGS,
}

export type Config = { [K in keyof typeof SETTINGS]: (typeof SETTINGS)[K] extends Setting<infer T> ? T : never }

export type { Setting } from './api/settings/setting.ts'

export interface ConfigProblem {
  /** The flag or environment variable with the problem. */
  setting: string
  message: string
}

export type ConfigResult = { kind: 'config'; config: Config; warnings: string[] } | { kind: 'problems'; problems: ConfigProblem[] }

type Name = keyof Config
const NAMES = Object.keys(SETTINGS) as Name[]

/** SWITCHYARD_ALLOW_ADDRESSES → --allow-addresses. */
export function flagOf({ variable }: Pick<Setting<unknown>, 'variable'>): string {
  return `--${variable.slice('SWITCHYARD_'.length).toLowerCase().replaceAll('_', '-')}`
}

/** A flag overrides the environment, and the environment overrides the default. `flags` has the given ones by name, without dashes. */
export function readConfig(env: Readonly<Record<string, string | undefined>>, flags: Readonly<Record<string, string>> = {}): ConfigResult {
  const values: Partial<Record<Name, unknown>> = {}
  const problems: ConfigProblem[] = []
  for (const name of NAMES) {
    const setting: Setting<unknown> = SETTINGS[name]
    const flag = flags[flagOf(setting).slice(2)]
    const text = flag ?? env[setting.variable]
    if (flag === '') problems.push(missingValue(setting))
    // Shells and compose files set a variable to the empty string to mean "not set".
    if (text === undefined || text === '') {
      values[name] = setting.fallback
      continue
    }
    const parsed = setting.parse(text)
    if ('value' in parsed) {
      values[name] = parsed.value
      continue
    }
    const at = placeOf(setting, flags)
    if ('problem' in parsed) problems.push({ setting: at, message: `${at}: ${parsed.problem}` })
    else problems.push(badValue(at, parsed.expected, setting.secret ? undefined : text))
  }
  if (problems.length > 0) return { kind: 'problems', problems }
  const config = values as Config
  const weak = weakToken(config, placeOf(SETTINGS.adminToken, flags))
  if (weak !== null) return { kind: 'problems', problems: [weak] }
  const several = severalProcessesOnSqlite(config, placeOf(SETTINGS.processes, flags))
  if (several !== null) return { kind: 'problems', problems: [several] }
  const halfSet = halfSetLogin(config, (row) =>
    (env[row.variable] ?? '') !== '' || flags[flagOf(row).slice(2)] !== undefined ? placeOf(row, flags) : null,
  )
  if (halfSet.length > 0) return { kind: 'problems', problems: halfSet }
  return { kind: 'config', config, warnings: [...unknownVariables(env), ...exposedDefaults(config)] }
}

export function isLoopback(host: string): boolean {
  // Only if it is an IP address: the host name 127.example.com may resolve to anything.
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

/** Anyone who can reach the port can guess a short token, even though wrong tokens are rate limited. */
function weakToken({ adminToken, host, publicUrl }: Config, at: string): ConfigProblem | null {
  if (adminToken === null || adminToken.length >= MIN_TOKEN_CHARACTERS || (isLoopback(host) && publicUrl === null)) return null
  const message =
    `${at} is too short: it has ${adminToken.length} characters, but needs at least ${MIN_TOKEN_CHARACTERS} if other machines can reach the service. ` +
    'Generate one with: openssl rand -hex 32'
  return { setting: at, message }
}

function severalProcessesOnSqlite({ processes, store }: Config, at: string): ConfigProblem | null {
  if (store.kind !== 'sqlite' || processes === 'auto' || processes === 1) return null
  const message =
    `${at} is ${processes}, but only one process can use a SQLite file. Remove the setting, or store the data in PostgreSQL: ` +
    'set SWITCHYARD_STORE to postgres://… (`switchyard migrate-store` moves an existing file).'
  return { setting: at, message }
}

/** The defaults on loopback suit a developer's machine. A proxy in front makes the service reachable from other machines. */
function exposedDefaults({ host, trustedProxies, publicUrl, privateAddresses, metrics, adminToken }: Config): string[] {
  if (!isLoopback(host) || (trustedProxies.length === 0 && publicUrl === null)) return []
  const warnings: string[] = []
  if (privateAddresses === 'auto')
    warnings.push(
      'Webhooks may reach private addresses because the service listens on loopback. Set SWITCHYARD_PRIVATE_ADDRESSES to refuse or allow.',
    )
  if (metrics === 'auto')
    warnings.push(
      'GET /metrics needs no token for requests from this machine because the service listens on loopback. Set SWITCHYARD_METRICS to token or open.',
    )
  if (adminToken !== null && adminToken.length < MIN_TOKEN_CHARACTERS)
    warnings.push(
      `SWITCHYARD_ADMIN_TOKEN has fewer than ${MIN_TOKEN_CHARACTERS} characters, and other machines can reach the service through a proxy. Generate a longer one with: openssl rand -hex 32`,
    )
  return warnings
}

/** Where a setting was given, for messages about it. */
function placeOf(setting: Pick<Setting<unknown>, 'variable'>, flags: Readonly<Record<string, string>>): string {
  const flag = flagOf(setting)
  return flags[flag.slice(2)] === undefined ? setting.variable : flag
}

function missingValue(setting: Setting<unknown>): ConfigProblem {
  const flag = flagOf(setting)
  const example = setting.placeholder === null ? `${flag}=true` : `${flag} ${setting.placeholder}`
  return { setting: flag, message: `${flag} needs a value: ${example}.` }
}

function badValue(setting: string, expected: string, text: string | undefined): ConfigProblem {
  const shown = text === undefined ? '' : `, but is ${JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text)}`
  return { setting, message: `${setting} must be ${expected}${shown}.` }
}

/** Variables that commands other than `serve` read. Each is so similar to a setting that it would be reported as a typo. */
const COMMAND_VARIABLES = new Set([
  'SWITCHYARD_URL',
  'SWITCHYARD_TOKEN',
  'SWITCHYARD_WRITE_KEY',
  'SWITCHYARD_SHARED_SECRET',
  'SWITCHYARD_SIGNING_SECRET',
])

/** Warns about mistyped variables, which would be ignored silently. Only those similar to a setting are reported; others may belong to another program. */
function unknownVariables(env: Readonly<Record<string, string | undefined>>): string[] {
  const known = NAMES.map((name): string => SETTINGS[name].variable)
  return Object.keys(env)
    .filter((variable) => variable.startsWith('SWITCHYARD_') && !known.includes(variable) && !COMMAND_VARIABLES.has(variable))
    .flatMap((variable) => {
      const near = nearest(variable, known)
      return near === undefined ? [] : [`${variable} is not a setting and is ignored. Did you mean ${near}?`]
    })
}

// ── Parsers ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const STORE_FORMS = 'sqlite:PATH or postgres://…'

function parseStore(text: string): Parsed<StoreAddress> {
  if (/^postgres(ql)?:\/\/./.test(text)) return parsePostgres(text)
  if (!text.startsWith('sqlite:')) return { expected: STORE_FORMS }
  const path = text.slice('sqlite:'.length)
  // sqlite://data/x.db is ambiguous: as a URL it has the host `data`, as a path it starts at the root. Neither is likely to be meant.
  if (/^\/\/[^/]/.test(path)) return { expected: `${STORE_FORMS}; write the path without // before it` }
  if (path === '' || path.includes('\0') || path.startsWith(':memory:'))
    return { expected: `${STORE_FORMS}, where PATH is the path of a file` }
  return { value: { kind: 'sqlite', path: path.replace(/^\/\/\//, '/') } }
}

/** Parsed here so that a mistake is reported before anything connects. A password in the URL is never quoted. */
function parsePostgres(url: string): Parsed<StoreAddress> {
  try {
    parsePostgresAddress(url)
    return { value: { kind: 'postgres', url } }
  } catch (error) {
    if (error instanceof AddressProblem) return { problem: error.message }
    throw error
  }
}

function parseLogLevel(text: string): Parsed<LogLevel> {
  const level = LOG_LEVELS.find((level) => level === text.toLowerCase())
  return level === undefined ? { expected: `one of ${LOG_LEVELS.join(', ')}` } : { value: level }
}
