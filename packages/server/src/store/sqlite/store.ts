// The SQLite store. One thread writes and one reads; the main thread has the configuration in memory and forms groups of
// commands. See group-commit.ts, group-writer.ts and reader-thread.ts in threads/.

import type { SecretBox } from '../../secrets/secret-box.ts'
import { type Clock, createClock, scheduleStart } from '../../timing/clock.ts'
import { runInSteps } from '../../timing/run-in-steps.ts'
import { createSerialQueue } from '../../timing/serial-queue.ts'
import { CommonConfigurationStore } from '../configuration/common-configuration-store.ts'
import { CommonDeliveryStore } from '../delivery/common-delivery-store.ts'
import { documentStore } from '../history/documents.ts'
import { retentionRuns } from '../history/retention.ts'
import { bodyOf } from '../history/segment-rows.ts'
import { commonOrderStore } from '../ordering/common-order-store.ts'
import type { ClaimedShipment } from '../port/delivery.ts'
import type { SegmentBody } from '../port/stored-messages.ts'
import { commonQuarantineStore } from '../quarantine/common-quarantine-store.ts'
import { CommonReplayStore } from '../replays/common-replay-store.ts'
import type { ReplayJobRows } from '../replays/replay-rows.ts'
import type { Configuration, DocumentStore, MessageFilter, NewAuditEntry, PageRequest, RowId, StatRow, Store } from '../store.ts'
import { auditNote } from './commands/protocol.ts'
import { ConfigurationFile, createSettings, type MainContext } from './configuration-file.ts'
import { SqliteDeletions } from './deletions.ts'
import { SqliteIngest } from './ingest.ts'
import { encryptCredentials, PLAIN_CREDENTIALS } from './migration/encrypt-credentials.ts'
import { SQLITE_ROW_ORDER } from './schema/row-ids.ts'
import { GroupCommit } from './threads/group-commit.ts'
import { inspectSqlite } from './threads/inspect.ts'
import { ReaderClient } from './threads/reader-client.ts'
import type { Reads } from './threads/reader-thread.ts'
import type { ClaimReply } from './writing/read-claims.ts'
import { settleCommand } from './writing/write-settle.ts'

export interface SqliteStoreOptions {
  path: string
  secretBox: SecretBox
  /** How long messages and attempts are kept. */
  retentionDays: number
  /** After this many days, messages in quarantine are deleted. Null: never. */
  quarantineDays?: number | null
  /** Called with the reason when the store becomes unavailable, and with null when it is available again. For the log. */
  onState?: (problem: string | null) => void
  /** Called after every commit with its duration and the number of commands that shared it. */
  onCommit?: (commitMs: number, commands: number) => void
}

export interface SqliteStore extends Store {
  /** Where schedule time starts: see clock.ts. */
  scheduleStartMs: number
  /** The clock for work that the store does by itself, such as purges. Must be called once, before anything else. */
  useClock(clock: Clock): void
}

const DAY_MS = 86_400_000
const DEDUP_MS = DAY_MS
const MARK_EVERY_MS = 5_000
/** How often to check whether an unavailable store can be written to again. Nothing is sent until then. */
const PROBE_EVERY_MS = 250

export async function createSqliteStore(options: SqliteStoreOptions): Promise<SqliteStore> {
  let store: Sqlite | undefined
  const writer = await GroupCommit.start({ path: options.path, dedupMs: DEDUP_MS }, (problem) => {
    store?.onState(problem)
    options.onState?.(problem)
  })
  writer.onCommit = options.onCommit
  const reader = new ReaderClient(options.path)
  try {
    if ((await reader.ask('configuration', 'getSetting', PLAIN_CREDENTIALS)) !== undefined)
      await encryptCredentials(options.path, options.secretBox)
    store = new Sqlite(writer, reader, options)
    await store.load()
    return store
  } catch (error) {
    await reader.close()
    await writer.close()
    throw error
  }
}

class Sqlite implements SqliteStore {
  readonly #writer: GroupCommit
  readonly #reader: ReaderClient
  readonly #dropExpired: ReturnType<typeof retentionRuns>
  readonly #file: ConfigurationFile
  readonly books: Store['books']
  readonly resources: Store['resources'] & CommonConfigurationStore
  readonly secrets: CommonConfigurationStore
  readonly oauth: Store['oauth']
  readonly history: Store['history']
  readonly replays: Store['replays']
  readonly documents: Store['documents']
  readonly quarantine: Store['quarantine']
  readonly order: Store['order']
  readonly deletions: SqliteDeletions
  readonly ingest: SqliteIngest
  #clock: Clock
  #background = new Set<Promise<unknown>>()
  #closed = false
  #marks: NodeJS.Timeout | undefined
  #probes: NodeJS.Timeout | undefined

  constructor(writer: GroupCommit, reader: ReaderClient, { path, secretBox, retentionDays, quarantineDays = null }: SqliteStoreOptions) {
    this.#writer = writer
    writer.onWritable = (isWritable) => this.delivery.setWritable(isWritable)
    this.#reader = reader
    // Until useClock() is called. Tools such as `rotate-key` never call it, and schedule time may be days behind the wall clock.
    this.#clock = createClock(this.scheduleStartMs)
    const nowMs = (): number => this.#clock.wallMs()
    const wake = (destinationId: string): void => this.delivery.consumer?.wake(destinationId)
    const context: MainContext = {
      writer,
      reader,
      nowMs,
      consumer: () => this.delivery.consumer,
      configuration: () => this.configuration(),
      isClosed: () => this.#closed,
      run: (work) => this.#run(work),
    }
    this.#file = new ConfigurationFile(context, secretBox, (id) => this.#run(this.#cancel(id)))
    const settings = createSettings(writer, reader)
    this.resources = Object.assign(new CommonConfigurationStore(this.#file, nowMs), settings)
    this.secrets = this.resources
    this.oauth = settings
    this.replays = new CommonReplayStore(replayJobRows(context), { nowMs, wake, configuration: () => this.configuration() })
    this.quarantine = commonQuarantineStore({
      ...reader.methods('quarantine', 'list', 'find', 'idsBefore'),
      release: async (messages, atMs, audit) =>
        (await writer.call('quarantine', 'release', [messages, atMs], auditNote(audit, atMs))) || { ids: [], destinationIds: [] },
      delete: async (ids, atMs, outcome, audit) =>
        (await writer.call('quarantine', 'delete', [ids, atMs, outcome], auditNote(audit, atMs))) || [],
      nowMs,
      wake,
    })
    this.order = commonOrderStore({
      ...reader.methods('order', 'read', 'counts', 'allCounts', 'crowded'),
      skip: (...args) => writer.call('order', 'skip', args),
      retryNow: (...args) => writer.call('order', 'retryNow', args),
      seed: () => writer.seed,
      configuration: () => this.configuration(),
      nowMs,
      wake,
      isClosed: context.isClosed,
    })
    this.deletions = new SqliteDeletions(context, {
      changes: this.#file,
      secrets: this.secrets,
      deleted: this.delivery.deleted,
      release: (shipments) => this.delivery.releaseHeld(shipments),
    })
    this.#dropExpired = retentionRuns({
      retentionDays,
      quarantineDays,
      drop: {
        quarantined: (beforeMs) => this.quarantine.expire(beforeMs),
        messages: (beforeMs) => this.#dropMessages(beforeMs),
        audit: (beforeMs) => writer.call('books', 'dropAudit', [beforeMs]),
        replayJobs: (beforeMs) => writer.call('replays', 'drop', [beforeMs]),
        endDeletions: (beforeMs) => this.deletions.end(beforeMs),
        packed: (atMs) => writer.call('books', 'packStats', [atMs]),
        stats: (...beforeMs) => writer.call('books', 'dropStats', beforeMs),
      },
      isClosed: context.isClosed,
    })
    const find = (messageId: string) => writer.run('find', { messageId })
    this.history = reader.topic('history', {
      messages: async (filter: MessageFilter, page: PageRequest) =>
        reader.ask('found', 'messages', filter.messageId === undefined ? [] : await find(filter.messageId), filter, page),
      message: async (id: string, sourceIds?: readonly string[]) => reader.ask('found', 'message', await find(id), id, sourceIds),
      trails: async (id: string, sourceIds?: readonly string[]) => reader.ask('found', 'trails', await find(id), id, sourceIds),
      noteAudit: async (entry: NewAuditEntry) => {
        await writer.run('note', auditNote(entry, nowMs()))
      },
    })
    this.books = reader.topic('books', {
      inspect: (deadlineMs: number) => inspectSqlite(path, deadlineMs),
      addStats: (rows: readonly StatRow[]) => writer.run('addStats', { rows }),
    })
    this.documents = createDocuments(context)
    this.ingest = new SqliteIngest(context)
  }

  get scheduleStartMs(): number {
    return scheduleStart(this.#writer.scheduleMark, Date.now())
  }

  useClock(clock: Clock): void {
    this.#clock = clock
    const mark = (): void => void this.#mark().catch(() => {})
    // Before any due time is stored: a process that is killed soon after its start must not continue at an earlier time.
    mark()
    this.#marks = setInterval(mark, MARK_EVERY_MS).unref()
  }

  async load(): Promise<void> {
    await this.#file.load()
    const { cancelling, purging, lastDeletion } = await this.#reader.ask('configuration', 'unfinished')
    for (const destinationId of cancelling) this.#run(this.#cancel(destinationId))
    this.deletions.start(lastDeletion, purging)
  }

  configuration(): Configuration {
    return this.#file.configuration
  }

  onConfiguration(listener: (configuration: Configuration) => void): void {
    this.#file.listen(listener)
  }

  async check(): Promise<{ ok: true } | { ok: false; message: string }> {
    try {
      await this.#mark()
      return { ok: true }
    } catch (error) {
      return { ok: false, message: (error as Error).message }
    }
  }

  /** Called with the reason when a write failed because of the disk, and with null after the next commit. */
  onState(problem: string | null): void {
    clearInterval(this.#probes)
    // A commit shows that it is available again. Without traffic, and with nothing to record, there would be none for seconds.
    if (problem !== null && !this.#closed) this.#probes = setInterval(() => void this.check(), PROBE_EVERY_MS).unref()
  }

  #mark(): Promise<void> {
    return this.#writer.run('mark', { scheduleMs: this.#clock.scheduleMs(), wallMs: this.#clock.wallMs() })
  }

  dropExpired(nowMs = this.#clock.wallMs()): Promise<void> {
    return this.#dropExpired(nowMs)
  }

  close(): Promise<boolean> {
    this.#closing ??= this.#close()
    return this.#closing
  }
  #closing: Promise<boolean> | undefined

  async #close(): Promise<boolean> {
    this.#closed = true
    clearInterval(this.#marks)
    clearInterval(this.#probes)
    await this.check()
    // Otherwise, on a full disk, work that runs in steps would be retried for ever.
    this.#writer.stopRetrying()
    await Promise.allSettled([...this.#background, this.#dropExpired.running, this.ingest.flush()])
    await this.#reader.close()
    await this.#writer.close()
    return true
  }

  readonly delivery = new CommonDeliveryStore({
    claim: async (request) => {
      const reply = await this.#writer.run('claim', request)
      return { shipments: claimed(reply), moreFresh: reply.moreFresh, nextRetryAtMs: reply.nextRetryAtMs }
    },
    claimOrdered: async (request) => {
      const { more, nextHeadAtMs, ...reply } = await this.#writer.run('claimOrdered', request)
      return { shipments: claimed(reply), more, nextHeadAtMs }
    },
    orderedUntilMs: () => Number.POSITIVE_INFINITY,
    claimOverdue: async (destinationId, firstAttemptBeforeMs, limit) =>
      claimed(await this.#writer.run('claimOverdue', { destinationId, firstAttemptBeforeMs, limit })),
    claimCrowded: async (destinationId, maxWaiting, limit) => {
      const reply = await this.#writer.run('claimCrowded', { destinationId, maxWaiting, limit })
      return claimed(reply).map((one, at) => ({ claimed: one, keys: new Set(reply.keys[at]) }))
    },
    release: (shipments) => this.#writer.run('release', { shipments: shipments.map(({ id, claim }) => ({ id: id as number, claim })) }),
    settle: (settlement) =>
      this.deletions.settle(settlement, (current, known) =>
        this.#writer.run('settle', settleCommand(current, this.#writer.seed, known), { retry: true }),
      ),
    cancel: (destinationId) => this.#cancel(destinationId),
    share: (_destinationId, maxInFlight) => maxInFlight,
    configuration: () => this.configuration(),
    run: (work) => this.#run(work),
  })

  // ── Work in steps ──

  #cancel(destinationId: string): Promise<void> {
    const step = () => this.#writer.run('cancelStep', { destinationId, atMs: this.#clock.wallMs() }, { retry: true })
    return runInSteps(step, () => this.#closed)
  }

  async #dropMessages(beforeMs: number): Promise<void> {
    const writer = this.#writer
    await writer.run('forgetKeys', {})
    // The cutoff must be set before the pinned segments are read, so that no older segment can get new deliveries in between.
    const cutoff = await writer.run('retentionBegin', { beforeMs })
    await writer.run('retentionPin', await this.#reader.ask('retention', 'pinned', cutoff))
    await runInSteps(
      () => writer.run('retentionStep', {}),
      () => this.#closed,
    )
  }

  /** Runs work in the background. If it is not complete when the store closes, the next start continues it. */
  #run(work: Promise<void>): void {
    const running: Promise<void> = work.catch(() => {}).finally(() => this.#background.delete(running))
    this.#background.add(running)
  }
}

function claimed({ shipments, segments }: Pick<ClaimReply, 'shipments' | 'segments'>): ClaimedShipment[] {
  const all = new Map<RowId, SegmentBody>()
  for (const segment of segments) all.set(segment.seq, bodyOf(segment, segment.body))
  return shipments.map(({ shipment, bytes }) => {
    const own = shipment.parts.map(({ segment }) => [segment, all.get(segment)] as const)
    return { shipment, bytes, bodies: new Map(own.filter((entry): entry is [RowId, SegmentBody] => entry[1] !== undefined)) }
  })
}

/** Only one process uses a file, so its updates run one after another: each reads with the reading thread and writes with one command. */
function createDocuments({ writer, reader }: MainContext): DocumentStore {
  const inTurn = createSerialQueue()
  const rows = { ...reader.methods('documents', 'stored', 'page'), ...writer.methods('documents', 'write', 'drop') }
  return documentStore(rows, (_, work) => inTurn(() => work(rows)))
}

/** Calls that only read go to the reading thread, so that counting a million failures does not block writers. */
function replayJobRows({ writer, reader, nowMs }: MainContext): ReplayJobRows<number> {
  const writes: Omit<ReplayJobRows<number>, keyof Reads['replays']> = {
    order: SQLITE_ROW_ORDER,
    bound: () => writer.run('replayBound', {}),
    insert: (row, audit) => writer.call('replays', 'insert', [row], auditNote(audit, row.job.createdAtMs)),
    change: (id, before, after, atMs, audit) => writer.call('replays', 'change', [id, before, after], auditNote(audit, atMs)),
    replay: (deliveryId, resume, atMs, audit) => writer.call('replays', 'replay', [deliveryId, resume, atMs], auditNote(audit, atMs)),
    step: (step) => writer.call('replays', 'step', [step, nowMs()]),
  }
  return reader.topic('replays', writes)
}
