// The part of the order's port that is the same for both adapters. If the head of a key that is skipped has been claimed and is then given back without
// an attempt, nothing would end it until its next attempt is over, so skipping it is tried again for some time.

import type { OrderKey } from '../../model/order/order-key.ts'
import type { Seed } from '../encoding/fingerprint.ts'
import { orderKeyOf } from '../encoding/order-key-hash.ts'
import type { Configuration, KeyAction, KeyActionResult, NewAuditEntry, OrderStore } from '../store.ts'
import type { KeyRequest } from './change-key.ts'
import type { OrderReads } from './order-reads.ts'

/** `skip` and `retryNow` run the functions of change-key.ts in a transaction, and write the audit entry if it succeeded. */
export interface OrderEngine extends OrderReads {
  skip(request: KeyRequest, atMs: number, audit: NewAuditEntry | undefined): Promise<KeyActionResult>
  retryNow(request: KeyRequest, atMs: number, audit: NewAuditEntry | undefined): Promise<KeyActionResult>
  seed(): Seed | Promise<Seed>
  configuration(): Configuration
  nowMs(): number
  /** Tells delivery that the store has new work for the destination. */
  wake(destinationId: string): void
  isClosed(): boolean
}

const TRY_AGAIN_MS = 250
const TRIES = 40

export function commonOrderStore(engine: OrderEngine): OrderStore {
  const hashed = async (destinationId: string, key: string, messageId: string | undefined): Promise<KeyRequest> => {
    const hash: OrderKey = orderKeyOf(key, await engine.seed())
    return { destinationId, key: hash, messageId }
  }
  /** Ends the head as soon as nobody has claimed it any more. What ends it meanwhile ends this, too. */
  const finish = async (request: KeyRequest, first: KeyAction): Promise<void> => {
    for (let nth = 0; nth < TRIES && !engine.isClosed(); nth++) {
      await new Promise((resolve) => setTimeout(resolve, TRY_AGAIN_MS).unref())
      const result = await engine.skip({ ...request, deliveryId: first.deliveryId }, Math.floor(engine.nowMs()), undefined)
      if (!result.ok) return
      engine.wake(request.destinationId)
      if (result.isOver) return
    }
  }
  return {
    read: (destinationId, page) =>
      engine.read(destinationId, engine.configuration().destinations.get(destinationId)?.order?.by ?? 'user', page),
    counts: (destinationId) => engine.counts(destinationId),
    allCounts: () => engine.allCounts(),
    crowded: (destinationId, maxWaiting) => engine.crowded(destinationId, maxWaiting),
    async skip(destinationId, key, messageId, audit) {
      const request = await hashed(destinationId, key, messageId)
      const result = await engine.skip(request, Math.floor(engine.nowMs()), audit)
      if (result.ok) {
        engine.wake(destinationId)
        if (!result.isOver) void finish(request, result).catch(() => {})
      }
      return result
    },
    async retryNow(destinationId, key, messageId, audit) {
      const result = await engine.retryNow(await hashed(destinationId, key, messageId), Math.floor(engine.nowMs()), audit)
      if (result.ok) engine.wake(destinationId)
      return result
    },
  }
}

/** The entry of the audit log about what was done. It names the delivery, not the key, which may be a user id that is deleted later. */
export function actionAudit(audit: NewAuditEntry | undefined, done: KeyActionResult): NewAuditEntry | undefined {
  if (audit === undefined || !done.ok) return undefined
  return { ...audit, after: { deliveryId: done.deliveryId, state: done.state } }
}
