// The settings of a warehouse while they are edited. Secrets are write-only: a stored secret is kept if its field is left empty. Pure.

import { FIELDS, TIMEOUT_MS } from '../../../api/rules.ts'
import * as common from '../../../destination/form/draft.ts'
import { parseDuration, writeDuration } from '../../../destination/form/durations.ts'
import { durationProblem, numberProblem } from '../../../destination/form/validation.ts'
import type { DestinationOf } from '../../../destination/kind.ts'

export type Warehouse = DestinationOf<'warehouse'>
/** Where the tables are, as the form distinguishes it: a lake is in a folder or in a bucket. */
export type Place = 'folder' | 'bucket' | 'postgres' | 'clickhouse'
type GivenPlace = NonNullable<common.NewDestination['warehouse']>

export interface WarehouseDraft extends common.Draft {
  place: Place
  /** A path, or a `file:` URL. */
  folder: string
  bucket: string
  endpoint: string
  region: string
  accessKeyId: string
  pathStyle: boolean
  host: string
  port: string
  /** Of PostgreSQL; empty for the default of the driver. */
  tls: string
  schema: string
  /** The HTTP interface of ClickHouse. */
  http: string
  /** Of PostgreSQL and ClickHouse. */
  database: string
  user: string
  /** The password, or the secret of the access key. Empty to keep the stored one. */
  secret: string
  hasSecret: boolean
  keepDays: number | null
  adopt: boolean
  every: string
  maxRows: number | null
  maxMib: number | null
}

const MIB = 1024 * 1024
const NOTHING = { endpoint: '', region: '', accessKeyId: '', pathStyle: false, host: '', port: '', tls: '', schema: '', http: '' }
const MIB_RANGE = { min: FIELDS['load.maxBytes'].min / MIB, max: FIELDS['load.maxBytes'].max / MIB }

/** `lakes`: the folder of lakes as a URL; null if lakes in folders are not possible. */
export function newWarehouse(lakes: string | null): WarehouseDraft {
  return {
    ...common.newDraft(TIMEOUT_MS.warehouse.default),
    ...NOTHING,
    name: 'Lake',
    place: lakes === null ? 'postgres' : 'folder',
    folder: lakes === null ? '' : `${lakes.replace(/\/$/, '')}/main`,
    bucket: '',
    database: '',
    user: '',
    secret: '',
    hasSecret: false,
    keepDays: null,
    adopt: false,
    every: writeDuration(FIELDS['load.everyMs'].default),
    maxRows: FIELDS['load.maxRows'].default,
    maxMib: FIELDS['load.maxBytes'].default / MIB,
  }
}

export function warehouseDraftOf(saved: Warehouse): WarehouseDraft {
  const { warehouse, load, secretSettings } = saved
  const { engine, url, endpoint, region, accessKeyId, pathStyle = false, schema, database = '', user = '', adopt, keepDays } = warehouse
  const place: Place = engine === 'parquet' ? (url.startsWith('file:') ? 'folder' : 'bucket') : engine
  return {
    ...common.draftOf(saved),
    ...NOTHING,
    place,
    folder: place === 'folder' ? url : '',
    bucket: place === 'bucket' ? url : '',
    endpoint: endpoint ?? '',
    region: region ?? '',
    accessKeyId: accessKeyId ?? '',
    pathStyle,
    schema: schema ?? '',
    http: place === 'clickhouse' ? url : '',
    database,
    user,
    ...(place === 'postgres' ? partsOf(url) : {}),
    secret: '',
    hasSecret: secretSettings.length > 0,
    keepDays,
    adopt,
    every: writeDuration(load.everyMs),
    maxRows: load.maxRows,
    maxMib: load.maxBytes / MIB,
  }
}

/** The parts of the URL of a PostgreSQL database. Empty if it is not one. The password is empty if it is hidden. */
export function partsOf(url: string): Partial<Pick<WarehouseDraft, 'host' | 'port' | 'tls' | 'database' | 'user' | 'secret'>> {
  if (!/^postgres(ql)?:\/\//.test(url) || !URL.canParse(url)) return {}
  const { hostname, port, pathname, searchParams, username, password } = new URL(url)
  const secret = decoded(password)
  return {
    host: hostname,
    port,
    tls: searchParams.get('sslmode') ?? '',
    database: decoded(pathname.slice(1)),
    user: decoded(username),
    secret: secret === '(hidden)' ? '' : secret,
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function postgresUrl({ host, port, tls, database, user, secret }: WarehouseDraft): string {
  const login = user === '' ? '' : `${encodeURIComponent(user)}${secret === '' ? '' : `:${encodeURIComponent(secret)}`}@`
  const query = tls === '' ? '' : `?sslmode=${encodeURIComponent(tls)}`
  return `postgres://${login}${host.trim()}${port.trim() === '' ? '' : `:${port.trim()}`}/${encodeURIComponent(database)}${query}`
}

/** A path becomes a URL. */
export function folderUrl(folder: string): string {
  const text = folder.trim()
  return text.startsWith('/') ? `file://${text.split('/').map(encodeURIComponent).join('/')}` : text
}

function placeOf(draft: WarehouseDraft): GivenPlace {
  const { place, keepDays, adopt, secret } = draft
  const both = { keepDays, adopt }
  if (place === 'folder') return { engine: 'parquet', url: folderUrl(draft.folder), ...both }
  if (place === 'postgres') return { engine: 'postgres', url: postgresUrl(draft), schema: orNull(draft.schema), ...both }
  if (place === 'clickhouse') {
    const { http, database, user } = draft
    return { engine: 'clickhouse', url: http.trim(), database, user, ...(secret === '' ? {} : { password: secret }), ...both }
  }
  const { bucket, endpoint, region, accessKeyId, pathStyle } = draft
  return {
    engine: 'parquet',
    url: bucket.trim().startsWith('s3:') ? bucket.trim() : `s3://${bucket.trim()}`,
    endpoint: orNull(endpoint),
    region: orNull(region),
    accessKeyId: orNull(accessKeyId),
    ...(secret === '' ? {} : { secretAccessKey: secret }),
    pathStyle,
    ...both,
  }
}

function orNull(text: string): string | null {
  return text.trim() === '' ? null : text.trim()
}

function loadOf({ every, maxRows, maxMib }: WarehouseDraft) {
  return { everyMs: parseDuration(every) ?? 0, maxRows: maxRows ?? 0, maxBytes: Math.round((maxMib ?? 0) * MIB) }
}

export function warehouseProblems(draft: WarehouseDraft): common.Problems {
  const { place, hasSecret, secret, keepDays } = draft
  const needed = (text: string, problem: string) => (text.trim() === '' ? problem : null)
  const own: Record<Place, common.Noted[]> = {
    folder: [['warehouse.url', needed(draft.folder, 'Enter a folder.')]],
    bucket: [
      ['warehouse.url', needed(draft.bucket.replace(/^s3:\/\//, ''), 'Enter the name of a bucket.')],
      ['warehouse.accessKeyId', needed(draft.accessKeyId, 'Enter the access key.')],
      ['warehouse.secretAccessKey', hasSecret ? null : needed(secret, 'Enter the secret of the access key.')],
    ],
    postgres: [
      ['warehouse.url', needed(draft.host, 'Enter the host name of the server.')],
      ['warehouse.port', portProblem(draft.port)],
      ['warehouse.database', needed(draft.database, 'Enter the name of a database.')],
      ['warehouse.user', needed(draft.user, 'Enter a user.')],
    ],
    clickhouse: [
      ['warehouse.url', needed(draft.http, 'Enter the address of the HTTP interface.')],
      ['warehouse.database', needed(draft.database, 'Enter the name of a database.')],
      ['warehouse.user', needed(draft.user, 'Enter a user.')],
    ],
  }
  const noted: common.Noted[] = [
    ...own[place],
    ['warehouse.keepDays', keepDays === null ? null : numberProblem(keepDays, { min: 1, max: 36_500 })],
    ['load.everyMs', durationProblem(draft.every, FIELDS['load.everyMs'])],
    ['load.maxRows', numberProblem(draft.maxRows, FIELDS['load.maxRows'])],
    ['load.maxBytes', numberProblem(draft.maxMib, MIB_RANGE, { isWhole: false })],
  ]
  return common.problemsOf(draft, noted, TIMEOUT_MS.warehouse)
}

function portProblem(port: string): string | null {
  return port.trim() === '' || (/^\d{1,5}$/.test(port.trim()) && Number(port) > 0 && Number(port) < 65_536)
    ? null
    : 'Enter a port from 1 to 65535.'
}

/** The body that creates the destination, or tests it before. The draft must have no problems. */
export function createBodyOf(draft: WarehouseDraft): common.NewDestination {
  return { type: 'warehouse', ...common.newSettingsOf(draft), warehouse: placeOf(draft), load: loadOf(draft) }
}

/** The fields that differ from the saved ones; null if none do. The draft must have no problems. */
export function patchBodyOf(saved: Warehouse, draft: WarehouseDraft): common.DestinationChange | null {
  const base = warehouseDraftOf(saved)
  return common.changeOf({
    ...common.changedFields(common.settingsOf(base), common.settingsOf(draft)),
    ...common.changedFields({ warehouse: placeOf(base), load: loadOf(base) }, { warehouse: placeOf(draft), load: loadOf(draft) }),
  })
}

const SHOWN_FIELDS =
  /^(warehouse\.(url|endpoint|region|accessKeyId|secretAccessKey|schema|database|user|password|keepDays)|load\.(everyMs|maxRows|maxBytes))$/

/** The form field at which to show an error of the API; null if no field shows it. */
export function warehouseFieldOf(field: string): string | null {
  return SHOWN_FIELDS.test(field) ? field : common.formFieldOf(field)
}
