import assert from 'node:assert/strict'
import test from 'node:test'
import { integrationOf } from '../../destinations/fixtures/integration.ts'
import type { SegmentContent } from '../../store/store.ts'
import { unanswered } from '../link/outcome.ts'
import type { Work } from '../link/work.ts'
import type { SenderGroup } from '../supervision/sender-pool.ts'
import { previewRuns } from './preview-runs.ts'
import { TooManyPreviews } from './preview-turns.ts'

const ABOUT = { sourceId: 's', receivedAtMs: 0, ip: null, browser: false, sentAt: null, context: null, integrations: null, trace: null }
const message: SegmentContent = { ...ABOUT, items: [{ type: 'track', event: 'E', messageId: 'm' }] }
const options = { startedAtMs: 0, onBug: assert.fail }

const LIMIT_MS = 2_000

test('a preview ends after its limit, although a host never answers, and makes room for others', async () => {
  const started: Work[] = []
  const forgotten: string[] = []
  const senders = { start: (work: Work) => void started.push(work), forget: (id: string) => void forgotten.push(id) }
  const preview = (limitMs: number) =>
    previewRuns({ of: () => senders as unknown as SenderGroup }, integrationOf(), [message, message], options, limitMs)
  // Long enough for the fifth to be asked for before the first has ended.
  const running = [1, 2, 3, 4].map(() => preview(LIMIT_MS))
  await assert.rejects(preview(LIMIT_MS), TooManyPreviews)
  for (const previewed of await Promise.all(running)) {
    assert.deepEqual(
      previewed.map((one) => (one.kind === 'failed' ? one.reason : one.kind)),
      ['not_run', 'not_run'],
    )
  }
  assert.deepEqual([started.length, new Set(forgotten).size, started[0]?.destination.timeoutMs], [4, 4, LIMIT_MS])
  const next = preview(10_000)
  for (let at = 4; at < 6; at++) {
    started[at]?.answered(0, unanswered('integration_retry', 'Not installed.'), 0)
    await new Promise(setImmediate)
  }
  assert.deepEqual(
    (await next).map((one) => (one.kind === 'failed' ? one.error : one.kind)),
    ['Not installed.', 'Not installed.'],
  )
})
