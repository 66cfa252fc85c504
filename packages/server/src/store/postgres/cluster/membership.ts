// Who is alive. A node has a number, for the names it gives to rows, and a holder, under which it holds work; both are its own
// as long as it beats. The server's clock decides: whoever has not beaten for LEASE_MS by that clock may be given up by any
// other, and what it held is free again. What nodes have to tell each other (shares, breakers, rates) goes with the beat.
//
// Invariants: a holder is never used twice; a node that was given up finds out at its next beat and goes on as a new one; a node whose
// lease was over is not waited for by others, so it begins nothing before it has read what they may have changed; a node gives up others only after it has itself been beating for a whole lease, so that after an outage of the server all have
// had the time to come back.

import type { Clock } from '../../../timing/clock.ts'
import type { NodeSummary } from '../../port/nodes.ts'
import { WITH_HOLDERS } from '../messages/shipment-holders.ts'
import { readSetting } from '../rows/settings.ts'
import { NODE_NUMBERS, RowIds } from '../schema/ids.ts'
import { ADVISORY_LOCKS } from '../session/advisory-locks.ts'
import type { Ask, Database } from '../session/database.ts'
import { ServerClock } from '../session/server-clock.ts'

export const LEASE_MS = 10_000
const BEAT_MS = 1_000
/** Where schedule time stands is written down so often. */
const MARK_EVERY_MS = 5_000
const SCHEDULE_SETTING = 'schedule_ms'
/** Work held by nobody that there is, which only a commit at the moment of its node's end can leave, is looked for after so many leases. */
const ORPHANS_EVERY = 1.5
/** The field of a heartbeat with the configuration version that the node has. */
const KNOWN_VERSION = 'configuration'

export interface MembershipOptions {
  /** For everything but the beat. */
  database: Database
  /** The beat's own connection: it must not wait for a question that takes long. */
  beating: Database
  name: string
  version: string
  /** For tests. All nodes must have the same. */
  leaseMs?: number | undefined
}

export interface MembershipListeners {
  /** Called once a second, never twice at the same time. */
  beat: () => Promise<void>
  /** Another node declared this one dead. */
  fenced: () => void
  /** Called after this node's lease had expired. Reads what other nodes may have changed meanwhile without waiting for this one. */
  lapse: () => Promise<void>
  trouble: (error: unknown) => void
}

interface NodeRow extends Omit<NodeSummary, 'seenAtMs' | 'isSelf'> {
  holder: string
  expiresAtMs: number
}

export class Membership {
  readonly #database: Database
  readonly #beatingDatabase: Database
  readonly #leaseMs: number
  readonly #name: string
  readonly #version: string
  #num = 0
  #holder = '0'
  /** The server's clock, as far as this node can tell: what has to be added to the monotonic clock. */
  readonly #serverClock = new ServerClock()
  /** By the monotonic clock: until then nobody can have given this node up. */
  #assuredUntil = 0
  /** Since when it has been beating without a gap. */
  #assuredSince = 0
  /** How often its lease was over before it was renewed, and after how many of these it has read what others changed meanwhile. */
  #lapses = 0
  #caughtUpWith = 0
  #catchingUp: Promise<void> | null = null
  #nodes: NodeSummary[] = []
  /** At first it says that this node knows no version of the configuration, so that requests wait for it. */
  readonly #told = new Map<string, unknown>([[KNOWN_VERSION, -1]])
  readonly #listeners: (() => void)[] = []
  #timer: NodeJS.Timeout | undefined
  #working: Promise<void> | null = null
  #renewing: Promise<void> | null = null
  #left = false
  #markedAt = 0
  #lookedAt = 0
  #clock: Clock | null = null
  #scheduleMs = 0
  #on: MembershipListeners = { beat: async () => {}, fenced: () => {}, lapse: async () => {}, trouble: () => {} }
  /** Told when the number is another from now on. */
  onNumber: ((num: number) => void) | null = null

  private constructor({ database, beating, name, version, leaseMs = LEASE_MS }: MembershipOptions) {
    this.#leaseMs = leaseMs
    this.#database = database
    this.#beatingDatabase = beating
    this.#name = name
    this.#version = version
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

  /** Where schedule time stands, as of the start. */
  get scheduleMs(): number {
    return this.#scheduleMs
  }

  /** The server's clock. */
  serverMs(): number {
    return this.#serverClock.nowMs()
  }

  /** Whether what this node holds is certainly still its own, and nobody can have gone on without waiting for it to know of a change. */
  get isAssured(): boolean {
    return performance.now() < this.#assuredUntil && this.#caughtUpWith === this.#lapses
  }

  /** Every node that is alive, this one too, by number. */
  get nodes(): readonly NodeSummary[] {
    return this.#nodes
  }

  others(): NodeSummary[] {
    return this.#nodes.filter(({ isSelf }) => !isSelf)
  }

  get count(): number {
    return Math.max(1, this.#nodes.length)
  }

  /** This node's place among those that are alive, from 0. */
  get rank(): number {
    return Math.max(
      0,
      this.#nodes.findIndex(({ isSelf }) => isSelf),
    )
  }

  /** Told to the others with the next beat. */
  announce(key: string, value: unknown): void {
    if (value === undefined) this.#told.delete(key)
    else this.#told.set(key, value)
  }

  /** Confirms this version of the configuration to the other nodes: at once if they wait for it, otherwise with the next heartbeat. */
  async tellVersion(version: number, atOnce: boolean): Promise<void> {
    this.#told.set(KNOWN_VERSION, version)
    if (!atOnce) return
    // A heartbeat that is under way may have been sent without it.
    await this.#renewing?.catch(() => {})
    await this.#renewOnce()
  }

  /** Whether every live node has confirmed this version or a later one. */
  async isKnown(version: number): Promise<boolean> {
    const { rows } = await this.#database.query<{ known: boolean }>(
      `SELECT NOT EXISTS (SELECT FROM nodes WHERE expires_at > now() AND (doc::json->>'${KNOWN_VERSION}')::bigint < $1) AS known`,
      [version],
    )
    return rows[0]?.known ?? false
  }

  /** After every beat: who is alive, or what they told, may have changed. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }

  useClock(clock: Clock): void {
    this.#clock = clock
  }

  start(listeners: MembershipListeners): void {
    this.#on = listeners
    this.#timer = setInterval(() => void this.beat().catch(() => {}), BEAT_MS).unref()
  }

  /** Rejects when the store cannot be written. */
  async check(): Promise<void> {
    await this.#renewOnce()
  }

  /** Renews the lease, and catches up if it was over. Rejects when either fails. */
  async assure(): Promise<void> {
    await this.#renewOnce()
    while (!this.#left && this.#caughtUpWith !== this.#lapses) await this.#catchUp()
  }

  /** Renews the lease, and sets going what is done at every beat: that may take longer, and no lease must wait for it. */
  async beat(): Promise<void> {
    if (this.#left) return
    await this.#renewOnce()
    this.#working ??= this.#work()
      .catch((error: unknown) => this.#on.trouble(error))
      .finally(() => {
        this.#working = null
      })
  }

  /** Gives everything back. */
  async leave(): Promise<void> {
    this.#left = true
    clearInterval(this.#timer)
    await this.#working
    await this.#database.transaction((ask) => this.#giveUp(ask, this.#num, this.#holder)).catch(() => {})
  }

  async #work(): Promise<void> {
    await this.#giveUpOthers()
    await this.#mark()
    await this.#on.beat()
  }

  async #join(): Promise<void> {
    const started = performance.now()
    const row = await this.#beatingDatabase.transaction(async (ask) => {
      await ask('SELECT pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.membership])
      const { rows } = await ask<{ num: number; now_ms: number }>(
        `SELECT n AS num, (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms FROM generate_series(0, ${NODE_NUMBERS - 1}) n
         WHERE n NOT IN (SELECT num FROM nodes) ORDER BY n LIMIT 1`,
      )
      const free = rows[0]
      if (free === undefined) throw new Error(`there are ${NODE_NUMBERS} nodes already`)
      const holder = new RowIds(free.num, () => free.now_ms).next()
      await ask(`INSERT INTO nodes (num, holder, name, version, expires_at, doc) VALUES ($1, $2, $3, $4, ${leaseEnd('$5')}, $6)`, [
        free.num,
        holder,
        this.#name,
        this.#version,
        this.#leaseMs,
        this.#doc,
      ])
      const mark = await readSetting(ask, SCHEDULE_SETTING)
      return { ...free, holder, scheduleMs: Math.max(free.now_ms, Number(mark ?? 0)) }
    })
    this.#num = row.num
    this.#holder = row.holder
    this.#serverClock.learn(row.now_ms, started, performance.now())
    this.#scheduleMs = row.scheduleMs
    this.#assuredSince = started
    this.#assuredUntil = started + this.#leaseMs
    this.onNumber?.(row.num)
    await this.#renew()
  }

  get #doc(): string {
    return JSON.stringify(Object.fromEntries(this.#told))
  }

  /** One at a time, or a node that was given up would come back as several, and hold work under names that it does not renew. */
  #renewOnce(): Promise<void> {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = null
    })
    return this.#renewing
  }

  async #renew(): Promise<void> {
    const sent = performance.now()
    const { rows } = await this.#beatingDatabase.query<{ alive: number; now_ms: number; nodes: NodeRow[] }>(
      {
        name: 'beat',
        text: `WITH me AS (UPDATE nodes SET expires_at = ${leaseEnd('$4')}, doc = $3 WHERE num = $1 AND holder = $2 RETURNING num)
          SELECT (SELECT count(*)::integer FROM me) AS alive, (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms,
            (SELECT coalesce(json_agg(n), '[]') FROM (SELECT num, holder::text AS holder, name, version,
               (extract(epoch FROM started_at) * 1000)::bigint AS "startedAtMs", (extract(epoch FROM expires_at) * 1000)::bigint AS "expiresAtMs",
               doc::json FROM nodes ORDER BY num) n) AS nodes`,
      },
      [this.#num, this.#holder, this.#doc, this.#leaseMs],
      this.#leaseMs / 2,
    )
    const row = rows[0]
    if (row === undefined || this.#left) return
    const received = performance.now()
    if (row.alive === 0) {
      this.#assuredUntil = 0
      this.#lapses++
      this.#on.fenced()
      await this.#join()
      return
    }
    if (received > this.#assuredUntil) this.#lapses++
    if (sent > this.#assuredUntil) this.#assuredSince = sent
    this.#assuredUntil = sent + this.#leaseMs
    this.#serverClock.learn(row.now_ms, sent, received)
    this.#nodes = row.nodes
      // Of its own row the statement sees how it was before.
      .filter(({ num, holder, expiresAtMs }) => expiresAtMs > row.now_ms || (num === this.#num && holder === this.#holder))
      .map(({ holder, expiresAtMs, ...node }) => {
        const isSelf = holder === this.#holder
        return Object.assign(node, { seenAtMs: isSelf ? row.now_ms : expiresAtMs - this.#leaseMs, isSelf })
      })
    this.#expired = row.nodes.some(({ holder, expiresAtMs }) => holder !== this.#holder && expiresAtMs < row.now_ms)
    for (const listener of this.#listeners) listener()
    if (this.#caughtUpWith !== this.#lapses) this.#catchUp().catch((error: unknown) => this.#on.trouble(error))
  }
  #expired = false

  /** Beside the beat, which must not wait for it. What fails is tried again after the next. */
  #catchUp(): Promise<void> {
    this.#catchingUp ??= this.#catchUpOnce().finally(() => {
      this.#catchingUp = null
    })
    return this.#catchingUp
  }

  async #catchUpOnce(): Promise<void> {
    const lapses = this.#lapses
    await this.#on.lapse()
    this.#caughtUpWith = lapses
    if (lapses === this.#lapses) for (const listener of this.#listeners) listener()
  }

  async #giveUpOthers(): Promise<void> {
    const now = performance.now()
    if (now - this.#assuredSince < this.#leaseMs) return
    if (this.#expired) {
      await this.#database.transaction(async (ask) => {
        await ask('SELECT pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.membership])
        const { rows } = await ask<{ num: number; holder: string }>('SELECT num, holder FROM nodes WHERE expires_at < now() FOR UPDATE')
        for (const { num, holder } of rows) await this.#giveUp(ask, num, holder)
      })
    }
    if (now - this.#lookedAt < ORPHANS_EVERY * this.#leaseMs) return
    this.#lookedAt = now
    await this.#giveUpOrphans()
  }

  async #giveUp(ask: Ask, num: number, holder: string): Promise<void> {
    await ask('UPDATE shipments SET holder = 0 WHERE holder = $1', [holder])
    await ask('DELETE FROM nodes WHERE num = $1 AND holder = $2', [num, holder])
  }

  async #giveUpOrphans(): Promise<void> {
    const { rows } = await this.#database.query<{ holder: string }>(
      `${WITH_HOLDERS} SELECT holder FROM holders h WHERE holder IS NOT NULL AND NOT EXISTS (SELECT FROM nodes n WHERE n.holder = h.holder)`,
    )
    for (const { holder } of rows) await this.#database.query('UPDATE shipments SET holder = 0 WHERE holder = $1', [holder])
  }

  async #mark(): Promise<void> {
    const now = performance.now()
    if (this.#clock === null || now - this.#markedAt < MARK_EVERY_MS) return
    this.#markedAt = now
    await this.#database.query(
      `INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value
       WHERE settings.value::bigint < excluded.value::bigint`,
      [SCHEDULE_SETTING, String(Math.floor(this.#clock.scheduleMs()))],
    )
  }
}

function leaseEnd(parameter: string): string {
  return `now() + ${parameter}::integer * interval '1 millisecond'`
}
