import assert from 'node:assert/strict'
import test from 'node:test'
import { webhookOf } from '../../destinations/fixtures/webhook.ts'
import type { ClaimedShipment, DeliveryStore } from '../../store/store.ts'
import { ExpiryCheck } from './expiry-check.ts'

test('few shipments are claimed at once, because each can have 500 KB, and even fewer if they become dead letters', () => {
  const limits: number[] = []
  const claimOverdue = (_id: string, _beforeMs: number, limit: number): Promise<ClaimedShipment[]> => {
    limits.push(limit)
    return Promise.resolve([])
  }
  for (const deadLetter of [null, 'dst_dead']) {
    const check = new ExpiryCheck({ claimOverdue } as unknown as DeliveryStore, () => {})
    check.checkIfDue(webhookOf({ deadLetter }), 1_000)
  }
  const [most = 0, withLetters = 0] = limits
  assert.ok(withLetters > 0 && withLetters * 512_000 <= 12_000_000, `${withLetters} with dead letters`)
  assert.ok(most > 0 && most * 512_000 <= 30_000_000, `${most} without`)
})
