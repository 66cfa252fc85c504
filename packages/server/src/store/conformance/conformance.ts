// What every adapter of the store must do, as tests: an adapter's own test file calls this with a way to open it. Only the
// port's words are used, so that the same suite runs on each.

import { after, before, beforeEach, suite } from 'node:test'
import { accepting } from './accepting.ts'
import { auditing } from './auditing.ts'
import { authorizing } from './authorizing.ts'
import { configuring } from './configuring.ts'
import { conserving } from './conservation.ts'
import { counting } from './counting.ts'
import { deleting } from './deleting.ts'
import { delivering } from './delivering.ts'
import { type Ground, type Open, type OpenStore, RecordingTaker } from './fixtures.ts'
import { inspecting } from './inspecting.ts'
import { telling } from './message-details.ts'
import { settlingInParts } from './partial-settlement.ts'
import { purging } from './purging.ts'
import { reading } from './reading.ts'
import { replaySequences } from './replay-sequences.ts'
import { replaying } from './replaying.ts'
import { retaining } from './retention.ts'
import { suppressing } from './suppressing.ts'

export type { Open, OpenStore } from './fixtures.ts'

export function conformance(name: string, open: Open): void {
  suite(`the ${name} store`, () => {
    let opened: OpenStore
    before(async () => {
      opened = await open({ retentionDays: 7 })
    })
    after(() => opened.dispose())
    beforeEach(() => {
      const idle = new RecordingTaker()
      idle.wanted = false
      opened.store.delivery.attach(idle)
    })
    const ground: Ground = { open, store: () => opened.store, reopen: () => opened.reopen() }
    suite('accepting', () => accepting(ground))
    suite('delivering', () => delivering(ground))
    suite('settling in parts', () => settlingInParts(ground))
    suite('reading', () => reading(ground))
    suite('telling', () => telling(ground))
    suite('configuring', () => configuring(ground))
    suite('authorizing', () => authorizing(ground))
    suite('deleting', () => deleting(ground))
    suite('purging', () => purging(ground))
    suite('suppressing', () => suppressing(ground))
    suite('auditing', () => auditing(ground))
    suite('retaining', () => retaining(ground))
    suite('conserving', () => conserving(ground))
    suite('inspecting', () => inspecting(ground))
    suite('replaying', () => replaying(ground))
    suite('replaying in any sequence', () => replaySequences(ground))
    suite('counting', () => counting(ground))
  })
}
