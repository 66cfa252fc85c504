// Where the tables of a warehouse are: which places are accepted, which secrets belong to them, and what of them is shown. A secret belongs to the server
// that it was given for: it is kept when a change leaves it out, and never sent to another server.

import { oncePerObject } from '../../model/once-per-object.ts'
import { HIDDEN } from '../../secrets/hidden-url.ts'
import type { MoveContext, SettingsContext, SettingsProblem } from '../port/kind.ts'
import { type GivenWarehouse, LEFT_OUT, type ShownWarehouse, type WarehouseDestination, type WarehousePlace } from './settings.ts'

/** The name of the setting that is a secret, by engine. That of PostgreSQL is the password in its URL. */
const SECRET = { parquet: 'secretAccessKey', postgres: 'url', clickhouse: 'password' } as const

// ── Secrets that an update leaves out ──

/** Fills in the secret that a request leaves out, if the engine stays. Whether its server stays is checked by movedSecrets(). */
export function withKeptSecret(given: WarehousePlace, before: WarehousePlace | undefined): WarehousePlace {
  const kept = before?.engine === given.engine ? secretOf(before) : null
  // Without a stored one, the placeholder in a URL stays, and is refused.
  return leavesSecretOut(given) && (kept !== null || given.engine !== 'postgres') ? withSecret(given, kept) : given
}

export function movedSecrets(
  given: GivenWarehouse,
  settings: Partial<WarehouseDestination>,
  before: WarehouseDestination,
  _about: MoveContext,
): string[] {
  const { warehouse: after } = settings
  if (given.warehouse === undefined || after === undefined || !leavesSecretOut(given.warehouse) || secretOf(after) === null) return []
  return serverOf(after) === serverOf(before.warehouse) ? [] : [`warehouse.${SECRET[after.engine]}`]
}

/** The secret of a place; null for none. */
export function secretOf(place: WarehousePlace): string | null {
  if (place.engine === 'parquet') return given(place.secretAccessKey)
  if (place.engine === 'clickhouse') return given(place.password)
  const password = parsed(place.url)?.password ?? ''
  return password === '' || decoded(password) === HIDDEN ? null : password
}

export function withSecret(place: WarehousePlace, secret: string | null): WarehousePlace {
  if (place.engine === 'parquet') return { ...place, secretAccessKey: secret }
  if (place.engine === 'clickhouse') return { ...place, password: secret }
  const url = parsed(place.url)
  if (url === null) return place
  url.password = secret ?? ''
  return { ...place, url: url.href }
}

function leavesSecretOut(place: WarehousePlace): boolean {
  if (place.engine === 'parquet') return place.secretAccessKey === LEFT_OUT
  if (place.engine === 'clickhouse') return place.password === LEFT_OUT
  const { password = '', username = '' } = parsed(place.url) ?? {}
  return decoded(password) === HIDDEN || (password === '' && username !== '')
}

function given(secret: string | null): string | null {
  return secret === LEFT_OUT ? null : secret
}

/** To whom the secret is sent. */
function serverOf(place: WarehousePlace): string {
  const { engine, url } = place
  if (engine === 'parquet') return `${place.endpoint === null ? 's3' : (parsed(place.endpoint)?.origin ?? '')} ${place.accessKeyId}`
  const { protocol = '', host = '', username = '' } = parsed(url) ?? {}
  return engine === 'postgres' ? `${host} ${username}` : `${protocol}//${host} ${place.user}`
}

// ── Problems that the schema cannot detect ──

export function placeProblem(place: WarehousePlace, { checkUrl }: SettingsContext): SettingsProblem | null {
  const at = (field: string, problem: string | null): SettingsProblem | null =>
    problem === null ? null : { field: `warehouse.${field}`, problem }
  const url = parsed(place.url)
  if (url === null) return at('url', 'must be a URL')
  if (place.engine === 'postgres') return at('url', postgresProblem(url) ?? checkUrl(`http://${url.host}/`))
  if (place.engine === 'clickhouse') return at('url', httpProblem(url) ?? checkUrl(place.url))
  if (url.protocol === 'file:') {
    const other = (['endpoint', 'region', 'accessKeyId', 'secretAccessKey'] as const).find((name) => given(place[name]) !== null)
    return other !== undefined ? at(other, 'is only for s3:// addresses') : at('url', folderProblem(url) ?? checkUrl(place.url))
  }
  if (url.protocol !== 's3:') return at('url', 'must be file:///… or s3://bucket/prefix')
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(url.hostname))
    return at('url', 'must have the name of a bucket, such as s3://bucket/prefix')
  if (url.username !== '' || url.search !== '' || url.hash !== '') return at('url', 'must be only a bucket and a prefix')
  if (place.accessKeyId === null) return at('accessKeyId', 'is required for s3:// addresses')
  if (given(place.secretAccessKey) === null) return at('secretAccessKey', 'is required for s3:// addresses')
  if (place.endpoint === null) return null
  const endpoint = parsed(place.endpoint)
  return at('endpoint', endpoint === null ? 'must be a URL' : (httpProblem(endpoint) ?? checkUrl(place.endpoint)))
}

function postgresProblem({ protocol, hostname, pathname, password, searchParams, hash }: URL): string | null {
  if (protocol !== 'postgres:' && protocol !== 'postgresql:') return 'must be postgres://user:password@host:5432/database'
  if (hostname === '') return 'must have a host'
  if (!/^\/[^/]+$/.test(pathname)) return 'must end in the name of a database'
  if (hash !== '') return 'must not have a fragment'
  if (decoded(password) === HIDDEN) return 'has the placeholder (hidden) for its password; send the real password'
  // Others could name files of this machine, or another host.
  const other = [...searchParams.keys()].find((name) => name !== 'sslmode')
  return other === undefined ? null : 'must not have other parameters than sslmode'
}

function httpProblem({ protocol, username, password, search, hash }: URL): string | null {
  if (protocol !== 'http:' && protocol !== 'https:') return 'must start with http:// or https://'
  // Parameters may be credentials, and addresses are shown.
  if (search !== '' || hash !== '') return 'must not have parameters or a fragment'
  return username === '' && password === '' ? null : 'must not contain a user or a password'
}

function folderProblem({ hostname, pathname, search, hash }: URL): string | null {
  if (hostname !== '' && hostname !== 'localhost') return 'must be a folder of this machine: file:///…'
  // Node.js throws for an encoded slash and for a % without two digits, and the file system refuses NUL.
  if (/%(?![\da-f]{2})|%(2f|5c|[01][\da-f]|7f)/i.test(pathname)) return 'must be a path without encoded slashes and control characters'
  if (decoded(pathname) === pathname && pathname.includes('%')) return 'must be a path whose escape sequences are valid UTF-8'
  return search === '' && hash === '' ? null : 'must be only a path'
}

// ── What is shown ──

/** As editors and admins see it. */
export function shownPlace(place: WarehousePlace): ShownWarehouse {
  if (place.engine === 'parquet') {
    const { secretAccessKey: _, ...shown } = place
    return shown
  }
  if (place.engine === 'clickhouse') {
    const { password: _, ...shown } = place
    return shown
  }
  return { ...place, url: secretOf(place) === null ? place.url : withSecret(place, HIDDEN).url }
}

/** As viewers and the audit log see it: without names of users and keys. */
export function hiddenPlace(place: WarehousePlace): ShownWarehouse {
  const shown = shownPlace(place)
  const url = parsed(place.url)
  if (url !== null && (url.username !== '' || url.password !== '')) {
    url.username = ''
    url.password = ''
    shown.url = url.href.replace('://', `://${HIDDEN}@`)
  }
  if (shown.user !== undefined) shown.user = HIDDEN
  if (shown.accessKeyId != null) shown.accessKeyId = HIDDEN
  return shown
}

/** Names the place in attempts and lists, without credentials. */
export const targetOf = oncePerObject((place: WarehousePlace): string => {
  const url = parsed(place.url)
  if (url === null) return place.engine
  url.username = ''
  url.password = ''
  url.search = ''
  return place.engine === 'clickhouse' ? `${url.origin}/${place.database}` : url.href
})

function parsed(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
