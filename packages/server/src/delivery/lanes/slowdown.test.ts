import assert from 'node:assert/strict'
import test from 'node:test'
import { webhookOf } from '../../destinations/fixtures/webhook.ts'
import { SegmentBody, writeStoredBody } from '../../store/port/stored-messages.ts'
import type { Claim, DeliveryStore } from '../../store/store.ts'
import { failure } from '../link/outcome.ts'
import type { Work } from '../link/work.ts'
import { Memory } from '../recording/memory.ts'
import { StoreState } from '../recording/store-state.ts'
import type { Senders } from '../supervision/senders.ts'
import { Lane, type LaneDeps } from './lane.ts'
import { Slots } from './slots.ts'
import { Slowdown } from './slowdown.ts'

interface Sample {
  turns: number
  /** How long ingest worked, and how long the request took. */
  busyMs: number
  tookMs: number
  /** How long the sender had it. Default: as long as it took. */
  senderMs?: number
}

function watch(...samples: Sample[]): boolean {
  const used = { turns: 0, busyMs: 0, nowMs: 0 }
  const slowdown = new Slowdown({
    get used() {
      return { ...used }
    },
  })
  for (const { turns, busyMs, tookMs, senderMs = tookMs } of samples) {
    const request = {}
    slowdown.started(request)
    slowdown.started({})
    used.turns += turns
    used.busyMs += busyMs
    used.nowMs += tookMs
    slowdown.answered({}, senderMs)
    slowdown.answered(request, senderMs)
  }
  return slowdown.isSlowed
}

const SLOWED: Sample = { turns: 1, busyMs: 8, tookMs: 10 }
const UNDISTURBED: Sample = { turns: 0, busyMs: 0, tookMs: 2 }
const SLOW_RECEIVER: Sample = { turns: 90, busyMs: 900, tookMs: 1_000 }
const SLOW_RECEIVER_LITTLE_INGEST: Sample = { turns: 2, busyMs: 10, tookMs: 1_000 }

test('a lane counts as slowed down if a turn of ingest takes a large part of the duration of its requests', () => {
  assert.equal(watch(), false)
  assert.equal(watch(SLOWED), false, 'one request is not enough')
  assert.equal(watch(SLOWED, SLOWED), true)
})

test('a lane is slowed down if its answers wait for this thread longer than their sender took, however many turns that is', () => {
  const late: Sample = { turns: 6, busyMs: 40, tookMs: 60, senderMs: 10 }
  assert.equal(watch(late, late), true)
  assert.equal(watch({ ...late, senderMs: 40 }, { ...late, senderMs: 40 }), false)
  assert.equal(watch({ ...late, busyMs: 10 }, { ...late, busyMs: 10 }), false)
})

test('the lane of a slow receiver does not count as slowed down, however busy ingest is', () => {
  assert.equal(watch(SLOW_RECEIVER, SLOW_RECEIVER, SLOW_RECEIVER), false)
  assert.equal(watch(SLOW_RECEIVER_LITTLE_INGEST, SLOW_RECEIVER_LITTLE_INGEST), false)
})

test('requests during which ingest did nothing do not change the result', () => {
  assert.equal(watch(UNDISTURBED, UNDISTURBED, UNDISTURBED), false)
  assert.equal(watch(SLOWED, SLOWED, UNDISTURBED, UNDISTURBED, UNDISTURBED), true)
})

test('if the receiver becomes slow, the result changes after a few requests', () => {
  const slowed = Array.from({ length: 10 }, () => SLOWED)
  assert.equal(watch(...slowed, SLOW_RECEIVER, SLOW_RECEIVER, SLOW_RECEIVER), true)
  assert.equal(watch(...slowed, SLOW_RECEIVER, SLOW_RECEIVER, SLOW_RECEIVER, SLOW_RECEIVER), false)
})

test('while the measured request gets no answer, the lane does not count as slowed down', () => {
  const used = { turns: 0, busyMs: 0, nowMs: 0 }
  const slowdown = new Slowdown({
    get used() {
      return { ...used }
    },
  })
  const pass = (turns: number): void => {
    used.turns += turns
    used.busyMs += turns * 8
    used.nowMs += turns * 10
  }
  for (const request of [{}, {}, {}]) {
    slowdown.started(request)
    pass(1)
    slowdown.answered(request, 10)
  }
  const hanging = {}
  slowdown.started(hanging)
  pass(2)
  assert.equal(slowdown.isSlowed, true)
  pass(40)
  assert.equal(slowdown.isSlowed, false)
  slowdown.answered(hanging, 420)
  assert.equal(slowdown.isSlowed, true, 'one request is not enough')
})

/** A claim of one message. The store has more. */
function claimOf(id: number): Claim {
  const part = { origin: id, segment: id, indexes: [0] }
  const shipment = {
    id,
    claim: 1,
    destinationId: 'dst',
    attempt: 0,
    firstAttemptAtMs: null,
    dueAtMs: 0,
    unit: false,
    progress: null,
    replay: false,
    parts: [part],
  }
  const about = { sourceId: 'src', receivedAtMs: 0, ip: null, browser: false, trace: null }
  const bodies = new Map([[id, new SegmentBody(writeStoredBody({ batch: [{ type: 'track' }] }), about)]])
  return { shipments: [{ shipment, bodies, bytes: 100 }], moreFresh: true, nextRetryAtMs: null }
}

test('after a message that cannot be sent, the lane still measures whether ingest slows it down', async () => {
  const started: Work[] = []
  const needs: string[] = []
  const ingest = { turns: 0, busyMs: 0, nowMs: 0 }
  let claims = 0
  const claimOrdered = async () => ({ shipments: [], more: false, nextHeadAtMs: null })
  const store = { claim: async () => claimOf(++claims), claimOrdered, settle: async () => {}, release: () => {}, share: () => 1 }
  const deps: LaneDeps = {
    store: store as unknown as DeliveryStore,
    senders: { of: () => ({ start: (work: Work) => void started.push(work) }) } as unknown as Senders,
    slots: new Slots(10),
    memory: new Memory(1_000_000),
    clock: { wallMs: () => 0, scheduleMs: () => 0 },
    setTimer: () => () => {},
    random: () => 0.5,
    events: { attempted: () => {}, delivered: () => {}, breaker: () => {}, trouble: (_, error) => assert.fail(error as Error) },
    pacing: {
      report: (_id, need) => void needs.push(need),
      get used() {
        return { ...ingest }
      },
    },
    storeState: new StoreState(() => {}),
    holdOf: () => null,
  }
  const lane = new Lane(webhookOf({ id: 'dst', maxInFlight: 1 }), deps, new Set(['src']))
  const next = async (): Promise<Work> => {
    while (started.length === 0) await new Promise((resolve) => setImmediate(resolve))
    return started.shift() as Work
  }
  lane.pump()
  // The requests before the one that is watched: the lane does not know yet that work waits in the store.
  for (let nth = 0; nth < 3; nth++) (await next()).unsent([{ position: 0, why: 'deleted' }], true)
  for (let nth = 0; nth < 4; nth++) {
    const work = await next()
    ingest.turns += 1
    ingest.busyMs += 8
    ingest.nowMs += 10
    work.answered(0, { ...failure('internal_error'), verdict: 'success', reason: null, error: null, status: 200 }, 0)
  }
  assert.equal(needs.at(-1), 'behind')
})
