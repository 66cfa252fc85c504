// Notices that the process of a node has ended, without waiting for its lease. The session that sends a node's heartbeats also holds an
// advisory lock, whose number is the node's holder id. If the process ends, even by kill -9, the server closes its sessions and
// the lock is free. If the machine or its network fails, the session stays open on the server, and only the expired lease shows that the node is dead.
//
// A free lock alone proves nothing: a running node may have lost its session and be opening another. So the lock must stay free for
// LOCK_FREE_MS without a heartbeat of the node. And it must have been taken since the server was started, because a server that
// was restarted, or promoted, has no locks at all.

/** Longer than a running node needs to open a session and send a heartbeat, which are a few round trips, and short enough for a takeover within 2 s. */
export const LOCK_FREE_MS = 700

/** Identifies a run of the server. The standby that replaces it has another start time. */
export const SERVER_RUN = 'pg_postmaster_start_time()::text'

/** The session-level advisory locks in this database, as a subquery: `holder` is the number of the lock. */
export const HELD_LOCKS = `SELECT (classid::bigint << 32) | objid::bigint AS holder, pid FROM pg_locks
  WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

export interface NodeLock {
  holder: string
  /** When its lease expires. Every heartbeat changes it. */
  expiresAtMs: number
  /** Whether the node has taken its lock in this run of the server, and nobody holds it now. */
  isFree: boolean
}

export class FreeLocks {
  #free = new Map<string, { expiresAtMs: number; since: number }>()

  /** Records which locks are free at this time of the monotonic clock. Returns those that have been free for LOCK_FREE_MS without a heartbeat. */
  observe(locks: readonly NodeLock[], now: number): NodeLock[] {
    const before = this.#free
    this.#free = new Map()
    return locks.filter(({ holder, expiresAtMs, isFree }) => {
      if (!isFree) return false
      const known = before.get(holder)
      const since = known?.expiresAtMs === expiresAtMs ? known.since : now
      this.#free.set(holder, { expiresAtMs, since })
      return now - since >= LOCK_FREE_MS
    })
  }

  /** How long after this time the next free lock will have been free for LOCK_FREE_MS; undefined if none is free. */
  nextMs(now: number): number | undefined {
    const waits = [...this.#free.values()].map(({ since }) => Math.max(0, since + LOCK_FREE_MS - now))
    return waits.length === 0 ? undefined : Math.min(...waits)
  }
}
