// A warehouse: messages are rows in tables. A loader process writes them, with the code of the package @switchyard/warehouse, which may not be installed.

import type { JsonObject } from '@switchyard/protocol'
import { CLASSIC } from '../../model/configuration.ts'
import { outboundMessage } from '../../outbound/outbound-message.ts'
import type { DestinationKind, Fact, Sealing } from '../port/kind.ts'
import { hiddenPlace, movedSecrets, placeProblem, secretOf, shownPlace, targetOf, withKeptSecret } from './place.ts'
import {
  type GivenWarehouse,
  MAX_WAREHOUSE_TIMEOUT_MS,
  SHOWN_WAREHOUSE_SETTINGS,
  WAREHOUSE_SETTINGS,
  type WarehouseDestination,
  type WarehousePlace,
} from './settings.ts'

const ONLY_TARGET = [0] as const

/** Nodes of earlier versions need the settings of a webhook in every destination. */
const NO_WEBHOOK = {
  sealedUrls: [],
  sealedHeaders: {},
  sharedSecret: null,
  signingSecrets: [],
  request: null,
  transformation: null,
  auth: null,
  tls: null,
} as const

/** The place is encrypted as a whole. */
type StoredWarehouse = Omit<WarehouseDestination, 'warehouse'> & { sealedPlace?: string } & Partial<typeof NO_WEBHOOK>

export const WAREHOUSE: DestinationKind<WarehouseDestination, GivenWarehouse, StoredWarehouse> = {
  type: 'warehouse',
  noun: { one: 'a warehouse', many: 'warehouses' },
  package: 'warehouse',

  settings: WAREHOUSE_SETTINGS,
  shownSettings: SHOWN_WAREHOUSE_SETTINGS,
  maxTimeoutMs: MAX_WAREHOUSE_TIMEOUT_MS,
  slug: () => null,
  givenProblem: () => null,
  completed({ warehouse, load, ...rest }, before) {
    return { ...rest, ...(load && { load }), ...(warehouse && { warehouse: withKeptSecret(warehouse, before?.warehouse) }) }
  },
  problem({ warehouse, order = null, batch }, context) {
    if (order !== null) return { field: 'order', problem: 'has no effect on a warehouse, whose rows have their times; leave it out' }
    if (batch !== undefined && batch.size > 1) return { field: 'batch.size', problem: 'is not for warehouses; use `load`' }
    return warehouse === undefined ? null : placeProblem(warehouse, context)
  },
  movedSecrets,
  show,
  showHidden: (destination) => ({ ...show(destination), warehouse: hiddenPlace(destination.warehouse) }),
  content: { first: {}, shown: {} },
  origins: () => [],
  sameReceiver: (one, other) => (targetOf(one.warehouse) === targetOf(other.warehouse) ? 'the same place' : null),
  setupProblem: () => null,
  misfit: () => null,
  warnings: () => [],
  isInactive: () => false,
  acceptsDeadLetters: false,

  secretSettings: ['warehouse'],
  changedSecrets: (before, after) => (secretOf(before.warehouse) === secretOf(after.warehouse) ? [] : ['warehouse']),
  secretHeaders: () => new Set(),
  hidden: (destination) => destination,
  mappings: () => [],
  toStored({ warehouse, ...rest }) {
    return { ...rest, ...NO_WEBHOOK, sealedPlace: JSON.stringify(warehouse) }
  },
  fromStored({ sealedPlace = '{}', ...rest }) {
    for (const name of Object.keys(NO_WEBHOOK)) delete rest[name as keyof typeof NO_WEBHOOK]
    return { ...CLASSIC, ...rest, warehouse: JSON.parse(sealedPlace) as WarehousePlace }
  },
  withSecrets: sealed,
  withoutSecrets(stored) {
    const rest = { ...stored, ...NO_WEBHOOK }
    delete rest.sealedPlace
    return rest
  },
  upgraded: (stored, { reencrypt }) => sealed(stored, reencrypt),

  filter: () => null,
  deletesUsers: () => true,
  sharedNames: () => ['Warehouses'],

  place: 'loader',
  // The loads of a warehouse follow each other, on all nodes together.
  mostInFlight: () => 1,
  message: outboundMessage,
  targets: ({ warehouse }) => [targetOf(warehouse)],
  targetsLeft: () => ONLY_TARGET,
  stepsDone: (progress) => progress,
  // The id of the load stays, whatever became of it.
  progressAfter: (before) => before,
  keepsBatches: true,
  transformation: () => null,
  steps: () => null,
  shaper: () => null,
  carrier: null,
  requests: null,
  hasPassed: (attempts) => attempts.length > 0 && attempts.every(({ reason }) => reason === null),
  verdicts: () => () => 'temporary',

  facts: {
    receiver: ({ warehouse }) => (warehouse as JsonObject | undefined)?.['url'],
    settings({ warehouse, load, secretSettings }) {
      const place = Object.entries((warehouse ?? {}) as JsonObject).filter(([, value]) => value !== null && value !== false)
      return [
        ...place.map(([name, value]): Fact => [name, value]),
        ['secret settings', secretSettings],
        ['load', load === undefined ? undefined : JSON.stringify(load)],
      ]
    },
    content: () => [],
  },
}

function sealed(stored: StoredWarehouse, change: Sealing): StoredWarehouse {
  const { id, sealedPlace } = stored
  return { ...stored, ...(sealedPlace === undefined ? {} : { sealedPlace: change(sealedPlace, `${id}.warehouse`) }) }
}

function show({ warehouse, load }: WarehouseDestination) {
  const name = { parquet: 'secretAccessKey', postgres: 'url', clickhouse: 'password' }[warehouse.engine]
  return { warehouse: shownPlace(warehouse), load: { ...load }, secretSettings: secretOf(warehouse) === null ? [] : [name] }
}
