import assert from 'node:assert/strict'
import test from 'node:test'
import { COMMANDS } from '../commands.ts'
import type { Call } from '../line/command.ts'

test('deliveries of a replay that are queued and still pending are not done', async () => {
  const outcomes = { pending: 0, delivered: 0, failed: 0, expired: 0, cancelled: 0 }
  const job = { id: 'rpl_1', state: 'finished', total: 53, done: 53, replayed: 53, skipped: 0, skippedReasons: {} }
  const read = [
    { ...job, outcomes: { ...outcomes, pending: 53 } },
    { ...job, outcomes: { ...outcomes, delivered: 53 } },
  ]
  const shown: [done: number, total: number | null][] = []
  const call = {
    arguments: ['rpl_1'],
    api: { get: async () => read.shift() },
    has: (name: string) => name === 'wait',
    flag: () => undefined,
    signal: new AbortController().signal,
    out: {
      line() {},
      remark() {},
      paint: (_style: string, text: string) => text,
      progress: () => ({ update: (done: number, total: number | null) => void shown.push([done, total]), end() {} }),
    },
  } as unknown as Call
  await COMMANDS.find(({ name }) => name === 'replay show')?.run(call)
  assert.deepEqual(shown, [
    [0, 53],
    [53, 53],
  ])
})
