// What the main thread and the writing thread say to each other. A group of commands is one message and one transaction;
// the bodies and keys of its batches lie in one buffer that is handed over, not copied. Plain data only.

import type {
  ClaimRequest,
  Destination,
  NewAuditEntry,
  NewDeletion,
  Part,
  PlannedShipment,
  Rejection,
  ReplayResult,
  Shipment,
  ShipmentDraft,
  Skip,
  Source,
} from '../store.ts'

export interface AcceptCommand {
  kind: 'accept'
  sourceId: string
  receivedAtMs: number
  ip: string | null
  browser: boolean
  count: number
  /** Words into the group's buffer. */
  keysAt: number
  /** Bytes into the group's buffer. */
  bodyAt: number
  bodyBytes: number
  shipments: readonly (PlannedShipment & { own: boolean })[]
  skips: readonly Skip[]
}

export interface AcceptReply {
  segment: number | null
  duplicates: number[]
  /** Those that were to be owned, claimed. */
  owned: Shipment[]
  /** Destinations for which work was left in the store. */
  left: string[]
}

/** An attempt record with its requests already in the form they are stored in. */
export interface RecordRow {
  origin: number
  segment: number
  attempt: number
  atMs: number
  replay: boolean
  delivered: number
  failed: number
  expired: number
  cancelled: number
  doc: string
  /** One entry for each message that ended without success. */
  failures: { state: string; reason: string | null; index: number }[]
}

export interface SettleCommand {
  kind: 'settle'
  destinationId: string
  done: readonly { id: number; claim: number; attempt: number; dueAtMs: number }[]
  remaining: readonly ShipmentDraft[]
  records: readonly RecordRow[]
}

export interface TallyCommand {
  kind: 'tally'
  rejections: readonly Rejection[]
  suppressed: readonly [sourceId: string, count: number][]
}

export interface ClaimCommand extends ClaimRequest {
  kind: 'claim'
}

export interface RawSegment {
  seq: number
  sourceId: string
  receivedAtMs: number
  ip: string | null
  browser: boolean
  absent: number[]
  body: Uint8Array
}

export interface ClaimReply {
  shipments: { shipment: Shipment; bytes: number }[]
  segments: RawSegment[]
  moreFresh: boolean
  nextRetryAtMs: number | null
}

/** Who did what, written in the transaction of the change. */
export interface AuditNote extends NewAuditEntry {
  atMs: number
}

export function auditNote(entry: NewAuditEntry | undefined, atMs: number): { audit?: AuditNote } {
  return entry === undefined ? {} : { audit: { ...entry, atMs } }
}

/** A change that somebody made carries who it was; the note is kept only if something was changed. */
export type Command = Change & { audit?: AuditNote }

type Change =
  | AcceptCommand
  | SettleCommand
  | ClaimCommand
  | { kind: 'claimOverdue'; destinationId: string; firstAttemptBeforeMs: number; limit: number }
  | { kind: 'release'; shipments: { id: number; claim: number }[] }
  | TallyCommand
  | { kind: 'putSource'; source: Source; create: boolean }
  | { kind: 'deleteSource'; id: string }
  | { kind: 'putDestination'; destination: StoredDestination; create: boolean }
  | { kind: 'deleteDestination'; id: string }
  | { kind: 'cancelStep'; destinationId: string; atMs: number }
  | { kind: 'setSetting'; name: string; value: string }
  | { kind: 'find'; messageId: string }
  | { kind: 'replay'; deliveryId: string; atMs: number }
  | { kind: 'createDeletion'; id: string; deletion: NewDeletion; atMs: number; targets: DeletionTargets[] }
  | { kind: 'purgeStep'; deletion: number }
  | { kind: 'deleteSuppression'; userId: string; sourceId: string | null }
  | { kind: 'retentionBegin'; beforeMs: number }
  | { kind: 'retentionPin'; segments: Float64Array }
  | { kind: 'retentionStep' }
  | { kind: 'forgetKeys'; beforeMs: number }
  | { kind: 'mark'; scheduleMs: number }

/** The affected sources, and which enabled destinations each has. */
export interface DeletionTargets {
  sourceId: string
  destinationIds: readonly string[]
}

/** A segment that may hold a message, and by which fingerprint. */
export interface FoundKey {
  segment: number
  fingerprint: Uint32Array
}

/** As it lies in the store: secrets encrypted. */
export type StoredDestination = Omit<Destination, 'sharedSecret' | 'signingSecrets'> & {
  sharedSecret: string | null
  signingSecrets: readonly string[]
}

export interface Replies {
  accept: AcceptReply
  settle: null
  claim: ClaimReply
  claimOverdue: ClaimReply
  release: null
  tally: null
  putSource: null
  deleteSource: boolean
  putDestination: null
  deleteDestination: boolean
  /** How many shipments were cancelled. */
  cancelStep: number
  setSetting: null
  find: FoundKey[]
  replay: ReplayResult & { destinationId?: string }
  createDeletion: { num: number; destinationIds: string[] }
  purgeStep: { over: boolean; purged: { segment: number; indexes: number[] }[] }
  deleteSuppression: number
  /** The number before which rows go. */
  retentionBegin: number
  retentionPin: null
  /** False when everything older has gone. */
  retentionStep: boolean
  forgetKeys: null
  mark: null
}

export interface Group {
  buffer: ArrayBuffer | null
  commands: Command[]
}

/** Those that change nothing that is stored. They come after the commit, and see it; what is given back comes before. */
export const OUTSIDE: ReadonlySet<Command['kind']> = new Set([
  'claim',
  'claimOverdue',
  'release',
  'find',
  'retentionBegin',
  'retentionPin',
  'forgetKeys',
])

export type Reply = { ok: true; value: unknown } | { ok: false; unavailable: boolean; message: string }

/** The group's buffer comes back to be filled again. */
export interface Answered {
  replies: Reply[]
  buffer: ArrayBuffer | null
}

/** Rows name deliveries by shipment and index, and messages by segment and index. */
export function rowAndIndex(id: string): { row: number; index: number } | undefined {
  const match = /^([1-9]\d{0,15})-(0|[1-9]\d{0,3})$/.exec(id)
  if (match === null) return undefined
  const row = Number(match[1])
  return Number.isSafeInteger(row) ? { row, index: Number(match[2]) } : undefined
}

/** Parts as stored: 0 for all messages of the segment. */
export type StoredPart = [origin: number, segment: number, indexes: readonly number[] | 0]

export function storedParts(parts: readonly Part[]): string {
  return JSON.stringify(parts.map(({ origin, segment, indexes }) => [origin, segment, indexes]))
}
