// The PostgreSQL store of one node among any number of equal nodes. Joins the parts that implement the port. Messages are accepted, claimed and
// settled in groups (see accepting.ts, claiming.ts and settling.ts in messages/). cluster/membership.ts knows which nodes are alive and
// releases what dead ones held. No SQL here.

import type { SecretBox } from '../../secrets/secret-box.ts'
import type { Clock } from '../../timing/clock.ts'
import { withTimeout } from '../../timing/with-timeout.ts'
import { CommonConfigurationStore } from '../configuration/common-configuration-store.ts'
import type { SettingRows } from '../configuration/configuration-rows.ts'
import { CommonDeliveryStore } from '../delivery/common-delivery-store.ts'
import { booksOf } from '../history/books.ts'
import { RetentionRuns } from '../history/retention.ts'
import { CommonReplayStore } from '../replays/common-replay-store.ts'
import { type Configuration, type ReplayStore, type ServerFacts, type Store, StoreUnavailable } from '../store.ts'
import { onShares, shareOf } from './cluster/in-flight-shares.ts'
import { LiveChannel } from './cluster/live-channel.ts'
import { Membership } from './cluster/membership.ts'
import { SharedConfiguration } from './cluster/shared-configuration.ts'
import { Deleting } from './deleting.ts'
import { Accepting } from './messages/accepting.ts'
import { Cancelling } from './messages/cancelling.ts'
import { Claiming } from './messages/claiming.ts'
import { seedOf } from './messages/message-keys.ts'
import { Settling } from './messages/settling.ts'
import { dropReplays, replayJobRows } from './replays/replay-jobs.ts'
import { dropAudit } from './rows/audit-rows.ts'
import { bookRows } from './rows/book-rows.ts'
import { DeltaFolder } from './rows/fold-deltas.ts'
import { createHistory } from './rows/history.ts'
import { createSettings } from './rows/settings.ts'
import { Stats } from './rows/stats.ts'
import { IdMap } from './schema/id-map.ts'
import { RowIds } from './schema/ids.ts'
import { inspect } from './schema/inspect.ts'
import { migrate, refuseNewerSchema } from './schema/migrate.ts'
import { rejectUnfinishedMigration } from './schema/migration-state.ts'
import { preparePartitions } from './schema/partitions.ts'
import { dropMessages } from './schema/retention.ts'
import { parsePostgresAddress } from './session/address.ts'
import { Database } from './session/database.ts'
import { serverFacts } from './session/server-facts.ts'
import type { MessageContext } from './session/store-context.ts'

export interface PostgresStoreOptions {
  url: string
  secretBox: SecretBox
  /** How long messages and attempts are kept. */
  retentionDays: number
  /** What the node is called where people see it. */
  nodeName?: string
  version?: string
  /** What keeps the store from working, for the log; null when it works again. */
  onState?: (problem: string | null) => void
  /** Told of every commit of a group: how long it took, and how many shared it. */
  onCommit?: (commitMs: number, commands: number) => void
  /** What went wrong in work that nobody waits for, and is tried again. */
  onTrouble?: (error: unknown) => void
  /** Told of every statement that is sent to the server. */
  onTrip?: () => void
  /** How long a statement on the ways of messages may take. */
  statementMs?: number
  /** How long a node that does not answer keeps what it holds. For tests: all nodes must have the same. */
  leaseMs?: number
}

export interface PostgresStore extends Store {
  /** Where schedule time stands for all nodes, whatever the clocks of their machines say: see clock.ts. */
  scheduleStartMs: number
  /** Work that runs on by itself, such as purges, reads the time here. Given once, before anything else. */
  useClock(clock: Clock): void
  membership: Membership
}

/** For questions and changes of people; the ways of messages have their own. */
const CONTROL_CONNECTIONS = 6
const FAST_CONNECTIONS = 5
const STATEMENT_MS = 5_000
/**
 * Statements on the ways of messages are planned once and kept, perhaps when their tables were empty; what they look for lies in an index
 * in the order it is wanted. A plan that reads or sorts a whole table would be the right one for a moment and ruinous later.
 */
const BY_INDEX = ['enable_seqscan=off', 'enable_bitmapscan=off', 'enable_sort=off']
/** How soon what another node left in the store is seen: a node whose share of a destination is nothing leaves all of it. */
const LOOK_MS = 200
/** Alone, it is only for what a node that is no more has left: one look of so many is made. */
const LOOKS_ALONE = 5
/** Of its time, a node looks for no more than this part, but at least so often. */
const LOOK_SHARE = 0.05
const LOOK_AT_LEAST_MS = 1_000
/** At the end, for what is being accepted and settled. */
const FINISH_MS = 10_000
/** After that, for what is under way in the background and for giving back what is held. */
const LEAVE_MS = 6_000
/** A beat that is not answered in this time is given up, and the next one begun. */
const BEAT_MS = 4_000

export async function createPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const address = parsePostgresAddress(options.url)
  const { onTrip } = options
  const database = new Database({ address, connections: CONTROL_CONNECTIONS, statementMs: 30_000, onTrip })
  const fast = new Database({
    address,
    connections: FAST_CONNECTIONS,
    statementMs: options.statementMs ?? STATEMENT_MS,
    settings: BY_INDEX,
    onTrip,
  })
  const beating = new Database({
    address,
    connections: 1,
    connectMs: Math.min(address.connectMs ?? 2_000, BEAT_MS),
    statementMs: BEAT_MS,
    onTrip,
  })
  const close = (): void => {
    for (const each of [database, fast, beating]) each.close()
  }
  let membership: Membership | undefined
  try {
    const connection = await database.connect()
    try {
      await migrate(connection, { secretBox: options.secretBox })
    } finally {
      connection.destroy()
    }
    const { nodeName = 'node', version = '', leaseMs } = options
    membership = await Membership.join({ database, beating, name: nodeName, version, leaseMs })
    await refuseNewerSchema(database)
    await rejectUnfinishedMigration(database)
    const store = new Postgres(database, fast, membership, options, close)
    await store.load()
    return store
  } catch (error) {
    await membership?.leave()
    close()
    throw error
  }
}

class Postgres implements PostgresStore {
  readonly membership: Membership
  readonly nodes: Membership
  readonly serverFacts: () => Promise<ServerFacts>
  readonly channel: LiveChannel
  readonly #database: Database
  readonly #closeAll: () => void
  readonly #retentionRuns: RetentionRuns
  readonly #onTrouble: (error: unknown) => void
  readonly #shared: SharedConfiguration
  readonly settings: Store['settings'] & CommonConfigurationStore
  readonly secrets: CommonConfigurationStore
  readonly oauth: SettingRows
  readonly ingest: Accepting
  readonly #claiming: Claiming
  readonly #settling: Settling
  readonly #cancelling: Cancelling
  readonly books: Store['books']
  readonly #deltaFolder: DeltaFolder
  readonly history: Store['history']
  readonly deletions: Deleting
  readonly replays: ReplayStore
  #clock: Clock = { wallMs: () => Date.now(), scheduleMs: () => Date.now() }
  readonly #background = new Set<Promise<unknown>>()
  #closed = false
  #closing: Promise<void> | undefined
  #looks: NodeJS.Timeout | undefined
  #looking: Promise<void> | null = null
  #ticks = 0
  #lookNotBefore = 0

  constructor(database: Database, fast: Database, membership: Membership, options: PostgresStoreOptions, closeAll: () => void) {
    this.membership = membership
    this.nodes = membership
    this.serverFacts = () => serverFacts(database)
    this.#database = database
    this.#closeAll = closeAll
    this.#onTrouble = options.onTrouble ?? (() => {})
    const ids = new RowIds(membership.num, () => membership.serverMs())
    membership.onNumber = (num) => ids.useNode(num)
    const context: MessageContext = {
      database,
      fast,
      membership,
      ids,
      idMap: new IdMap(),
      seed: seedOf(database),
      nowMs: () => this.#clock.wallMs(),
      scheduleMs: () => this.#clock.scheduleMs(),
      configuration: () => this.configuration(),
      consumer: () => this.delivery.consumer,
      run: (work) => this.#run(work),
      isClosed: () => this.#closed,
    }
    this.#shared = new SharedConfiguration(context, {
      secretBox: options.secretBox,
      onDestinationDeleted: (id) => this.#run(this.#cancelling.cancel(id)),
      onVersion: (version) => this.deletions.follow(version),
    })
    this.oauth = createSettings(database)
    this.settings = Object.assign(new CommonConfigurationStore(this.#shared, context.nowMs), this.oauth)
    this.secrets = this.settings
    this.channel = new LiveChannel(database, this.#shared)
    const { onState = () => {}, onCommit = () => {} } = options
    this.#claiming = new Claiming(context)
    this.replays = new CommonReplayStore(replayJobRows(context), {
      ...context,
      wake: (destinationId) => this.delivery.consumer?.wake(destinationId),
    })
    this.ingest = new Accepting(context, { claiming: this.#claiming, refresh: () => this.#shared.refresh(), onState, onCommit })
    this.#settling = new Settling(context, { claiming: this.#claiming, onCommit })
    this.#cancelling = new Cancelling(context)
    this.#deltaFolder = new DeltaFolder(context)
    this.history = createHistory(context)
    this.deletions = new Deleting(context, {
      changes: this.#shared,
      secrets: this.secrets,
      accepting: this.ingest,
      claiming: this.#claiming,
      deleted: this.delivery.deleted,
    })
    const stats = new Stats(context)
    this.books = {
      ...booksOf(bookRows(context)),
      inspect: (deadlineMs) => inspect(database, deadlineMs),
      addStats: (rows) => stats.add(rows),
    }
    this.#retentionRuns = new RetentionRuns({
      retentionDays: options.retentionDays,
      drop: {
        messages: (beforeMs) => dropMessages(context, beforeMs),
        audit: (beforeMs) => dropAudit(database, beforeMs),
        replayJobs: (beforeMs) => dropReplays(context, beforeMs),
        endDeletions: (beforeMs) => this.deletions.end(beforeMs),
        stats: (minutesBeforeMs, hoursBeforeMs) => stats.drop(minutesBeforeMs, hoursBeforeMs),
      },
      isClosed: context.isClosed,
    })
  }

  get scheduleStartMs(): number {
    return this.membership.scheduleMs
  }

  useClock(clock: Clock): void {
    this.#clock = clock
    this.membership.useClock(clock)
  }

  async load(): Promise<void> {
    await preparePartitions(this.#database)
    await this.ingest.load()
    await this.#shared.load()
    await this.deletions.load()
    this.membership.start({
      // Once a second, whatever happens: what another node has changed, left behind or not finished.
      beat: () => this.#beat(),
      fenced: () => this.#claiming.fenced(),
      lapse: async () => {
        await this.#shared.refresh()
        await this.deletions.learn()
      },
      trouble: (error) => this.#trouble(error),
    })
    this.#looks = setInterval(() => this.#lookForWork(), LOOK_MS).unref()
    onShares(this.membership, () => this.delivery.consumer?.sharesChanged?.())
    this.#resume()
  }

  configuration(): Configuration {
    return this.#shared.configuration
  }

  onConfiguration(listener: (configuration: Configuration) => void): void {
    this.#shared.listen(listener)
  }

  async check(): Promise<{ ok: true } | { ok: false; message: string }> {
    try {
      await this.membership.check()
      const { problem } = this.#shared
      return problem === null ? { ok: true } : { ok: false, message: problem }
    } catch (error) {
      return { ok: false, message: (error as Error).message }
    }
  }

  async dropExpired(nowMs: number): Promise<void> {
    await this.#retentionRuns.run(nowMs)
    this.#resume()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#looks)
    // A server that does not answer must not keep the process from ending. What is not done by then was never acknowledged, or is taken
    // up by another node, or by the next start; what is held is given up by the others in its time.
    await withTimeout(FINISH_MS, this.#finish())
    await withTimeout(LEAVE_MS, this.#leave())
    this.#closeAll()
  }

  async #finish(): Promise<void> {
    await this.#looking
    await this.ingest.close()
    await this.#settling.close()
  }

  async #leave(): Promise<void> {
    await Promise.allSettled([...this.#background, this.#retentionRuns.running])
    await this.#shared.close()
    await this.membership.leave()
  }

  readonly delivery = new CommonDeliveryStore({
    claim: (request) => this.#claiming.claim(request),
    claimOverdue: (destinationId, firstAttemptBeforeMs, limit) => this.#claiming.claimOverdue(destinationId, firstAttemptBeforeMs, limit),
    release: (shipments) => this.#claiming.release(shipments),
    settle: (settlement) => this.#settling.settle(settlement),
    cancel: (destinationId) => this.#cancelling.cancel(destinationId),
    share: (destinationId, maxInFlight) => shareOf(destinationId, maxInFlight, this.membership),
    configuration: () => this.configuration(),
    run: (work) => this.#run(work),
  })

  /** Each by itself: what fails must not keep the others from being done. */
  async #beat(): Promise<void> {
    const each = [
      () => this.#shared.refresh(),
      async () => this.#cancelling.look(),
      () => this.#claiming.tidy(),
      () => this.deletions.resume(),
      () => this.#deltaFolder.fold(),
    ]
    for (const work of each) await work().catch((error: unknown) => this.#trouble(error))
  }

  /** Alone, a node knows what it left in the store; of others' it hears by looking. */
  #lookForWork(): void {
    if (this.membership.count === 1 && ++this.#ticks % LOOKS_ALONE !== 0) return
    const started = performance.now()
    if (started < this.#lookNotBefore) return
    this.#looking ??= this.#claiming
      .look()
      .catch((error: unknown) => this.#trouble(error))
      .finally(() => {
        this.#looking = null
        // With many destinations a look takes longer, and is made less often.
        const now = performance.now()
        this.#lookNotBefore = now + Math.min((now - started) / LOOK_SHARE, LOOK_AT_LEAST_MS)
      })
  }

  /** What was left in the middle: by this node before, or by one that is no more. */
  #resume(): void {
    this.#run(this.#cancelling.resume())
    this.#run(this.deletions.resume())
  }

  /** Steps that go on until they are over; taken up again at the next start if they are not. */
  #run(work: Promise<void>): void {
    const running: Promise<void> = work.catch((error: unknown) => this.#trouble(error)).finally(() => this.#background.delete(running))
    this.#background.add(running)
  }

  /** A server that is away is said by whoever asks it something; anything else is a fault of ours. */
  #trouble(error: unknown): void {
    if (!(error instanceof StoreUnavailable) && !this.#closed) this.#onTrouble(error)
  }
}
