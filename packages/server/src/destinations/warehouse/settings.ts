// The fields of a warehouse in requests and responses, in addition to those that every destination has. What a place must be is in place.ts. No error
// message here may quote a value, because it may be a secret.

import {
  array,
  boolean,
  type Infer,
  integer,
  nullable,
  object,
  oneOf,
  optional,
  string,
  variants,
  withDefault,
  writeOnly,
} from '../../api/schema.ts'
import type { CommonDestination } from '../../model/configuration.ts'
import { HIDDEN } from '../../secrets/hidden-url.ts'
import type { GivenSettings } from '../port/kind.ts'

/** Where the tables are. Secrets are in plain text here, encrypted in the store, and never shown. */
export type WarehousePlace =
  | {
      engine: 'parquet'
      url: string
      endpoint: string | null
      region: string | null
      accessKeyId: string | null
      secretAccessKey: string | null
      pathStyle: boolean
      adopt: boolean
      keepDays: number | null
    }
  | { engine: 'postgres'; url: string; schema: string | null; adopt: boolean; keepDays: number | null }
  | {
      engine: 'clickhouse'
      url: string
      database: string
      user: string
      password: string | null
      adopt: boolean
      keepDays: number | null
    }

/** When waiting messages are loaded: after a time, or sooner if there are many. */
export interface LoadSettings {
  everyMs: number
  maxRows: number
  maxBytes: number
}

/** Writes messages as rows into tables. */
export interface WarehouseDestination extends CommonDestination {
  type: 'warehouse'
  warehouse: WarehousePlace
  load: LoadSettings
}

declare module '../../model/configuration.ts' {
  interface DestinationTypes {
    warehouse: WarehouseDestination
  }
}

/** The settings of a warehouse in a request. */
export type GivenWarehouse = GivenSettings & {
  type?: 'warehouse'
  warehouse?: WarehousePlace | undefined
  load?: LoadSettings | undefined
}

/** The value of a secret that the request does not contain. No secret can have it, because control characters are rejected. */
export const LEFT_OUT = '\0'
const MAX_TEXT = 2_048
const MIB = 1024 * 1024
const DAY_MS = 86_400_000

/** Long enough for a load of many tables. A load that takes longer is repeated, and continues where it was. */
export const MAX_WAREHOUSE_TIMEOUT_MS = 600_000

function textProblem(text: string): string | null {
  if (text === HIDDEN) return 'is the placeholder "(hidden)"; send the real value, or leave the field out to keep the stored one'
  return /\p{Cc}/u.test(text) ? 'must not contain control characters' : null
}

const url = (description: string) =>
  string({
    min: 1,
    max: MAX_TEXT,
    format: 'uri',
    check: (text) => (/\p{Cc}|\s/u.test(text) ? 'must not contain spaces or control characters' : null),
    description,
  })
const text = (description: string) => withDefault(nullable(string({ min: 1, max: MAX_TEXT, check: textProblem, description })), null)
const secret = (description: string) => writeOnly(nullable(string({ min: 1, max: MAX_TEXT, check: textProblem, description })), LEFT_OUT)
const COMMON_FIELDS = {
  adopt: withDefault(
    boolean({
      description: 'Whether to continue tables that another installation or destination has made. Otherwise such a place is refused.',
    }),
    false,
  ),
  keepDays: withDefault(
    nullable(
      integer({
        min: 1,
        max: 36_500,
        description:
          'Rows that were received more than this many whole days (UTC) ago are removed once a day, also from the archive of a lake. Null keeps all rows.',
      }),
    ),
    null,
  ),
}
const ENGINES = {
  parquet: {
    url: url('`file:///…`, a folder below the folder of lakes (`SWITCHYARD_LAKE_DIR`), or `s3://bucket/prefix`.'),
    endpoint: text('The URL of an S3-compatible store; null for that of AWS.'),
    region: text('The region of the bucket.'),
    accessKeyId: text('The access key of the bucket.'),
    secretAccessKey: secret('The secret of the access key. Encrypted in the store and never shown.'),
    pathStyle: withDefault(boolean({ description: 'Whether the bucket is in the path of URLs, and not in the host name.' }), false),
    ...COMMON_FIELDS,
  },
  postgres: {
    url: url('`postgres://user:password@host:5432/database`. The password is encrypted in the store and shown as `(hidden)`.'),
    schema: withDefault(
      nullable(
        string({
          min: 1,
          max: 63,
          check: (name) =>
            /^[a-z_][a-z0-9_]*$/.test(name) ? null : 'must be lower-case letters, digits and _, and not start with a digit',
          description: 'The schema of the tables; null for one schema for each source, with its name in snake case.',
        }),
      ),
      null,
    ),
    ...COMMON_FIELDS,
  },
  clickhouse: {
    url: url('`https://host:8443`, the HTTP interface.'),
    database: string({ min: 1, max: 200, check: textProblem, description: 'The database of the tables.' }),
    user: string({ min: 1, max: 200, check: textProblem, description: 'The user.' }),
    password: secret('The password of the user. Encrypted in the store and never shown.'),
    ...COMMON_FIELDS,
  },
}

const WAREHOUSE_TEXT =
  'Where the tables are. An update replaces the whole object. A secret that is left out, or a password that is `(hidden)` in the URL, is kept as long as the server stays the same.'

const LOAD_FIELDS = {
  everyMs: integer({ min: 1_000, max: DAY_MS, description: 'A message is loaded at most this long after it was accepted.' }),
  maxRows: integer({ min: 1, max: 200_000, description: 'The most messages of one load. When so many wait, they are loaded at once.' }),
  maxBytes: integer({
    min: 64 * 1024,
    max: 64 * MIB,
    description: 'The most bytes of one load. When so many wait, they are loaded at once.',
  }),
}
export const LOAD_DEFAULTS: LoadSettings = { everyMs: 60_000, maxRows: 50_000, maxBytes: 32 * MIB }

export const WAREHOUSE_SETTINGS = {
  warehouse: variants('engine', ENGINES, { description: WAREHOUSE_TEXT }),
  load: withDefault(
    object(
      {
        everyMs: withDefault(LOAD_FIELDS.everyMs, LOAD_DEFAULTS.everyMs),
        maxRows: withDefault(LOAD_FIELDS.maxRows, LOAD_DEFAULTS.maxRows),
        maxBytes: withDefault(LOAD_FIELDS.maxBytes, LOAD_DEFAULTS.maxBytes),
      },
      { description: 'When messages are loaded. An update replaces the whole object.' },
    ),
    LOAD_DEFAULTS,
  ),
}

export const SHOWN_WAREHOUSE_SETTINGS = {
  warehouse: object(
    {
      engine: oneOf(['parquet', 'postgres', 'clickhouse']),
      url: string({ description: 'Where the tables are. A password in it is shown as `(hidden)`.' }),
      endpoint: optional(nullable(string())),
      region: optional(nullable(string())),
      accessKeyId: optional(nullable(string())),
      pathStyle: optional(boolean()),
      schema: optional(nullable(string())),
      database: optional(string()),
      user: optional(string()),
      adopt: boolean(),
      keepDays: nullable(integer()),
    },
    { description: 'Where the tables are. Secrets are left out.' },
  ),
  load: object({ everyMs: LOAD_FIELDS.everyMs, maxRows: LOAD_FIELDS.maxRows, maxBytes: LOAD_FIELDS.maxBytes }),
  secretSettings: array(string(), { description: 'The names of the secret settings of `warehouse` that have a value.' }),
}

export type ShownWarehouse = Infer<typeof SHOWN_WAREHOUSE_SETTINGS.warehouse>
