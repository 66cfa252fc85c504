// The PostgreSQL store of one node among any number of equal nodes. Connects the modules that implement the port. Messages are accepted, claimed and
// settled in groups (see accepting.ts, claiming.ts and settling.ts in messages/). cluster/membership.ts knows which nodes are alive and
// releases what dead ones held. No SQL here.

import type { SecretBox } from '../../secrets/secret-box.ts'
import type { Clock } from '../../timing/clock.ts'
import { singleFlight } from '../../timing/single-flight.ts'
import { withTimeout } from '../../timing/with-timeout.ts'
import { CommonConfigurationStore } from '../configuration/common-configuration-store.ts'
import type { SettingRows } from '../configuration/configuration-rows.ts'
import { CommonDeliveryStore } from '../delivery/common-delivery-store.ts'
import { dropAudit } from '../history/audit-log.ts'
import { booksOf } from '../history/books.ts'
import { retentionRuns } from '../history/retention.ts'
import { CommonReplayStore } from '../replays/common-replay-store.ts'
import { type Channel, type Configuration, type ReplayStore, type ServerFacts, type Store, StoreUnavailable } from '../store.ts'
import { onShares, shareOf } from './cluster/in-flight-shares.ts'
import { createLiveChannel } from './cluster/live-channel.ts'
import { Membership } from './cluster/membership.ts'
import { OrderPartitions } from './cluster/order-partitions.ts'
import { SharedConfiguration } from './cluster/shared-configuration.ts'
import type { MessageContext } from './cluster/store-context.ts'
import { Deleting } from './deleting.ts'
import { Accepting } from './messages/accepting.ts'
import { Cancelling } from './messages/cancelling.ts'
import { Claiming } from './messages/claiming.ts'
import { OrderedClaiming } from './messages/ordered-claiming.ts'
import { Settling } from './messages/settling.ts'
import { dropReplays, replayJobRows } from './replays/replay-jobs.ts'
import { bookRows } from './rows/book-rows.ts'
import { createDocuments } from './rows/documents.ts'
import { createDeltaFolder } from './rows/fold-deltas.ts'
import { createHistory } from './rows/history.ts'
import { createOrder } from './rows/order-rows.ts'
import { createQuarantine } from './rows/quarantine-rows.ts'
import { createStats, statDroppers } from './rows/stats.ts'
import { inspect } from './schema/inspect.ts'
import { migrate, refuseNewerSchema } from './schema/migrate.ts'
import { rejectUnfinishedMigration } from './schema/migration-state.ts'
import { preparePartitions } from './schema/partitions.ts'
import { dropMessages } from './schema/retention.ts'
import { parsePostgresAddress } from './session/address.ts'
import { Database } from './session/database.ts'
import { serverFacts } from './session/server-facts.ts'
import { WriteState } from './session/write-state.ts'
import { IdMap } from './tables/id-map.ts'
import { RowIds } from './tables/ids.ts'
import { seedOf } from './tables/message-keys.ts'
import { createSettings, sqlOf } from './tables/sql.ts'

export interface PostgresStoreOptions {
  url: string
  secretBox: SecretBox
  /** How long messages and attempts are kept. */
  retentionDays: number
  /** After this many days, messages in quarantine are deleted. Null: never. */
  quarantineDays?: number | null
  /** The name of the node, shown to people. */
  nodeName?: string
  version?: string
  /** Called when the store stops working, with the problem for the log, and with null when it works again. */
  onState?: (problem: string | null) => void
  /** Called for every group commit, with its duration and the number of items in the group. */
  onCommit?: (commitMs: number, commands: number) => void
  /** Called with errors of background work, which is retried. */
  onBackgroundError?: (error: unknown) => void
  /** Called for every statement that is sent to the server. */
  onRoundTrip?: () => void
  /** The timeout of statements that accept, claim and settle. */
  statementMs?: number
  /** How long a node that sends no heartbeats keeps what it holds. For tests. Must be the same on all nodes. */
  leaseMs?: number
}

export interface PostgresStore extends Store {
  /** The schedule time at the start, shared by all nodes whatever the clocks of their machines say: see clock.ts. */
  scheduleStartMs: number
  /** Sets the clock for background work such as purges. Must be called once, before anything else. */
  useClock(clock: Clock): void
  membership: Membership
}

/** For the control API and background work. Accepting, claiming and settling have a separate pool. */
const CONTROL_CONNECTIONS = 6
const FAST_CONNECTIONS = 5
const STATEMENT_MS = 5_000
/**
 * Statements that accept, claim and settle are planned once per connection, maybe while their tables are empty. Each has an index with the
 * right order. A plan that scans or sorts a whole table would be best for a moment and very slow later.
 */
const BY_INDEX = ['enable_seqscan=off', 'enable_bitmapscan=off', 'enable_sort=off']
/** How often to poll for work that other nodes left in the store. A node whose share of a destination is zero leaves all of it. */
const POLL_MS = 200
/** A single node polls only for work that a dead node has left, so it polls every this many intervals. */
const SINGLE_NODE_INTERVALS = 5
/** A node spends at most this fraction of its time on polling, but pauses no longer than the limit below. */
const POLL_TIME_FRACTION = 0.05
const LONGEST_POLL_PAUSE_MS = 1_000
/** The time that close() allows. */
const CLOSE_MS = 16_000
/** The part of it in which accepting and settling must finish. The rest is for background work, and for releasing what the node holds. */
const FINISH_SHARE = 0.6
/** The timeout of a heartbeat, after which the next one is sent. */
const HEARTBEAT_TIMEOUT_MS = 4_000

export async function createPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const address = parsePostgresAddress(options.url)
  const { onRoundTrip } = options
  const database = new Database({ address, connections: CONTROL_CONNECTIONS, statementMs: 30_000, onRoundTrip })
  const fast = new Database({
    address,
    connections: FAST_CONNECTIONS,
    statementMs: options.statementMs ?? STATEMENT_MS,
    settings: BY_INDEX,
    onRoundTrip,
  })
  const heartbeatDatabase = new Database({
    address,
    connections: 1,
    connectMs: Math.min(address.connectMs ?? 2_000, HEARTBEAT_TIMEOUT_MS),
    statementMs: HEARTBEAT_TIMEOUT_MS,
    onRoundTrip,
  })
  const close = (): void => {
    for (const each of [database, fast, heartbeatDatabase]) each.close()
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
    membership = await Membership.join({ database, heartbeatDatabase, name: nodeName, version, leaseMs })
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
  readonly channel: Channel
  readonly #database: Database
  readonly #closeAll: () => void
  readonly #dropExpired: ReturnType<typeof retentionRuns>
  readonly #onTrouble: (error: unknown) => void
  readonly #shared: SharedConfiguration
  readonly resources: Store['resources'] & CommonConfigurationStore
  readonly secrets: CommonConfigurationStore
  readonly oauth: SettingRows
  readonly ingest: Accepting
  readonly #claiming: Claiming
  readonly #orderedClaiming: OrderedClaiming
  readonly #partitions: OrderPartitions
  readonly #settling: Settling
  readonly #cancelling: Cancelling
  readonly books: Store['books']
  readonly #foldDeltas: () => Promise<void>
  readonly history: Store['history']
  readonly documents: Store['documents']
  readonly deletions: Deleting
  readonly replays: ReplayStore
  readonly quarantine: Store['quarantine']
  readonly order: Store['order']
  #clock: Clock = { wallMs: () => Date.now(), scheduleMs: () => Date.now() }
  readonly #background = new Set<Promise<unknown>>()
  #closed = false
  #closing: Promise<boolean> | undefined
  #pollTimer: NodeJS.Timeout | undefined
  #polling: Promise<void> | null = null
  #pollIntervals = 0
  #pollNotBefore = 0
  readonly #writes: WriteState

  constructor(database: Database, fast: Database, membership: Membership, options: PostgresStoreOptions, closeAll: () => void) {
    this.membership = membership
    this.nodes = membership
    this.serverFacts = () => serverFacts(database)
    this.#database = database
    this.#closeAll = closeAll
    this.#onTrouble = options.onBackgroundError ?? (() => {})
    const ids = new RowIds(membership.num, () => membership.serverMs())
    membership.onNodeNumber = (num) => ids.useNode(num)
    this.#writes = new WriteState((isWritable) => this.delivery.setWritable(isWritable))
    const context: MessageContext = {
      database,
      fast,
      membership,
      writes: this.#writes,
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
    this.resources = Object.assign(new CommonConfigurationStore(this.#shared, context.nowMs), this.oauth)
    this.secrets = this.resources
    this.channel = createLiveChannel(database, this.#shared.listener)
    const { onState = () => {}, onCommit = () => {} } = options
    this.#claiming = new Claiming(context)
    this.#partitions = new OrderPartitions(context)
    this.#orderedClaiming = new OrderedClaiming(context, this.#claiming, this.#partitions)
    this.replays = new CommonReplayStore(replayJobRows(context), {
      ...context,
      wake: (destinationId) => this.delivery.consumer?.wake(destinationId),
    })
    this.quarantine = createQuarantine(context)
    this.order = createOrder(context)
    this.ingest = new Accepting(context, { claiming: this.#claiming, owned: this.#partitions, shared: this.#shared, onState, onCommit })
    this.#settling = new Settling(context, {
      claiming: this.#claiming,
      onCommit,
      withoutUsers: (...settlements) => this.deletions.withoutUsers(...settlements),
    })
    this.#cancelling = new Cancelling(context)
    this.#foldDeltas = createDeltaFolder(context)
    this.history = createHistory(context)
    this.documents = createDocuments(database)
    this.deletions = new Deleting(context, {
      changes: this.#shared,
      secrets: this.secrets,
      accepting: this.ingest,
      claiming: this.#claiming,
      deleted: this.delivery.deleted,
    })
    this.books = {
      ...booksOf(bookRows(context)),
      inspect: (deadlineMs) => inspect(database, deadlineMs),
      addStats: createStats(context),
    }
    this.#dropExpired = retentionRuns({
      retentionDays: options.retentionDays,
      quarantineDays: options.quarantineDays ?? null,
      drop: {
        quarantined: (beforeMs) => this.quarantine.expire(beforeMs),
        messages: (beforeMs) => dropMessages(context, beforeMs),
        audit: async (beforeMs) => dropAudit(sqlOf(database.ask), beforeMs),
        replayJobs: (beforeMs) => dropReplays(context, beforeMs),
        endDeletions: (beforeMs) => this.deletions.end(beforeMs),
        ...statDroppers(context),
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
    // Before any due time is stored: a process that is killed soon after its start must not continue at an earlier time.
    await this.membership.saveScheduleTime()
    this.membership.start({
      heartbeat: () => this.#heartbeat(),
      fenced: () => {
        this.#partitions.fenced()
        this.#orderedClaiming.fenced()
        this.#claiming.fenced()
      },
      leaseExpired: async () => {
        await this.#shared.refresh()
        await this.deletions.learn()
      },
      nodeGone: () => this.#pollAtOnce(),
      renewed: (hasSucceeded) => this.#writes.wrote(hasSucceeded),
      backgroundError: (error) => this.#reportError(error),
    })
    this.#pollTimer = setInterval(() => this.#pollForWork(), POLL_MS).unref()
    onShares(this.membership, () => this.delivery.consumer?.sharesChanged?.())
    this.#run(this.#partitions.check())
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

  /** Rows are dated by the server's clock. That of this machine may be wrong. */
  async dropExpired(nowMs = this.membership.serverMs()): Promise<void> {
    await this.#dropExpired(nowMs)
    this.#resume()
  }

  close(limitMs: number = CLOSE_MS): Promise<boolean> {
    this.#closing ??= this.#close(limitMs)
    return this.#closing
  }

  async #close(limitMs: number): Promise<boolean> {
    const beganAt = performance.now()
    this.#closed = true
    clearInterval(this.#pollTimer)
    // A server that does not respond must not keep the process from exiting. Unfinished work was never acknowledged, or is continued by
    // another node or the next start. Other nodes take over what this one holds when its lease expires.
    const isFinished = await withTimeout(limitMs * FINISH_SHARE, this.#finish(), false)
    const hasLeft = await withTimeout(Math.max(0, beganAt + limitMs - performance.now()), this.#leave(), false)
    this.#closeAll()
    return isFinished && hasLeft
  }

  async #finish(): Promise<true> {
    await this.#polling
    await this.ingest.close()
    await this.#settling.close()
    return true
  }

  async #leave(): Promise<boolean> {
    await Promise.allSettled([...this.#background, this.#dropExpired.running])
    await this.#shared.close()
    return await this.membership.leave()
  }

  readonly delivery = new CommonDeliveryStore({
    claim: (request) => this.#claiming.claim(request),
    claimOrdered: (request) => this.#orderedClaiming.claim(request),
    orderedUntilMs: () => this.#partitions.startUntilMs,
    claimOverdue: async (id, beforeMs, limit) => {
      const overdue = await this.#claiming.claimOverdue(id, beforeMs, limit)
      return [...overdue, ...(await this.#orderedClaiming.claimOverdue(id, beforeMs, limit - overdue.length))]
    },
    claimCrowded: (id, maxWaiting, limit) => this.#orderedClaiming.claimCrowded(id, maxWaiting, limit),
    release: (shipments) => this.#claiming.release(shipments),
    settle: (settlement) => this.#settling.settle(settlement),
    cancel: (destinationId) => this.#cancelling.cancel(destinationId),
    share: (id, maxInFlight) => shareOf(id, maxInFlight, this.membership, this.#orderedClaiming.isOrdered(id)),
    configuration: () => this.configuration(),
    run: (work) => this.#run(work),
  })

  /** Finds what another node has changed, left behind or not finished. A failing task does not keep the others from running. */
  async #heartbeat(): Promise<void> {
    const each = [
      () => this.#shared.refresh(),
      async () => this.#cancelling.check(),
      () => this.#claiming.releaseLost(),
      async () => this.#claiming.recentBodies.expire(),
      () => this.#partitions.check(),
      () => this.deletions.resume(),
      this.#foldDeltas,
    ]
    for (const work of each) await work().catch((error: unknown) => this.#reportError(error))
  }

  /** Another node may have released work. A poll that is already running may have missed it; in that case the next interval polls again. */
  #pollAtOnce(): void {
    this.#claiming.forgetPositions()
    this.#pollNotBefore = 0
    this.#pollIntervals = SINGLE_NODE_INTERVALS - 1
    if (this.#polling === null) this.#pollForWork()
  }

  /** A single node knows what it has left in the store; work of other nodes is found by polling. */
  #pollForWork(): void {
    if (this.#partitions.isUsed) this.#run(this.#movePartitions())
    if (this.membership.count === 1 && ++this.#pollIntervals % SINGLE_NODE_INTERVALS !== 0) return
    const started = performance.now()
    if (started < this.#pollNotBefore) return
    this.#polling ??= this.#poll()
      .catch((error: unknown) => this.#reportError(error))
      .finally(() => {
        this.#polling = null
        // With many destinations a poll takes longer, so it runs less often.
        const now = performance.now()
        this.#pollNotBefore = now + Math.min((now - started) / POLL_TIME_FRACTION, LONGEST_POLL_PAUSE_MS)
      })
  }

  /** Nobody else delivers the partitions of a node that has ended, so this does not wait for a heartbeat or a slow poll. */
  readonly #movePartitions = singleFlight(async (): Promise<void> => {
    await this.membership.lookForChanges()
    if (this.#partitions.isUnsettled) await this.#partitions.check()
  })

  async #poll(): Promise<void> {
    await this.#claiming.poll()
    for (const id of await this.#orderedClaiming.withWork()) this.delivery.consumer?.wake(id)
  }

  /** Continues work that this node, or one that has died, left unfinished. */
  #resume(): void {
    this.#run(this.#cancelling.resume())
    this.#run(this.deletions.resume())
  }

  /** Runs work in the background. Unfinished work is continued at the next start. */
  #run(work: Promise<void>): void {
    const running: Promise<void> = work.catch((error: unknown) => this.#reportError(error)).finally(() => this.#background.delete(running))
    this.#background.add(running)
  }

  /** An unavailable server is reported elsewhere, by the requests that need it. Any other error is a bug. */
  #reportError(error: unknown): void {
    if (!(error instanceof StoreUnavailable) && !this.#closed) this.#onTrouble(error)
  }
}
