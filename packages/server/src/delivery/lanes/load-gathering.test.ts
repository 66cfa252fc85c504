import assert from 'node:assert/strict'
import test from 'node:test'
import type { Destination } from '../../store/store.ts'
import { ManualClock } from '../fixtures/manual-clock.ts'
import { Backlog } from '../recording/backlog.ts'
import { LoadGathering, type LoadGatheringDeps } from './load-gathering.ts'

const EVERY_MS = 60_000

test('what waits is counted again after another node has made the loads', () => {
  const clock = new ManualClock(0)
  const load = { everyMs: EVERY_MS, maxRows: 10, maxBytes: 1_000_000 }
  const destination = { id: 'dst', type: 'warehouse', load } as unknown as Destination
  const deps: Partial<LoadGatheringDeps> = { clock, setTimer: clock.setTimer, destination: () => destination, backlog: new Backlog() }
  const loads = new LoadGathering(deps as LoadGatheringDeps)
  loads.accepted(100, 9)
  const firstDueMs = clock.wallMs() + EVERY_MS
  assert.equal(loads.dueAtMs, firstDueMs)
  loads.forget()
  assert.equal(loads.dueAtMs, null)
  clock.advance(1_000)
  loads.accepted(100, 9)
  assert.equal(loads.dueAtMs, firstDueMs + 1_000, 'there are not enough for a load at once')
  loads.accepted(100, 1)
  assert.equal(loads.dueAtMs, clock.wallMs())
})
