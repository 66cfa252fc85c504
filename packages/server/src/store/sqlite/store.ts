// The SQLite store as the port has it: one thread that writes, one that reads, and on this thread the configuration in
// memory, the forming of groups, and the handing over of new work. See group-commit.ts, writer.ts, reads.ts.

import { randomBytes, randomUUID } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import type { SecretBox } from '../../secret-box.ts'
import { readStoredBody } from '../../stored-messages.ts'
import {
  type AcceptBatch,
  type AcceptResult,
  type Claim,
  type ClaimedShipment,
  type Configuration,
  type ControlStore,
  type Destination,
  type NewDestination,
  type RowId,
  type SegmentContent,
  type Settlement,
  type Shipment,
  type Source,
  type Store,
  type Taker,
  WriteKeyTaken,
} from '../store.ts'
import type { AcceptCommand, ClaimReply, StoredDestination } from './commands.ts'
import { type Seed, sourceSeed } from './fingerprint.ts'
import { GroupCommit } from './group-commit.ts'
import { ReadingThread } from './reading-thread.ts'
import { writeKeys } from './segment-keys.ts'
import { settleCommand } from './settle-command.ts'
import { Tallies } from './tallies.ts'

export interface SqliteStoreOptions {
  path: string
  secretBox: SecretBox
  /** How long messages and attempts are kept. */
  retentionDays: number
  /** What keeps the store from working, for the log; null when it works again. */
  onState?: (problem: string | null) => void
}

export interface SqliteStore extends Store {
  /** Where schedule time stood when the store was last written: see clock.ts. */
  lastScheduleMs: number
  /** Work that runs on by itself, such as purges, reads the time here. Given once, before anything else. */
  useClock(clock: Clock): void
}

const DAY_MS = 86_400_000
const DEDUP_MS = DAY_MS
const MARK_EVERY_MS = 5_000

export async function createSqliteStore(options: SqliteStoreOptions): Promise<SqliteStore> {
  const writer = await GroupCommit.start({ path: options.path, dedupMs: DEDUP_MS }, options.onState ?? (() => {}))
  const reader = new ReadingThread(options.path)
  try {
    const store = new Sqlite(writer, reader, options)
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
  readonly #reader: ReadingThread
  readonly #secretBox: SecretBox
  readonly #retentionDays: number
  readonly #listeners: ((configuration: Configuration) => void)[] = []
  readonly #seeds = new Map<string, Seed>()
  readonly #tallies: Tallies
  #configuration: Configuration = { sources: new Map(), destinations: new Map(), suppressions: new Map() }
  #taker: Taker | null = null
  #clock: Clock = { wallMs: () => Date.now(), scheduleMs: () => Date.now() }
  #background = new Set<Promise<unknown>>()
  #closed = false
  #dropping: Promise<void> | null = null
  #marks: NodeJS.Timeout | undefined

  constructor(writer: GroupCommit, reader: ReadingThread, { secretBox, retentionDays }: SqliteStoreOptions) {
    this.#writer = writer
    this.#reader = reader
    this.#secretBox = secretBox
    this.#retentionDays = retentionDays
    this.#tallies = new Tallies((command) => writer.run<'tally'>(command, { again: true }))
  }

  get lastScheduleMs(): number {
    return this.#writer.scheduleMs
  }

  useClock(clock: Clock): void {
    this.#clock = clock
    const mark = (): void => {
      void this.#writer.run<'mark'>({ kind: 'mark', scheduleMs: clock.scheduleMs() }).catch(() => {})
    }
    this.#marks = setInterval(mark, MARK_EVERY_MS).unref()
  }

  async load(): Promise<void> {
    await this.#reload()
    const { cancelling, purging } = await this.#reader.ask('unfinished')
    for (const destinationId of cancelling) this.#run(this.#cancel(destinationId))
    for (const deletion of purging) this.#run(this.#purge(deletion))
  }

  configuration(): Configuration {
    return this.#configuration
  }

  onConfiguration(listener: (configuration: Configuration) => void): void {
    this.#listeners.push(listener)
  }

  async check(): Promise<{ ok: true } | { ok: false; message: string }> {
    try {
      await this.#writer.run<'mark'>({ kind: 'mark', scheduleMs: this.#clock.scheduleMs() })
      return { ok: true }
    } catch (error) {
      return { ok: false, message: (error as Error).message }
    }
  }

  /** One run at a time; a call during one waits for it. */
  dropExpired(nowMs: number): Promise<void> {
    this.#dropping ??= this.#drop(nowMs).finally(() => {
      this.#dropping = null
    })
    return this.#dropping
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }
  #closing: Promise<void> | undefined

  async #close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#marks)
    await this.check()
    // On a full disk, what goes on in steps would be tried again for ever.
    this.#writer.tryOnce()
    await Promise.allSettled([...this.#background, this.#dropping, this.#tallies.flush()])
    await this.#reader.close()
    await this.#writer.close()
  }

  // ── Ingest ──

  readonly ingest: Store['ingest'] = {
    accept: (batch) => this.#accept(batch),
    reject: (rejection) => this.#tallies.reject(rejection),
    suppressed: (sourceId, count) => this.#tallies.suppressed(sourceId, count),
  }

  async #accept({ content, body, messageIds, plan }: AcceptBatch): Promise<AcceptResult> {
    const taker = this.#taker
    const shipments = plan.shipments.map((shipment) => ({ ...shipment, own: false }))
    const command: AcceptCommand = {
      kind: 'accept',
      sourceId: content.sourceId,
      receivedAtMs: content.receivedAtMs,
      ip: content.ip,
      browser: content.browser,
      count: messageIds.length,
      keysAt: 0,
      bodyAt: 0,
      bodyBytes: body.length,
      shipments,
      skips: plan.skips,
    }
    const bytes = body.length
    const seed = this.#seedOf(content.sourceId)
    const committing = this.#writer.run<'accept'>(command, {
      body,
      writeKeys: (into, at) => writeKeys(messageIds, content.items, seed, into, at),
      prepare: () => {
        for (const shipment of shipments) shipment.own = taker?.wants(shipment.destinationId, bytes) ?? false
      },
    })
    const reply = await committing.catch((error: unknown) => {
      for (const { destinationId, own } of shipments) if (own) taker?.lost(destinationId, bytes)
      throw error
    })
    this.#hand(reply.owned, reply.left, shipments, content, reply.duplicates, bytes)
    return { segment: reply.segment, duplicates: reply.duplicates }
  }

  /** New work to whoever wanted it, and word of the rest. */
  #hand(
    owned: readonly Shipment[],
    left: readonly string[],
    wanted: readonly { destinationId: string; own: boolean }[],
    content: SegmentContent,
    duplicates: readonly number[],
    bytes: number,
  ): void {
    const taker = this.#taker
    if (taker === null) return
    const isDuplicate = new Set(duplicates)
    const present =
      duplicates.length === 0 ? content : { ...content, items: content.items.map((item, at) => (isDuplicate.has(at) ? null : item)) }
    for (const shipment of owned) {
      const segment = (shipment.parts[0] as { segment: RowId }).segment
      taker.take({ shipment, contents: new Map([[segment, present]]), bytes })
    }
    if (owned.length < wanted.length) {
      for (const { destinationId, own } of wanted) {
        if (own && !owned.some((shipment) => shipment.destinationId === destinationId)) taker.lost(destinationId, bytes)
      }
    }
    for (const destinationId of left) taker.wake(destinationId)
  }

  // ── Delivery ──

  readonly delivery: Store['delivery'] = {
    attach: (taker) => {
      this.#taker = taker
    },
    claim: async (request): Promise<Claim> => {
      const reply = await this.#writer.run<'claim'>({ kind: 'claim', ...request })
      return { shipments: claimed(reply), moreFresh: reply.moreFresh, nextRetryAtMs: reply.nextRetryAtMs }
    },
    claimOverdue: async (destinationId, firstAttemptBeforeMs, limit) =>
      claimed(await this.#writer.run<'claimOverdue'>({ kind: 'claimOverdue', destinationId, firstAttemptBeforeMs, limit })),
    release: (shipments) => {
      const released = this.#writer.run<'release'>({
        kind: 'release',
        shipments: shipments.map(({ id, claim }) => ({ id: id as number, claim })),
      })
      // What a destination was still owed when it was deleted is cancelled as soon as its holder lets go of it.
      const deleted = new Set(shipments.map(({ destinationId }) => destinationId).filter((id) => !this.#configuration.destinations.has(id)))
      this.#run(released.then(async () => void (await Promise.all([...deleted].map((id) => this.#cancel(id))))))
    },
    settle: async (settlement) => {
      await this.#settle(settlement)
    },
  }

  async #settle(settlement: Settlement): Promise<void> {
    await this.#writer.run<'settle'>(settleCommand(settlement), { again: true })
    const { destinationId, remaining } = settlement
    if (remaining.length > 0 && !this.#configuration.destinations.has(destinationId)) this.#run(this.#cancel(destinationId))
  }

  // ── Control ──

  readonly control: ControlStore = {
    createSource: (source) =>
      this.#inTurn(async () => {
        this.#refuseTakenKeys(source.writeKeys, null)
        const created: Source = { ...source, id: newId('src'), createdAtMs: this.#clock.wallMs() }
        await this.#writer.run<'putSource'>({ kind: 'putSource', source: created, create: true })
        this.#putSource(created)
        return created
      }),
    updateSource: (id, change) =>
      this.#inTurn(async () => {
        const before = this.#configuration.sources.get(id)
        if (before === undefined) return undefined
        if (change.writeKeys) this.#refuseTakenKeys(change.writeKeys, id)
        const source: Source = { ...before, ...change }
        await this.#writer.run<'putSource'>({ kind: 'putSource', source, create: false })
        this.#putSource(source)
        return source
      }),
    deleteSource: (id) =>
      this.#inTurn(async () => {
        for (const destination of this.#configuration.destinations.values()) {
          if (!destination.sourceIds.includes(id)) continue
          const detached = { ...destination, sourceIds: destination.sourceIds.filter((sourceId) => sourceId !== id) }
          await this.#writer.run<'putDestination'>({ kind: 'putDestination', destination: this.#sealed(detached), create: false })
          this.#putDestination(detached)
        }
        if (!(await this.#writer.run<'deleteSource'>({ kind: 'deleteSource', id }))) return false
        const sources = new Map(this.#configuration.sources)
        sources.delete(id)
        this.#change({ sources })
        return true
      }),
    createDestination: (destination) =>
      this.#inTurn(async () => {
        const created: Destination = { ...destination, id: newId('dst'), createdAtMs: this.#clock.wallMs() }
        await this.#writer.run<'putDestination'>({ kind: 'putDestination', destination: this.#sealed(created), create: true })
        this.#putDestination(created)
        return created
      }),
    updateDestination: (id, change: Partial<NewDestination>) =>
      this.#inTurn(async () => {
        const before = this.#configuration.destinations.get(id)
        if (before === undefined) return undefined
        const destination: Destination = { ...before, ...change }
        await this.#writer.run<'putDestination'>({ kind: 'putDestination', destination: this.#sealed(destination), create: false })
        this.#putDestination(destination)
        return destination
      }),
    deleteDestination: (id) =>
      this.#inTurn(async () => {
        if (!(await this.#writer.run<'deleteDestination'>({ kind: 'deleteDestination', id }))) return false
        const destinations = new Map(this.#configuration.destinations)
        destinations.delete(id)
        this.#change({ destinations })
        this.#run(this.#cancel(id))
        return true
      }),
    getSetting: (name) => this.#reader.ask('setting', name),
    setSetting: async (name, value) => {
      await this.#writer.run<'setSetting'>({ kind: 'setSetting', name, value })
    },
    ledger: async () => withAll(await this.#reader.ask('ledger'), this.#configuration),
    recount: async () => withAll(await this.#reader.ask('recount'), this.#configuration),
    oldestPendingAtMs: (destinationId) => this.#reader.ask('oldestPendingAtMs', destinationId),
    messages: async (filter, page) => {
      if (filter.messageId === undefined) return this.#reader.ask('messages', filter, page)
      const found = await this.#writer.run<'find'>({ kind: 'find', messageId: filter.messageId })
      return this.#reader.ask('messagesIn', found, filter, page)
    },
    message: async (id) => this.#reader.ask('message', id, await this.#writer.run<'find'>({ kind: 'find', messageId: id })),
    deliveries: (filter, page) => this.#reader.ask('deliveries', filter, page),
    delivery: (id) => this.#reader.ask('delivery', id),
    replay: async (deliveryId) => {
      const { destinationId, ...result } = await this.#writer.run<'replay'>({ kind: 'replay', deliveryId, atMs: this.#clock.wallMs() })
      if (destinationId !== undefined) this.#taker?.wake(destinationId)
      return result
    },
    rejections: () => this.#reader.ask('rejections'),
    sourceCounts: () => this.#reader.ask('sourceCounts'),
    createDeletion: async (deletion) => {
      const { sources, destinations } = this.#configuration
      const sourceIds = [...new Set(deletion.sourceIds ?? sources.keys())]
      const userIds = [...new Set(deletion.userIds)]
      const targets = sourceIds.map((sourceId) => ({
        sourceId,
        destinationIds: [...destinations.values()]
          .filter(({ enabled, sourceIds: of }) => enabled && of.includes(sourceId))
          .map(({ id }) => id),
      }))
      const id = newId('del')
      const atMs = this.#clock.wallMs()
      const { num, destinationIds } = await this.#writer.run<'createDeletion'>({
        kind: 'createDeletion',
        id,
        deletion: { ...deletion, userIds },
        atMs,
        targets,
      })
      if (deletion.suppress) await this.#inTurn(() => this.#reload())
      this.#run(this.#purge(num))
      for (const destinationId of destinationIds) this.#taker?.wake(destinationId)
      const detail = await this.#reader.ask('deletion', id)
      if (detail === undefined) throw new Error(`deletion ${id} is not there`)
      return detail
    },
    deletions: (page) => this.#reader.ask('deletions', page),
    deletion: (id) => this.#reader.ask('deletion', id),
    suppressions: (page) => this.#reader.ask('suppressions', page),
    deleteSuppression: async (userId, sourceId) => {
      const removed = await this.#writer.run<'deleteSuppression'>({ kind: 'deleteSuppression', userId, sourceId })
      if (removed > 0) await this.#inTurn(() => this.#reload())
      return removed
    },
  }

  // ── Configuration in memory ──

  async #reload(): Promise<void> {
    const { sources, destinations, suppressions } = await this.#reader.ask('configuration')
    const suppressed = new Map<string, Set<string>>()
    for (const { sourceId, userId } of suppressions) {
      const users = suppressed.get(sourceId) ?? new Set()
      suppressed.set(sourceId, users.add(userId))
    }
    this.#change({
      sources: new Map(sources.map((source) => [source.id, source])),
      destinations: new Map(destinations.map((destination) => [destination.id, this.#opened(destination)])),
      suppressions: suppressed,
    })
  }

  /** One change at a time: each is made from what the one before left. */
  #inTurn<T>(change: () => Promise<T>): Promise<T> {
    const result = this.#lastChange.then(change)
    this.#lastChange = result.catch(() => {})
    return result
  }
  #lastChange: Promise<unknown> = Promise.resolve()

  #change(change: Partial<Configuration>): void {
    this.#configuration = { ...this.#configuration, ...change }
    for (const listener of this.#listeners) listener(this.#configuration)
  }

  #putSource(source: Source): void {
    this.#change({ sources: new Map(this.#configuration.sources).set(source.id, source) })
  }

  #putDestination(destination: Destination): void {
    this.#change({ destinations: new Map(this.#configuration.destinations).set(destination.id, destination) })
  }

  #refuseTakenKeys(keys: readonly string[], exceptId: string | null): void {
    for (const source of this.#configuration.sources.values()) {
      if (source.id !== exceptId && source.writeKeys.some((key) => keys.includes(key))) throw new WriteKeyTaken()
    }
  }

  #sealed(destination: Destination): StoredDestination {
    const { sharedSecret, signingSecrets, id } = destination
    return {
      ...destination,
      sharedSecret: sharedSecret === null ? null : this.#secretBox.seal(sharedSecret, id),
      signingSecrets: signingSecrets.map((secret) => this.#secretBox.seal(secret, id)),
    }
  }

  #opened(destination: StoredDestination): Destination {
    const { sharedSecret, signingSecrets, id } = destination
    return {
      ...destination,
      sharedSecret: sharedSecret === null ? null : this.#secretBox.open(sharedSecret, id),
      signingSecrets: signingSecrets.map((secret) => this.#secretBox.open(secret, id)),
    }
  }

  #seedOf(sourceId: string): Seed {
    let seed = this.#seeds.get(sourceId)
    if (seed === undefined) {
      seed = sourceSeed(sourceId, this.#writer.seed)
      this.#seeds.set(sourceId, seed)
    }
    return seed
  }

  // ── Work that goes on in steps ──

  async #cancel(destinationId: string): Promise<void> {
    for (;;) {
      const atMs = this.#clock.wallMs()
      const cancelled = await this.#writer.run<'cancelStep'>({ kind: 'cancelStep', destinationId, atMs }, { again: true })
      if (cancelled === 0 || this.#closed) return
    }
  }

  async #purge(deletion: number): Promise<void> {
    for (;;) {
      const { over, purged } = await this.#writer.run<'purgeStep'>({ kind: 'purgeStep', deletion }, { again: true })
      for (const { segment, indexes } of purged) this.#taker?.purged(segment, indexes)
      if (over || this.#closed) return
    }
  }

  async #drop(nowMs: number): Promise<void> {
    const lineMs = Math.floor(nowMs / DAY_MS) * DAY_MS - this.#retentionDays * DAY_MS
    await this.#writer.run<'forgetKeys'>({ kind: 'forgetKeys', beforeMs: nowMs - DEDUP_MS })
    // The line first, then what is pinned: between the two nothing old can become owed again.
    const line = await this.#writer.run<'retentionBegin'>({ kind: 'retentionBegin', beforeMs: lineMs })
    await this.#writer.run<'retentionPin'>({ kind: 'retentionPin', segments: await this.#reader.ask('pinned', line) })
    while (!this.#closed && (await this.#writer.run<'retentionStep'>({ kind: 'retentionStep' })));
  }

  /** Steps that go on until they are over; taken up again at the next start if they are not. */
  #run(work: Promise<void>): void {
    const running: Promise<void> = work.catch(() => {}).finally(() => this.#background.delete(running))
    this.#background.add(running)
  }
}

function claimed({ shipments, segments }: ClaimReply): ClaimedShipment[] {
  const contents = new Map<RowId, SegmentContent>()
  for (const { seq, sourceId, receivedAtMs, ip, browser, absent, body } of segments) {
    contents.set(seq, readStoredBody(body, { sourceId, receivedAtMs, ip, browser }, absent))
  }
  return shipments.map(({ shipment, bytes }) => {
    const own = shipment.parts.map(({ segment }) => [segment, contents.get(segment)] as const)
    return { shipment, bytes, contents: new Map(own.filter((entry): entry is [RowId, SegmentContent] => entry[1] !== undefined)) }
  })
}

/** A destination that was never owed anything has a row of zeros. */
function withAll<T extends { destinationId: string }>(
  rows: readonly T[],
  { destinations }: Configuration,
): (T | (typeof NOTHING & { destinationId: string }))[] {
  const known = new Set(rows.map(({ destinationId }) => destinationId))
  const missing = [...destinations.keys()].filter((id) => !known.has(id)).map((destinationId) => Object.assign({ destinationId }, NOTHING))
  return [...rows, ...missing]
}

const NOTHING = { owed: 0, delivered: 0, pending: 0, failed: 0, expired: 0, cancelled: 0 }

function newId(prefix: string): string {
  return prefix === 'del' ? `del_${randomUUID()}` : `${prefix}_${randomBytes(9).toString('base64url').replaceAll(/[-_]/g, 'x')}`
}
