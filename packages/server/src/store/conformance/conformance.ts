// The tests that every adapter of the store must pass. The test file of an adapter calls this with a function that opens the store. The tests use
// only the port, so that they run on every adapter.

import { after, before, beforeEach, suite } from 'node:test'
import { accepting } from './accepting.ts'
import { auditing } from './auditing.ts'
import { authorizing } from './authorizing.ts'
import { configuring } from './configuring.ts'
import { conservation } from './conservation.ts'
import { counting } from './counting.ts'
import { deleting } from './deleting.ts'
import { deadLetters } from './delivery/dead-letters.ts'
import { delivering } from './delivery/delivering.ts'
import { orderOperations } from './delivery/order-operations.ts'
import { ordering } from './delivery/ordering.ts'
import { partialSettlement } from './delivery/partial-settlement.ts'
import { documenting } from './documenting.ts'
import { erasing } from './erasing.ts'
import { type Open, type OpenStore, RecordingConsumer, type StoreFixture } from './fixtures.ts'
import { inspecting } from './inspecting.ts'
import { keepingState } from './keeping-state.ts'
import { messageDetails } from './message-details.ts'
import { planning } from './planning.ts'
import { purging } from './purging.ts'
import { quarantine } from './quarantine.ts'
import { reading } from './reading.ts'
import { replayChanges } from './replays/replay-changes.ts'
import { replaySequences } from './replays/replay-sequences.ts'
import { replaySteps } from './replays/replay-steps.ts'
import { replaying } from './replays/replaying.ts'
import { replayingArchives } from './replays/replaying-archives.ts'
import { replayingOne } from './replays/replaying-one.ts'
import { retention } from './retention.ts'
import { scoping } from './scoping.ts'
import { searching } from './searching.ts'
import { suppressing } from './suppressing.ts'
import { versioning } from './versioning.ts'

export type { Open, OpenStore } from './fixtures.ts'

export function conformance(name: string, open: Open): void {
  suite(`the ${name} store`, () => {
    let opened: OpenStore
    before(async () => {
      opened = await open({ retentionDays: 7 })
    })
    after(() => opened.dispose())
    beforeEach(() => {
      const idle = new RecordingConsumer()
      idle.reserves = false
      opened.store.delivery.attach(idle)
    })
    const fixture: StoreFixture = { open, store: () => opened.store, reopen: () => opened.reopen() }
    suite('accepting', () => accepting(fixture))
    suite('delivering', () => delivering(fixture))
    suite('dead letters', () => deadLetters(fixture))
    suite('ordering', () => ordering(fixture))
    suite('operators and ordered keys', () => orderOperations(fixture))
    suite('partial settlement', () => partialSettlement(fixture))
    suite('reading', () => reading(fixture))
    suite('searching', () => searching(fixture))
    suite('message details', () => messageDetails(fixture))
    suite('configuring', () => configuring(fixture))
    suite('versioning', () => versioning(fixture))
    suite('authorizing', () => authorizing(fixture))
    suite('planning', () => planning(fixture))
    suite('documenting', () => documenting(fixture))
    suite('keeping state', () => keepingState(fixture))
    suite('deleting', () => deleting(fixture))
    suite('purging', () => purging(fixture))
    suite('erasing', () => erasing(fixture))
    suite('suppressing', () => suppressing(fixture))
    suite('scoping', () => scoping(fixture))
    suite('auditing', () => auditing(fixture))
    suite('changes of replay jobs', () => replayChanges(fixture))
    suite('retention', () => retention(fixture))
    suite('conservation', () => conservation(fixture))
    suite('inspecting', () => inspecting(fixture))
    suite('replaying one delivery', () => replayingOne(fixture))
    suite('replaying', () => replaying(fixture))
    suite('replaying archives', () => replayingArchives(fixture))
    suite('steps of replay jobs', () => replaySteps(fixture))
    suite('replaying in any sequence', () => replaySequences(fixture))
    suite('quarantine', () => quarantine(fixture))
    suite('counting', () => counting(fixture))
  })
}
