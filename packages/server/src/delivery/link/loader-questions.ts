// What a loader asks the service, which has the store: a loader process knows nothing of it.

import type { TrackingPlan } from '@switchyard/protocol'
import type { LimitReached, SourceSchema, UnfitCount } from '@switchyard/warehouse'
import type { ReasonCode } from '../../api/attempt-reasons.ts'
import type { SchemaChange } from '../../store/port/warehouse-tables.ts'

interface OfSource {
  destinationId: string
  sourceId: string
}

/** A load begins. `known`: the revision of the schema, and the version of the plan, that the loader has. */
export interface LoadBegins extends OfSource {
  kind: 'begins'
  /** Null if nothing is loaded: a preview, or the deletion of users. */
  loadId: string | null
  known: { revision: number; plan: string } | null
}

/** The messages have brought new columns. */
export interface SchemaGrew extends OfSource {
  kind: 'grew'
  before: number
  change: SchemaChange
}

export interface LoadEnded extends OfSource {
  kind: 'ended'
  loadId: string
  /** The name of the schema. */
  schema: string
  /** What was committed by this attempt. */
  tables: readonly { table: string; rows: number }[]
  /** All tables that are committed. */
  loaded: readonly string[]
  /** Tables that could not be loaded, although the place can be reached. */
  failed: readonly { table: string; reason: ReasonCode }[]
  messages: number
  bytes: number
  durationMs: number
  unfit: readonly UnfitCount[]
  limits: readonly LimitReached[]
  recreated: readonly string[]
}

/** Which sources have tables. */
export interface SchemasWanted {
  kind: 'schemas'
  destinationId: string
}

/** Which loads are not recorded yet, so that their files must stay as they are. */
export interface OpenLoadsWanted {
  kind: 'open'
  destinationId: string
}

export type LoaderQuestion = LoadBegins | SchemaGrew | LoadEnded | SchemasWanted | OpenLoadsWanted

export interface LoadContext {
  installation: string
  sourceName: string
  /** Undefined: the loader knows it; null: nothing is stored. */
  schema: SourceSchema | null | undefined
  /** The names of the schemas of the destination's sources. */
  taken: readonly string[]
  /** Its id and version, empty for none. */
  plan: string
  /** Undefined: the loader knows them. */
  rules: TrackingPlan['rules'] | undefined
}

/** The answers, by kind of question. */
export interface LoaderAnswers {
  begins: LoadContext
  /** Whether it is stored. If not, somebody else has changed the schema. */
  grew: boolean
  ended: null
  schemas: { sourceId: string; schema: SourceSchema }[]
  open: string[]
}
