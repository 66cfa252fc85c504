// The writing thread: the only one that changes the file. It takes groups of commands, makes each group one transaction
// and one commit, and answers when it is durable. A full or missing disk fails the group as a whole and is not the
// commands' fault; a command that fails by itself is found by running the group's commands one by one.

import { randomBytes } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { FINGERPRINT_WORDS, fingerprint, type Seed, sourceSeed } from '../../encoding/fingerprint.ts'
import { Duplicates } from '../keys/duplicates.ts'
import { KEY_AGE_SETTING, KeyAge } from '../keys/key-age.ts'
import { Claims } from '../messages/claims.ts'
import { Ledger } from '../messages/ledger.ts'
import { ClaimReader } from '../messages/read-claims.ts'
import { SourceCounts } from '../messages/source-counts.ts'
import { AcceptWriter } from '../messages/write-accept.ts'
import { SettleWriter } from '../messages/write-settle.ts'
import { Retention } from '../rows/retention.ts'
import { AuditWriter } from '../rows/write-audit.ts'
import { ControlWriter } from '../rows/write-control.ts'
import { DeletionEnds } from '../rows/write-deletion-ends.ts'
import { DeletionWriter } from '../rows/write-deletions.ts'
import { OAuthWriter } from '../rows/write-oauth.ts'
import { ReplayWriter } from '../rows/write-replays.ts'
import { SecretsWriter } from '../rows/write-secrets.ts'
import { StatsWriter } from '../rows/write-stats.ts'
import { TokenWriter } from '../rows/write-tokens.ts'
import { lockStore, openProblem, openWriter, StoreProblem } from '../schema/database.ts'
import { RowIds } from '../schema/ids.ts'
import { Names } from '../schema/names.ts'
import { type Answered, type Command, type FoundKey, type Group, OUTSIDE, type Replies, type Reply } from './commands.ts'
import { openLogIndex } from './log-index.ts'

export interface WriterOptions {
  path: string
  /** How long a messageId is remembered at least. */
  dedupMs: number
}

export type WriterStart = { ok: true; seed: Seed; scheduleMs: number } | { ok: false; problem: boolean; message: string }

/** Pages in the log, 8 MB: enough to copy a page that is written often only once, few enough not to be felt. */
const CHECKPOINT_FRAMES = 2_000
/** Answers of SQLite that say something about the disk and nothing about the command. */
const UNAVAILABLE = new Set([5 /* BUSY */, 6 /* LOCKED */, 8 /* READONLY */, 10 /* IOERR */, 13 /* FULL */, 14 /* CANTOPEN */])

class Writer {
  readonly #log: { frames(): number; close(): void }
  readonly #database: DatabaseSync
  readonly #ids: RowIds
  readonly #sources: Names
  readonly #destinations: Names
  readonly #keyAge: KeyAge
  readonly #duplicates: Duplicates
  readonly #ledger: Ledger
  readonly #claims = new Claims()
  readonly #counts: SourceCounts
  readonly #accept: AcceptWriter
  readonly #settle: SettleWriter
  readonly #control: ControlWriter
  readonly #deletions: DeletionWriter
  readonly #replays: ReplayWriter
  readonly #oauth: OAuthWriter
  readonly #secrets: SecretsWriter
  readonly #retention: Retention
  readonly #audit: AuditWriter
  readonly #tokens: TokenWriter
  readonly #deletionEnds: DeletionEnds
  readonly #stats: StatsWriter
  readonly #reader: ClaimReader
  readonly #lock: { release(): void }
  readonly seed: Seed

  constructor({ path, dedupMs }: WriterOptions, lock: { release(): void }) {
    this.#lock = lock
    const database = openWriter(path)
    this.#database = database
    this.#log = openLogIndex(path)
    this.seed = this.#readSeed()
    this.#ids = new RowIds(this.#newestId())
    this.#sources = new Names(database, 'sources')
    this.#destinations = new Names(database, 'destinations')
    this.#keyAge = new KeyAge(this.#setting(KEY_AGE_SETTING), this.#ids.last, dedupMs)
    this.#duplicates = new Duplicates(database, this.#keyAge.oldUpTo + 1)
    this.#ledger = new Ledger(database)
    this.#counts = new SourceCounts(database)
    const parts = {
      database,
      ids: this.#ids,
      sources: this.#sources,
      destinations: this.#destinations,
      duplicates: this.#duplicates,
      ledger: this.#ledger,
      claims: this.#claims,
      counts: this.#counts,
      seed: this.seed,
    }
    this.#accept = new AcceptWriter(parts)
    this.#settle = new SettleWriter(parts)
    this.#retention = new Retention(database, this.#duplicates, this.#ids)
    this.#control = new ControlWriter({ ...parts, settler: this.#settle })
    this.#deletions = new DeletionWriter(parts)
    this.#replays = new ReplayWriter({ ...parts, settler: this.#settle, retention: this.#retention })
    this.#oauth = new OAuthWriter(database)
    this.#secrets = new SecretsWriter(database)
    this.#audit = new AuditWriter(database, this.#ids)
    this.#tokens = new TokenWriter(database)
    this.#deletionEnds = new DeletionEnds(database)
    this.#stats = new StatsWriter(database)
    this.#reader = new ClaimReader(database, this.#claims, this.#sources, this.#destinations)
  }

  get scheduleMs(): number {
    return Number(this.#setting('schedule_ms') ?? 0)
  }

  /** How long the last group's transaction took; null when it had none. */
  commitMs: number | null = null

  run({ buffer, commands }: Group): Reply[] {
    const replies = Array.from<Reply>({ length: commands.length })
    const before: number[] = []
    const inside: number[] = []
    const outside: number[] = []
    for (let at = 0; at < commands.length; at++) {
      const { kind } = commands[at] as Command
      // What was given back before it was settled is no longer held then.
      ;(kind === 'release' ? before : OUTSIDE.has(kind) ? outside : inside).push(at)
    }
    for (const at of before) replies[at] = this.#one(commands[at] as Command, buffer)
    this.commitMs = null
    if (inside.length > 0) {
      const startedMs = performance.now()
      this.#commit(inside, commands, buffer, replies)
      this.commitMs = performance.now() - startedMs
    }
    for (const at of outside) replies[at] = this.#one(commands[at] as Command, buffer)
    if (inside.length > 0) this.#checkpointIfLong()
    return replies
  }

  close(): void {
    try {
      this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    } catch {
      // The log is read at the next start; a full disk must not keep the process from ending.
    }
    this.#database.close()
    // After the database: closing any handle of a file gives up the locks that this process has on it.
    this.#log.close()
    this.#lock.release()
  }

  #commit(inside: readonly number[], commands: readonly Command[], buffer: ArrayBuffer | null, replies: Reply[]): void {
    this.#duplicates.begin()
    let failed: unknown
    try {
      this.#database.exec('BEGIN IMMEDIATE')
      for (const at of inside) replies[at] = { ok: true, value: this.#noted(commands[at] as Command, buffer) }
      this.#ledger.write()
      this.#counts.write()
      this.#duplicates.writeSome()
      this.#database.exec('COMMIT')
    } catch (error) {
      failed = error ?? new Error('failed')
    }
    if (failed === undefined) {
      this.#duplicates.committed()
      this.#settle.committed()
      this.#claims.committed()
      this.#retention.committed()
      return
    }
    this.#rollBack()
    if (isUnavailable(failed) || inside.length === 1) {
      for (const at of inside) replies[at] = failure(failed)
      return
    }
    for (const at of inside) this.#commit([at], commands, buffer, replies)
  }

  #rollBack(): void {
    try {
      this.#database.exec('ROLLBACK')
    } catch {
      // SQLite rolls back by itself after some errors, a full disk among them.
    }
    this.#duplicates.rolledBack()
    this.#ledger.rolledBack()
    this.#counts.rolledBack()
    this.#settle.rolledBack()
    this.#claims.rolledBack()
    this.#retention.rolledBack()
    this.#deletions.rolledBack()
    this.#sources.forget()
    this.#destinations.forget()
  }

  #one(command: Command, buffer: ArrayBuffer | null): Reply {
    try {
      const value = this.#apply(command, buffer)
      this.#claims.committed()
      return { ok: true, value }
    } catch (error) {
      // What a claim took before it failed was given to nobody.
      this.#claims.rolledBack()
      return failure(error)
    }
  }

  #noted(command: Command, buffer: ArrayBuffer | null): Replies[Command['kind']] {
    const value = this.#apply(command, buffer)
    if (command.audit !== undefined && hasChanged(value)) this.#audit.insert(command.audit)
    return value
  }

  #apply(command: Command, buffer: ArrayBuffer | null): Replies[Command['kind']] {
    switch (command.kind) {
      case 'accept':
        return this.#accept.accept(command, buffer as ArrayBuffer)
      case 'settle':
        this.#settle.settle(command)
        return null
      case 'claim':
        return this.#reader.claim(command)
      case 'claimOverdue':
        return this.#reader.claimOverdue(command.destinationId, command.firstAttemptBeforeMs, command.limit)
      case 'release':
        for (const { id, claim } of command.shipments) this.#claims.release(id, claim)
        return null
      case 'tally':
        for (const { sourceId, code, count, atMs, sample } of command.rejections) {
          this.#counts.reject(this.#sourceOrNone(sourceId), code, count, atMs, sample)
        }
        for (const [sourceId, count] of command.suppressed) this.#counts.add(this.#sourceOrNone(sourceId), 'suppressed', count)
        return null
      case 'putSource':
        this.#control.putSource(command.source, command.create)
        return null
      case 'deleteSource':
        for (const destination of command.destinations) this.#control.putDestination(destination, false)
        for (const app of command.apps) this.#oauth.put(app, false)
        return this.#control.delete('sources', command.id)
      case 'putDestination':
        this.#control.putDestination(command.destination, command.create)
        return null
      case 'deleteDestination':
        this.#secrets.forget(command.id)
        return this.#control.delete('destinations', command.id)
      case 'putOAuthApp':
        this.#oauth.put(command.app, command.create)
        return null
      case 'deleteOAuthApp':
        return this.#oauth.delete(command.id)
      case 'useAssertion':
        return this.#oauth.useAssertion(command.assertion, command.nowMs)
      case 'keepSecret':
        return this.#secrets.keep(command.name, command.sealed)
      case 'reseal':
        this.#secrets.replace(command.destinations, command.settings)
        return null
      case 'cancelStep':
        return this.#control.cancelStep(command.destinationId, command.atMs)
      case 'setSetting':
        this.#control.setSetting(command.name, command.value)
        return null
      case 'find':
        return this.#find(command.messageId)
      case 'replay':
        return this.#replays.replay(command.deliveryId, command.atMs)
      case 'replayBound':
        return this.#ids.next()
      case 'createReplay':
        this.#replays.create(command)
        return null
      case 'updateReplay':
        return this.#replays.update(command)
      case 'replayStep':
        return this.#replays.step(command.step, command.atMs)
      case 'dropReplays':
        return this.#replays.drop(command.beforeMs)
      case 'createDeletion':
        return this.#deletions.create(command.id, command.deletion, command.atMs, command.targets)
      case 'purgeStep':
        return this.#deletions.purgeStep(command.deletion)
      case 'createSuppressions':
        return this.#deletions.suppress(command.userIds, command.sourceIds, command.atMs)
      case 'endDeletion':
        return this.#deletionEnds.step(command.after, command.beforeMs, command.pseudonymKey)
      case 'createToken':
        this.#tokens.create(command.token)
        return null
      case 'deleteToken':
        return this.#tokens.delete(command.id)
      case 'useToken':
        this.#tokens.use(command.id, command.atMs)
        return null
      case 'note':
        return null
      case 'dropAudit':
        return this.#audit.drop(command.beforeMs)
      case 'deleteSuppression':
        return this.#control.deleteSuppression(command.userId, command.sourceId)
      case 'retentionBegin':
        return this.#retention.begin(command.beforeMs)
      case 'retentionPin':
        this.#retention.pin(command.segments)
        return null
      case 'retentionStep':
        return this.#retention.step()
      case 'forgetKeys':
        this.#duplicates.forget(this.#keyAge.oldUpTo + 1)
        return null
      case 'mark':
        this.#control.setSetting('schedule_ms', String(command.scheduleMs))
        this.#control.setSetting('last_id', String(this.#ids.last))
        this.#control.setSetting(KEY_AGE_SETTING, this.#keyAge.mark(this.#ids.last))
        return null
      case 'addStats':
        this.#stats.add(command.rows)
        return null
      case 'dropStats':
        return this.#stats.dropStep(command.minutesBeforeMs, command.hoursBeforeMs)
    }
  }

  #sourceOrNone(sourceId: string | null): number {
    return sourceId === null ? 0 : (this.#sources.num(sourceId) ?? 0)
  }

  /** Where a messageId may be, asked for every source there ever was: keys do not say whose they are. */
  #find(messageId: string): FoundKey[] {
    const sources = this.#database.prepare('SELECT id FROM sources').all() as { id: string }[]
    return sources.flatMap(({ id }) => {
      const words = new Uint32Array(FINGERPRINT_WORDS)
      fingerprint(messageId, sourceSeed(id, this.seed), words, 0)
      return this.#duplicates.findAll(words, 0).map((segment) => ({ segment, fingerprint: words }))
    })
  }

  #checkpointIfLong(): void {
    try {
      const frames = this.#log.frames()
      // The log was started again at its beginning, which a commit does when all of it has been copied and nobody reads it.
      if (frames < this.#copiedTo) this.#copiedTo = 0
      if (frames - this.#copiedTo < CHECKPOINT_FRAMES) return
      this.#database.exec('PRAGMA wal_checkpoint(PASSIVE)')
      // Also when a reader held a part of it back: that part is tried again with the next, not after every commit.
      this.#copiedTo = frames
    } catch {
      // Tried again after a later commit; what is committed is in the log.
    }
  }
  #copiedTo = 0

  #readSeed(): Seed {
    const stored = this.#setting('dedup_seed')
    if (stored !== undefined) return JSON.parse(stored) as Seed
    const words = new Uint32Array(new Uint8Array(randomBytes(16)).buffer)
    const seed: Seed = [words[0] as number, words[1] as number, words[2] as number, words[3] as number]
    this.#database.prepare("INSERT INTO settings (name, value) VALUES ('dedup_seed', ?)").run(JSON.stringify(seed))
    return seed
  }

  #setting(name: string): string | undefined {
    return (this.#database.prepare('SELECT value FROM settings WHERE name = ?').get(name) as { value: string } | undefined)?.value
  }

  #newestId(): number {
    const newest = (sql: string): number => (this.#database.prepare(sql).get() as { newest: number | null }).newest ?? 0
    return Math.max(
      newest('SELECT max(seq) AS newest FROM segments'),
      newest('SELECT max(id) AS newest FROM attempts'),
      newest('SELECT max(id) AS newest FROM failures'),
      newest('SELECT max(origin) AS newest FROM replays'),
      newest('SELECT max(bound) AS newest FROM replay_jobs'),
      newest('SELECT max(id) AS newest FROM audit'),
      Number(this.#setting('last_id') ?? 0),
    )
  }
}

function openLocked(options: WriterOptions): Writer {
  const lock = lockStore(options.path)
  try {
    return new Writer(options, lock)
  } catch (error) {
    lock.release()
    throw error
  }
}

/** Commands that found nothing to change say so by false, 0, or a refusal. */
function hasChanged(value: unknown): boolean {
  return value !== false && value !== 0 && (value as { ok?: boolean } | null)?.ok !== false
}

function isUnavailable(error: unknown): boolean {
  const { errcode } = error as { errcode?: number }
  return errcode !== undefined && UNAVAILABLE.has(errcode & 0xff)
}

function failure(error: unknown): Reply {
  const { message } = error as Error
  return { ok: false, unavailable: isUnavailable(error), message }
}

if (parentPort !== null) {
  const port = parentPort
  try {
    const writer = openLocked(workerData as WriterOptions)
    port.on('message', (group: Group | 'close') => {
      if (group === 'close') {
        writer.close()
        port.close()
      } else {
        const { buffer } = group
        const replies = writer.run(group)
        port.postMessage({ replies, buffer, commitMs: writer.commitMs } satisfies Answered, buffer === null ? [] : [buffer])
      }
    })
    port.postMessage({ ok: true, seed: writer.seed, scheduleMs: writer.scheduleMs } satisfies WriterStart)
  } catch (error) {
    const told = openProblem(error, (workerData as WriterOptions).path)
    port.postMessage({ ok: false, problem: told instanceof StoreProblem, message: (told as Error).message } satisfies WriterStart)
    port.close()
  }
}
