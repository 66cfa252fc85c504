// What the main thread and the writing thread say to each other. A group of commands is one message and one transaction;
// the bodies and keys of its batches lie in one buffer that is handed over, not copied. Plain data only.

import type { StoredDestination } from '../../configuration/stored-destination.ts'
import type { RecordRow } from '../../encoding/settlement.ts'
import type { Tally } from '../../history/tallies.ts'
import type { ReplayDoc } from '../../replays/replay-job-row.ts'
import type { AskedReplayState } from '../../replays/replay-states.ts'
import type {
  ClaimRequest,
  ControlToken,
  NewAuditEntry,
  NewDeletion,
  OAuthApp,
  Part,
  PlannedShipment,
  ReplayJobState,
  ReplayResult,
  ReplayStep,
  ReplayStepResult,
  Shipment,
  ShipmentDraft,
  Skip,
  Source,
  StatRow,
  TraceContext,
  UsedAssertion,
} from '../../store.ts'

export interface AcceptCommand {
  kind: 'accept'
  sourceId: string
  receivedAtMs: number
  ip: string | null
  browser: boolean
  /** As the column holds it. */
  trace: string | null
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

export interface SettleCommand {
  kind: 'settle'
  destinationId: string
  done: readonly { id: number; claim: number; attempt: number; dueAtMs: number }[]
  /** With how many deliveries each had and has now. */
  kept: readonly { id: number; claim: number; attempt: number; dueAtMs: number; before: number; count: number; parts: string }[]
  remaining: readonly ShipmentDraft[]
  records: readonly RecordRow<number>[]
}

export interface TallyCommand extends Tally {
  kind: 'tally'
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
  trace: TraceContext | null
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
  /** With what named it, as it is without it. */
  | { kind: 'deleteSource'; id: string; destinations: readonly StoredDestination[]; apps: readonly OAuthApp[] }
  | { kind: 'putDestination'; destination: StoredDestination; create: boolean }
  | { kind: 'deleteDestination'; id: string }
  | { kind: 'putOAuthApp'; app: OAuthApp; create: boolean }
  | { kind: 'deleteOAuthApp'; id: string }
  | { kind: 'useAssertion'; assertion: UsedAssertion; nowMs: number }
  | { kind: 'keepSecret'; name: string; sealed: string }
  | { kind: 'reseal'; destinations: readonly StoredDestination[]; settings: readonly ResealedSetting[] }
  | { kind: 'cancelStep'; destinationId: string; atMs: number }
  | { kind: 'setSetting'; name: string; value: string }
  | { kind: 'find'; messageId: string }
  | { kind: 'replay'; deliveryId: string; atMs: number }
  | { kind: 'replayBound' }
  | CreateReplayCommand
  | UpdateReplayCommand
  | { kind: 'replayStep'; step: ReplayStep; atMs: number }
  | { kind: 'createDeletion'; id: string; deletion: NewDeletion; atMs: number; targets: DeletionTargets[] }
  | { kind: 'purgeStep'; deletion: number }
  | { kind: 'createSuppressions'; userIds: readonly string[]; sourceIds: readonly string[]; atMs: number }
  | { kind: 'deleteSuppression'; userId: string; sourceId: string | null }
  | { kind: 'endDeletion'; after: number; beforeMs: number; pseudonymKey: string }
  | { kind: 'createToken'; token: ControlToken }
  | { kind: 'deleteToken'; id: string }
  | { kind: 'useToken'; id: string; atMs: number }
  | { kind: 'note' }
  | { kind: 'dropAudit'; beforeMs: number }
  | { kind: 'dropReplays'; beforeMs: number }
  | { kind: 'retentionBegin'; beforeMs: number }
  | { kind: 'retentionPin'; segments: Float64Array }
  | { kind: 'retentionStep' }
  | { kind: 'forgetKeys' }
  | { kind: 'mark'; scheduleMs: number }
  | { kind: 'addStats'; rows: readonly StatRow[] }
  | { kind: 'dropStats'; minutesBeforeMs: number; hoursBeforeMs: number }

export interface CreateReplayCommand {
  kind: 'createReplay'
  id: string
  doc: ReplayDoc
  ratePerSecond: number | null
  /** Rows from here on are not part of it. */
  bound: number
  total: number
  destinationIds: readonly string[]
  atMs: number
}

export interface UpdateReplayCommand {
  kind: 'updateReplay'
  id: string
  /** How it is believed to stand. */
  from: { state: ReplayJobState; ratePerSecond: number | null }
  state: AskedReplayState
  ratePerSecond: number | null
  atMs: number
}

export type ReplayStepReply =
  | (Extract<ReplayStepResult, { ok: true }> & { destinationIds: string[] })
  | Extract<ReplayStepResult, { ok: false }>

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

/** Null: it is taken away. */
export type ResealedSetting = readonly [name: string, sealed: string | null]

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
  putOAuthApp: null
  deleteOAuthApp: boolean
  /** Whether it was the first use. */
  useAssertion: boolean
  /** What is stored under the name. */
  keepSecret: string
  reseal: null
  /** How many shipments were cancelled. */
  cancelStep: number
  setSetting: null
  find: FoundKey[]
  replay: ReplayResult & { destinationId?: string }
  /** A number after every row that there is. */
  replayBound: number
  createReplay: null
  updateReplay: { ok: boolean }
  replayStep: ReplayStepReply
  /** With its delete messages, which are held until they are released. */
  createDeletion: { num: number; end: number; held: { id: number; claim: number; destinationId: string }[] }
  /** `end`: what is purged was accepted before it. */
  purgeStep: { over: boolean; end: number }
  createSuppressions: number
  deleteSuppression: number
  /** The number of the deletion that was looked at; null when there is none after. */
  endDeletion: number | null
  createToken: null
  deleteToken: boolean
  useToken: null
  note: null
  /** How many entries went. */
  dropAudit: number
  /** How many jobs went. */
  dropReplays: number
  /** The number before which rows go. */
  retentionBegin: number
  retentionPin: null
  /** False when everything older has gone. */
  retentionStep: boolean
  forgetKeys: null
  mark: null
  addStats: null
  /** False when everything older has gone. */
  dropStats: boolean
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
  'replayBound',
  'retentionBegin',
  'retentionPin',
  'forgetKeys',
])

export type Reply = { ok: true; value: unknown } | { ok: false; unavailable: boolean; message: string }

/** The group's buffer comes back to be filled again. */
export interface Answered {
  replies: Reply[]
  buffer: ArrayBuffer | null
  /** How long the group's transaction took; null when it had none. */
  commitMs: number | null
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
