// Which partitions of ordered destinations this node delivers: those that it owns in the database. A partition is the same for all destinations. Each
// node owns its share of the partitions: it takes free ones, and gives those beyond its share back once it holds nothing of them, and no shipment that
// may have messages of any partition. Those of a node that was declared dead are freed in the transaction that releases what it held.
//
// Claims take a shared lock, and changes of owners an exclusive one, so that a claim sees who owns a partition, and a change of the owner sees every
// row that the old one has claimed. A node may start ordered requests for START_ORDERED_MS after its last heartbeat. The next owner of a partition of
// which a dead node held work waits that long, and for the deadline of a request, so that nothing of the dead node arrives after what it starts.

import { PARTITIONS } from '../../../model/order/order-key.ts'
import { monotonicMs } from '../../../timing/monotonic.ts'
import { singleFlight } from '../../../timing/single-flight.ts'
import type { PartitionChange } from '../../store.ts'
import { UNDIVIDED } from '../tables/ordered-rows.ts'
import { lockOwners, START_ORDERED_MS } from '../tables/partition-owners.ts'
import type { MessageContext } from './store-context.ts'

export type OrderPartitionsDeps = Pick<MessageContext, 'database' | 'membership' | 'configuration' | 'consumer'>

export class OrderPartitions {
  readonly #deps: OrderPartitionsDeps
  #owned = new Set<number>()
  #leaving = new Set<number>()
  /** Null until it is known whether there is any ordered work. */
  #isUsed: boolean | null = null

  constructor(deps: OrderPartitionsDeps) {
    this.#deps = deps
  }

  /** The partitions of which this node may claim work. A claim checks in the database that it owns them. */
  get claimable(): number[] {
    return [...this.#owned].filter((part) => !this.#leaving.has(part))
  }

  /** Whether there is any ordered work. */
  get isUsed(): boolean {
    return this.#isUsed === true
  }

  /** Whether this node waits for partitions, or to give some back. */
  get isUnsettled(): boolean {
    return this.#isUsed === true && (this.#leaving.size > 0 || this.#owned.size !== this.#quota)
  }

  /** Until when ordered requests may be started, by the monotonic clock of the machine. */
  get startUntilMs(): number {
    return monotonicMs() - performance.now() + this.#deps.membership.renewedAt + START_ORDERED_MS
  }

  /** This node was declared dead, and its partitions are free. */
  fenced(): void {
    this.#owned.clear()
    this.#leaving.clear()
  }

  /** Takes and gives back partitions. Costs nothing while no destination has the setting `order` and there is no ordered work. */
  readonly check = singleFlight(async (): Promise<void> => {
    const { membership, database } = this.#deps
    if (!(await this.#used()) || !membership.isLeaseValid) return
    const { holder } = membership
    const { rows } = await database.query<{ part: number; owner: string; free: boolean }>(
      `SELECT part, owner::text AS owner, ${IS_FREE} AS free FROM order_partitions ORDER BY part`,
    )
    // This node was declared dead meanwhile.
    if (holder !== membership.holder) return
    const mine = rows.filter(({ owner }) => owner === holder).map(({ part }) => part)
    // Also those of which the answer was lost.
    this.#own(mine)
    const quota = this.#quota
    const leaving = mine.slice(quota)
    const before = this.#leaving
    this.#leaving = new Set(leaving)
    if (leaving.some((part) => !before.has(part))) this.#changed('leaving')
    // They stay after all, because a node has left.
    if ([...before].some((part) => this.#owned.has(part) && !this.#leaving.has(part))) this.#changed('gained')
    if (leaving.length > 0) await this.#giveBack(holder, leaving)
    else if (mine.length < quota && rows.some(({ free }) => free)) await this.#take(holder, quota - mine.length)
  })

  /** How many partitions this node should have: an equal share, and one more for the first nodes. */
  get #quota(): number {
    const { count, rank } = this.#deps.membership
    return Math.floor(PARTITIONS / count) + (rank < PARTITIONS % count ? 1 : 0)
  }

  async #used(): Promise<boolean> {
    const { database, configuration } = this.#deps
    if (this.#isUsed !== true && [...configuration().destinations.values()].some(({ order }) => order != null)) this.#isUsed = true
    if (this.#isUsed === null) {
      // Of a destination whose setting was removed, or that another node has just created.
      const { count } = await database.query('SELECT 1 FROM shipments WHERE attempt < 0 LIMIT 1')
      this.#isUsed ||= count > 0
    }
    return this.#isUsed
  }

  #own(parts: readonly number[]): void {
    const isNew = parts.some((part) => !this.#owned.has(part))
    this.#owned = new Set(parts)
    if (isNew) this.#changed('gained')
  }

  #changed(change: PartitionChange): void {
    this.#deps.consumer()?.partitionsChanged?.(change)
  }

  async #take(holder: string, count: number): Promise<void> {
    const taken = await this.#deps.database.transaction(async (ask) => {
      await lockOwners(ask)
      await ask("DELETE FROM order_waits WHERE started_until < extract(epoch FROM now() - interval '1 hour') * 1000")
      const { rows } = await ask<{ part: number }>(
        `UPDATE order_partitions SET owner = $1 WHERE EXISTS (SELECT FROM nodes WHERE holder = $1)
           AND part IN (SELECT part FROM order_partitions WHERE ${IS_FREE} ORDER BY part LIMIT $2) RETURNING part`,
        [holder, count],
      )
      return rows
    })
    if (holder === this.#deps.membership.holder) this.#own([...this.#owned, ...taken.map(({ part }) => part)])
  }

  /** Gives back those of which this node holds nothing. */
  async #giveBack(holder: string, parts: readonly number[]): Promise<void> {
    const given = await this.#deps.database.transaction(async (ask) => {
      await lockOwners(ask)
      const { rows } = await ask<{ part: number }>(
        `UPDATE order_partitions p SET owner = 0 WHERE owner = $1 AND part = ANY ($2::integer[])
           AND NOT EXISTS (SELECT FROM shipments s WHERE s.holder = $1 AND s.attempt < 0 AND s.partition IN (p.part, ${UNDIVIDED})) RETURNING part`,
        [holder, [...parts]],
      )
      return rows
    })
    if (holder !== this.#deps.membership.holder) return
    for (const { part } of given) {
      this.#owned.delete(part)
      this.#leaving.delete(part)
    }
  }
}

/** A node of an earlier version that declares others dead does not free their partitions. */
const IS_FREE = '(owner = 0 OR owner NOT IN (SELECT holder FROM nodes))'
