// Tracks which nodes are alive. A node has a number, which is part of the row ids it creates, and a holder id, under which it holds work. It
// owns both as long as it sends heartbeats. If a node has sent none for LEASE_MS by the server's clock, any other node may declare it dead
// and release what it held; if its process has ended, any other node may do so at once (node-locks.ts). Notices between nodes (shares,
// breakers, rates) are sent with the heartbeat.
//
// Invariants: a holder id is never reused. A node that was declared dead finds out at its next heartbeat and joins again as a new one. Others
// do not wait for a node whose lease has expired, so such a node starts nothing before it has read what they may have changed. A node
// declares others dead only after it has itself sent heartbeats for a whole lease, so that after an outage of the server all nodes have
// had time to come back. For the same reason, a node whose own session broke ignores the locks of others for a whole lease.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../../timing/clock.ts'
import { singleFlight } from '../../../timing/single-flight.ts'
import type { NodeSummary } from '../../port/nodes.ts'
import type { Database } from '../session/database.ts'
import { ServerClock } from '../session/server-clock.ts'
import { NODE_NUMBERS, RowIds } from '../tables/ids.ts'
import { declareDead, declareExpiredDead, lockMembership, releaseEnded, releaseOrphans } from './dead-nodes.ts'
import { FreeLocks, HELD_LOCKS, type NodeLock, SERVER_RUN } from './node-locks.ts'
import { readScheduleTime, saveScheduleTime } from './schedule-time.ts'

export const LEASE_MS = 10_000
const HEARTBEAT_MS = 1_000
/** How often, and how many times, a node tries to open a session in the place of one that broke. All of it takes less than LOCK_FREE_MS. */
const RECONNECT_MS = 100
const RECONNECT_TRIES = 6
/** How often the schedule time is saved. */
const SAVE_SCHEDULE_EVERY_MS = 5_000
/** The number of leases between two checks for work held by a node that no longer exists. Only a commit at the moment its node is declared dead leaves any. */
const ORPHAN_CHECK_LEASES = 1.5
/** The field of a heartbeat that contains the configuration version of the node. */
const KNOWN_VERSION = 'configuration'
/** The field of a heartbeat that says in which run of the server the node holds its lock. */
const LOCKED_IN = 'lockedIn'

export interface MembershipOptions {
  /** For everything except heartbeats. */
  database: Database
  /** A pool of one connection, so that a heartbeat does not wait for a slow query. Its session holds the lock of the node. */
  heartbeatDatabase: Database
  name: string
  version: string
  /** For tests. Must be the same on all nodes. */
  leaseMs?: number | undefined
}

export interface MembershipListeners {
  /** Called once a second. Calls do not overlap. */
  heartbeat: () => Promise<void>
  /** Another node declared this one dead. */
  fenced: () => void
  /** Called after this node's lease had expired. Reads what other nodes may have changed meanwhile without waiting for this one. */
  leaseExpired: () => Promise<void>
  /** A node has left or was declared dead, and what it held is free. */
  nodeGone: () => void
  /** Called after every heartbeat, and with false when the session that sends them broke. */
  renewed: (hasSucceeded: boolean) => void
  backgroundError: (error: unknown) => void
}

interface NodeRow extends Omit<NodeSummary, 'seenAtMs' | 'isSelf'> {
  /** Negative if its process has ended and what it held is released. Deletion requests still wait until its lease expires. */
  holder: string
  expiresAtMs: number
  hasLock: boolean
}

export class Membership {
  readonly #database: Database
  readonly #heartbeatDatabase: Database
  readonly #leaseMs: number
  readonly #name: string
  readonly #version: string
  #num = 0
  #holder = '0'
  readonly #serverClock = new ServerClock()
  /** Until this time of the monotonic clock, no other node can have declared this one dead. */
  #leaseValidUntil = 0
  /** Since when the lease has been renewed without a gap. */
  #leaseValidSince = 0
  /** How often the lease expired before it was renewed, and the value of that counter when this node last caught up with the others' changes. */
  #leaseExpiries = 0
  #caughtUpAt = 0
  #nodes: NodeSummary[] = []
  /** Sent to the other nodes with every heartbeat. At first it says that this node has no version of the configuration, so that deletion requests wait for it. */
  readonly #notices = new Map<string, unknown>([[KNOWN_VERSION, -1]])
  readonly #listeners: (() => void)[] = []
  readonly #freeLocks = new FreeLocks()
  #ended: NodeLock[] = []
  /** Until this time of the monotonic clock, a free lock does not count. */
  #ignoreLocksUntil = 0
  #holders = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #lockTimer: NodeJS.Timeout | undefined
  #left = false
  #scheduleSavedAt = 0
  #orphansCheckedAt = 0
  #clock: Clock | null = null
  /** The schedule time that the other nodes had when this one joined, less the monotonic clock. */
  #scheduleOffsetMs = 0
  #on: MembershipListeners = {
    heartbeat: async () => {},
    fenced: () => {},
    leaseExpired: async () => {},
    nodeGone: () => {},
    renewed: () => {},
    backgroundError: () => {},
  }
  /** Called when this node has joined again under another number. */
  onNodeNumber: ((num: number) => void) | null = null

  private constructor({ database, heartbeatDatabase, name, version, leaseMs = LEASE_MS }: MembershipOptions) {
    this.#leaseMs = leaseMs
    this.#database = database
    this.#heartbeatDatabase = heartbeatDatabase
    this.#name = name
    this.#version = version
    heartbeatDatabase.onLost = () => void this.#sessionLost()
  }

  static async join(options: MembershipOptions): Promise<Membership> {
    const membership = new Membership(options)
    await membership.#join()
    return membership
  }

  get num(): number {
    return this.#num
  }

  get holder(): string {
    return this.#holder
  }

  /** The present schedule time of a node that has just joined. */
  get scheduleMs(): number {
    return Math.floor(this.#scheduleOffsetMs + performance.now())
  }

  /** The time of the server's clock, as estimated here. */
  serverMs(): number {
    return this.#serverClock.nowMs()
  }

  /** Whether this node certainly still holds its work, and no other node can have made a change without waiting for this one. */
  get isLeaseValid(): boolean {
    return performance.now() < this.#leaseValidUntil && this.#caughtUpAt === this.#leaseExpiries
  }

  /** When the last heartbeat that was answered was sent, by the monotonic clock. Far in the past if this node was declared dead. */
  get renewedAt(): number {
    return this.#leaseValidUntil - this.#leaseMs
  }

  /** All live nodes including this one, sorted by number. */
  get nodes(): readonly NodeSummary[] {
    return this.#nodes
  }

  others(): NodeSummary[] {
    return this.#nodes.filter(({ isSelf }) => !isSelf)
  }

  get count(): number {
    return Math.max(1, this.#nodes.length)
  }

  /** The position of this node among the live nodes, from 0. */
  get rank(): number {
    return Math.max(
      0,
      this.#nodes.findIndex(({ isSelf }) => isSelf),
    )
  }

  /** Sends a value to the other nodes with the next heartbeat. */
  announce(key: string, value: unknown): void {
    if (value === undefined) this.#notices.delete(key)
    else this.#notices.set(key, value)
  }

  /** Confirms this version of the configuration to the other nodes: at once if they wait for it, otherwise with the next heartbeat. */
  async confirmVersion(version: number, atOnce: boolean): Promise<void> {
    this.#notices.set(KNOWN_VERSION, version)
    if (!atOnce) return
    // A heartbeat that is in flight may have been sent without it.
    await this.#renewOnce.running?.catch(() => {})
    await this.#renewOnce()
  }

  /** Whether every live node has confirmed this version or a later one. */
  async isVersionConfirmed(version: number): Promise<boolean> {
    const { rows } = await this.#database.query<{ known: boolean }>(
      `SELECT NOT EXISTS (SELECT FROM nodes WHERE expires_at > now() AND (doc::json->>'${KNOWN_VERSION}')::bigint < $1) AS known`,
      [version],
    )
    return rows[0]?.known ?? false
  }

  /** Calls the listener after every heartbeat: the live nodes or their notices may have changed. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }

  useClock(clock: Clock): void {
    this.#clock = clock
  }

  start(listeners: MembershipListeners): void {
    this.#on = listeners
    this.#timer = setInterval(() => void this.heartbeat().catch(() => {}), HEARTBEAT_MS).unref()
    // Tells the other nodes that this node has its lock, and checks again the locks that were free when it joined.
    this.#renewAndDeclare().catch(() => {})
  }

  /**
   * Saves the schedule time of this node, and continues from the latest of all nodes. This node is behind if it joined after a long outage of
   * the server, before the others had saved theirs, or if its machine was suspended.
   */
  async saveScheduleTime(): Promise<void> {
    this.#scheduleSavedAt = performance.now()
    const latestMs = await saveScheduleTime(this.#database.ask, this.#clock?.scheduleMs() ?? this.scheduleMs)
    this.#clock?.advanceTo?.(latestMs)
  }

  /** Notices sooner than at the next heartbeat that a node has joined, left or ended: for work that other nodes cannot do meanwhile. */
  async lookForChanges(): Promise<void> {
    const now = performance.now()
    // A free lock is checked again in any case.
    if (this.#left || now < this.#ignoreLocksUntil || this.#ended.length > 0 || this.#freeLocks.nextMs(now) !== undefined) return
    const known = [...this.#holders].sort().join()
    const query = {
      name: 'look-for-changes',
      text: `SELECT coalesce(string_agg(n.holder::text, ',' ORDER BY n.holder::text COLLATE "C"), '') AS known,
          coalesce(bool_or(n.holder <> $1 AND n.doc::json->>'${LOCKED_IN}' = ${SERVER_RUN} AND NOT EXISTS (SELECT FROM (${HELD_LOCKS}) l WHERE l.holder = n.holder)), false) AS "hasEnded"
        FROM nodes n WHERE n.holder > 0`,
    }
    const { rows } = await this.#database.query<{ known: string; hasEnded: boolean }>(query, [this.#holder])
    const [row] = rows
    if (row !== undefined && (row.known !== known || row.hasEnded)) await this.heartbeat()
  }

  /** Rejects if the database cannot be written to. */
  async check(): Promise<void> {
    await this.#renewOnce()
  }

  /** Renews the lease and, if it had expired, catches up with the other nodes. Rejects if either fails. */
  async ensureLease(): Promise<void> {
    await this.#renewOnce()
    while (!this.#left && this.#caughtUpAt !== this.#leaseExpiries) await this.#catchUp()
  }

  /** Renews the lease and starts the work of this heartbeat. It does not wait for that work, which may outlast the lease. */
  async heartbeat(): Promise<void> {
    if (this.#left) return
    await this.#renewAndDeclare()
    void this.#work()
  }

  /** Releases everything that this node holds. Resolves with false if the database could not be written to. */
  async leave(): Promise<boolean> {
    this.#left = true
    clearInterval(this.#timer)
    clearTimeout(this.#lockTimer)
    await Promise.all([this.#work.running, this.#declareOthersDead.running])
    return await this.#database
      .transaction((ask) => declareDead(ask, this.#num, this.#holder, 0))
      .then(
        () => true,
        () => false,
      )
  }

  async #renewAndDeclare(): Promise<void> {
    await this.#renewOnce()
    if (this.#left) return
    void this.#declareOthersDead()
  }

  readonly #work = this.#inBackground(async () => {
    if (performance.now() - this.#scheduleSavedAt >= SAVE_SCHEDULE_EVERY_MS) await this.saveScheduleTime()
    await this.#on.heartbeat()
  })

  #inBackground(work: () => Promise<void>) {
    return singleFlight(() => work().catch((error: unknown) => this.#on.backgroundError(error)))
  }

  async #join(): Promise<void> {
    const started = performance.now()
    this.#notices.delete(LOCKED_IN)
    const row = await this.#heartbeatDatabase.transaction(async (ask) => {
      await lockMembership(ask)
      const { rows } = await ask<{ num: number; now_ms: number }>(
        `SELECT n AS num, (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms FROM generate_series(0, ${NODE_NUMBERS - 1}) n
         WHERE n NOT IN (SELECT num FROM nodes) ORDER BY n LIMIT 1`,
      )
      const free = rows[0]
      if (free === undefined) throw new Error(`cannot join: the database already has ${NODE_NUMBERS} nodes, which is the maximum`)
      const holder = new RowIds(free.num, () => free.now_ms).next()
      await ask(`INSERT INTO nodes (num, holder, name, version, expires_at, doc) VALUES ($1, $2, $3, $4, ${leaseEnd('$5')}, $6)`, [
        free.num,
        holder,
        this.#name,
        this.#version,
        this.#leaseMs,
        this.#doc,
      ])
      return { ...free, holder, scheduleMs: await readScheduleTime(ask, free.now_ms) }
    })
    this.#num = row.num
    this.#holder = row.holder
    this.#serverClock.learn(row.now_ms, started, performance.now())
    this.#scheduleOffsetMs = row.scheduleMs - performance.now()
    this.#leaseValidSince = started
    this.#leaseValidUntil = started + this.#leaseMs
    this.onNodeNumber?.(row.num)
    await this.#renew()
  }

  get #doc(): string {
    return JSON.stringify(Object.fromEntries(this.#notices))
  }

  /** Runs one at a time. Otherwise a node that was declared dead could join several times, and hold work under ids that it does not renew. */
  readonly #renewOnce = singleFlight(async (): Promise<void> => {
    let hasSucceeded = false
    try {
      await this.#renew()
      hasSucceeded = true
    } finally {
      this.#on.renewed(hasSucceeded)
    }
  })

  async #renew(): Promise<void> {
    const sent = performance.now()
    const { rows } = await this.#heartbeatDatabase.query<{ alive: number; now_ms: number; run: string; locked: boolean; nodes: NodeRow[] }>(
      {
        name: 'heartbeat',
        // Takes the lock unless this session already has it. The check is needed because a session can take the same lock twice.
        text: `WITH locks AS MATERIALIZED (${HELD_LOCKS}), me AS (UPDATE nodes SET expires_at = ${leaseEnd('$4')}, doc = $3 WHERE num = $1 AND holder = $2 RETURNING num)
          SELECT (SELECT count(*)::integer FROM me) AS alive, (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms,
            ${SERVER_RUN} AS run,
            CASE WHEN EXISTS (SELECT FROM locks WHERE holder = $2 AND pid = pg_backend_pid()) THEN true ELSE pg_try_advisory_lock($2) END AS locked,
            (SELECT coalesce(json_agg(n), '[]') FROM (SELECT num, holder::text AS holder, name, version,
               (extract(epoch FROM started_at) * 1000)::bigint AS "startedAtMs", (extract(epoch FROM expires_at) * 1000)::bigint AS "expiresAtMs",
               holder IN (SELECT holder FROM locks) AS "hasLock", doc::json FROM nodes ORDER BY num) n) AS nodes`,
      },
      [this.#num, this.#holder, this.#doc, this.#leaseMs],
      this.#leaseMs / 2,
    )
    const row = rows[0]
    if (row === undefined || this.#left) return
    const received = performance.now()
    if (row.alive === 0) {
      this.#leaseValidUntil = 0
      this.#leaseExpiries++
      this.#on.fenced()
      await this.#join()
      return
    }
    if (received > this.#leaseValidUntil) this.#leaseExpiries++
    if (sent > this.#leaseValidUntil) this.#leaseValidSince = sent
    this.#leaseValidUntil = sent + this.#leaseMs
    this.#serverClock.learn(row.now_ms, sent, received)
    this.announce(LOCKED_IN, row.locked ? row.run : undefined)
    const registered = row.nodes.filter(({ holder }) => !holder.startsWith('-'))
    this.#watchLocks(registered, row.run)
    this.#nodes = registered
      // The statement sees its own row as it was before the update.
      .filter(({ num, holder, expiresAtMs }) => expiresAtMs > row.now_ms || (num === this.#num && holder === this.#holder))
      .map(({ num, holder, name, version, startedAtMs, expiresAtMs, doc }) => {
        const isSelf = holder === this.#holder
        return { num, name, version, startedAtMs, seenAtMs: isSelf ? row.now_ms : expiresAtMs - this.#leaseMs, doc, isSelf }
      })
    this.#expired = row.nodes.some(({ holder, expiresAtMs }) => holder !== this.#holder && expiresAtMs < row.now_ms)
    for (const listener of this.#listeners) listener()
    const known = this.#holders
    this.#holders = new Set(registered.map(({ holder }) => holder))
    if ([...known].some((holder) => !this.#holders.has(holder))) this.#on.nodeGone()
    if (this.#caughtUpAt !== this.#leaseExpiries) this.#catchUp().catch((error: unknown) => this.#on.backgroundError(error))
  }
  #expired = false

  /** Runs beside the heartbeat, which must not wait for it. If it fails, it is retried after the next heartbeat. */
  readonly #catchUp = singleFlight(async (): Promise<void> => {
    const lapses = this.#leaseExpiries
    await this.#on.leaseExpired()
    this.#caughtUpAt = lapses
    if (lapses === this.#leaseExpiries) for (const listener of this.#listeners) listener()
  })

  /** Looks for free locks. A free lock is checked again after LOCK_FREE_MS, which is before the next regular heartbeat. */
  #watchLocks(nodes: readonly NodeRow[], run: string): void {
    const now = performance.now()
    const locks = nodes.map(({ holder, expiresAtMs, hasLock, doc }) => ({
      holder,
      expiresAtMs,
      isFree: now >= this.#ignoreLocksUntil && !hasLock && doc[LOCKED_IN] === run && holder !== this.#holder,
    }))
    this.#ended = this.#freeLocks.observe(locks, now)
    clearTimeout(this.#lockTimer)
    const waitMs = this.#ended.length > 0 ? undefined : this.#freeLocks.nextMs(now)
    if (waitMs !== undefined && this.#timer !== undefined)
      this.#lockTimer = setTimeout(() => void this.heartbeat().catch(() => {}), waitMs).unref()
  }

  /** Opens another session at once, before other nodes conclude from the free lock that this process has ended. */
  async #sessionLost(): Promise<void> {
    this.#ignoreLocksUntil = performance.now() + this.#leaseMs
    this.#on.renewed(false)
    // If the session never had the lock, the next heartbeat is soon enough.
    if (!this.#notices.delete(LOCKED_IN)) return
    await this.#renewOnce.running?.catch(() => {})
    // A session that cannot be opened at first must not wait for the next heartbeat: by then, others would have decided.
    for (let left = RECONNECT_TRIES; left > 0 && !this.#left; left--) {
      try {
        return await this.heartbeat()
      } catch {
        await sleep(RECONNECT_MS, undefined, { ref: false })
      }
    }
  }

  readonly #declareOthersDead = this.#inBackground(async () => {
    const ended = this.#ended.splice(0)
    for (const lock of ended) await releaseEnded(this.#database, lock)
    // Reads the remaining nodes, so that the released work is found at once.
    if (ended.length > 0) await this.#renewOnce()
    await this.#declareExpiredDead()
  })

  async #declareExpiredDead(): Promise<void> {
    const now = performance.now()
    if (now - this.#leaseValidSince < this.#leaseMs) return
    if (this.#expired) await declareExpiredDead(this.#database)
    if (now - this.#orphansCheckedAt < ORPHAN_CHECK_LEASES * this.#leaseMs) return
    this.#orphansCheckedAt = now
    await releaseOrphans(this.#database)
  }
}

function leaseEnd(parameter: string): string {
  return `now() + ${parameter}::integer * interval '1 millisecond'`
}
