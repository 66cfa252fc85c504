import assert from 'node:assert/strict'
import test from 'node:test'
import type { Claim, ClaimRequest } from '../../store/store.ts'
import { Backlog } from '../recording/backlog.ts'
import { Claiming } from './claiming.ts'

const NOW_MS = 1_000
const MB = 1024 * 1024
const NOTHING: Claim = { shipments: [], moreFresh: false, nextRetryAtMs: null }

interface Setting {
  /** A retry is due. */
  dueRetry?: boolean
  waitingFresh?: boolean
  waitingRetries?: boolean
  heldBytes?: number
  roomBytes?: number
  freeBytes?: number
  isHalfFree?: boolean
}

function claimingWith({
  dueRetry = false,
  waitingFresh = false,
  waitingRetries = false,
  heldBytes = 0,
  roomBytes = 4 * MB,
  freeBytes = 24 * MB,
  isHalfFree = false,
}: Setting = {}) {
  const asked: ClaimRequest[] = []
  const events: string[] = []
  const answers: { resolve: (claim: Claim) => void; reject: (error: Error) => void }[] = []
  const backlog = new Backlog()
  if (dueRetry) backlog.returned(1, NOW_MS)
  const claiming = new Claiming({
    store: {
      claim(request) {
        asked.push(request)
        return new Promise((resolve, reject) => answers.push({ resolve, reject }))
      },
    },
    memory: { freeBytes, isHalfFree },
    clock: { scheduleMs: () => NOW_MS },
    destinationId: 'dst',
    backlog,
    queue: { hasFresh: waitingFresh, hasRetries: waitingRetries },
    held: { bytes: heldBytes, roomBytes, charge: () => events.push('charged') },
    claimed: (shipments, probe) => events.push(`claimed ${shipments.length}${probe ? ' for a probe' : ''}`),
    failed: () => events.push('failed'),
  })
  return { claiming, asked, answers, events, backlog }
}

/** How many new shipments and retries the lane claims; null if it makes no claim. */
function askedFor(setting: Setting, probe = false): [maxFresh: number, maxRetries: number] | null {
  const { claiming, asked } = claimingWith(setting)
  claiming.claimIfNeeded(NOW_MS, probe)
  return asked[0] === undefined ? null : [asked[0].maxFresh, asked[0].maxRetries]
}

test('the lane claims kinds of work that the store may have and that are not waiting in memory', () => {
  assert.deepEqual(askedFor({}), [256, 0])
  assert.deepEqual(askedFor({ dueRetry: true }), [256, 64])
  assert.deepEqual(askedFor({ dueRetry: true, waitingFresh: true }), [0, 64])
  assert.deepEqual(askedFor({ dueRetry: true, waitingRetries: true }), [256, 0])
  assert.equal(askedFor({ waitingFresh: true }), null)
})

test('the lane claims new shipments ahead if it holds little and memory is at least half free', () => {
  assert.deepEqual(askedFor({ waitingFresh: true, isHalfFree: true }), [256, 0])
  assert.equal(askedFor({ waitingFresh: true, isHalfFree: true, heldBytes: 1.5 * MB }), null)
  assert.equal(askedFor({ waitingFresh: true, isHalfFree: true }, true), null, 'not for a probe')
})

test('for a probe the lane claims one shipment, a retry if one is due', () => {
  assert.deepEqual(askedFor({}, true), [1, 0])
  assert.deepEqual(askedFor({ dueRetry: true }, true), [0, 1])
})

test('the lane claims no more bytes than there is room for', () => {
  const bytesAsked = (setting: Setting): number | undefined => {
    const { claiming, asked } = claimingWith(setting)
    claiming.claimIfNeeded(NOW_MS, false)
    return asked[0]?.maxBytes
  }
  assert.equal(bytesAsked({}), 256 * 1024)
  assert.equal(bytesAsked({ roomBytes: 1_000 }), 1_000)
  assert.equal(bytesAsked({ freeBytes: 100_000 }), 100_000)
  assert.equal(bytesAsked({ freeBytes: -5 }), 64 * 1024, 'a small reserve, although other lanes have filled the memory')
  assert.equal(bytesAsked({ freeBytes: -5, heldBytes: 64 * 1024 + 1 }), undefined)
  assert.equal(bytesAsked({ roomBytes: -1 }), undefined)
})

test('there is one claim at a time, and its shipments are charged to memory before they are handed on', async () => {
  const { claiming, asked, answers, events, backlog } = claimingWith()
  claiming.claimIfNeeded(NOW_MS, true)
  backlog.wake()
  claiming.claimIfNeeded(NOW_MS, true)
  assert.deepEqual([asked.length, claiming.isUnderWay], [1, true])
  answers[0]?.resolve(NOTHING)
  await Promise.resolve()
  assert.deepEqual([events, claiming.isUnderWay], [['charged', 'claimed 0 for a probe'], false])
  assert.ok(backlog.hasFresh, 'new work was announced during the claim')
})

test('a claim that failed is made again a second later, and no announced work is forgotten', async () => {
  const { claiming, asked, answers, events, backlog } = claimingWith({ dueRetry: true })
  claiming.claimIfNeeded(NOW_MS, false)
  answers[0]?.reject(new Error('away'))
  await new Promise(setImmediate)
  assert.deepEqual([events, claiming.isUnderWay, claiming.notBeforeMs], [['failed'], false, NOW_MS + 1_000])
  assert.deepEqual([backlog.hasFresh, backlog.nextRetryAtMs], [true, NOW_MS])
  claiming.claimIfNeeded(NOW_MS + 999, false)
  assert.equal(asked.length, 1)
  claiming.claimIfNeeded(NOW_MS + 1_000, false)
  assert.equal(asked.length, 2)
})
