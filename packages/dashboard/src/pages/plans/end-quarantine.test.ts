import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { call } from '../../api/client.ts'
import { endQuarantine, selectionWords } from './end-quarantine.ts'

function fake(answers: object[]): { call: typeof call; sent: unknown[] } {
  const sent: unknown[] = []
  const answer = (operation: string, { body }: { body: unknown }): Promise<object> => {
    sent.push([operation, body])
    return Promise.resolve(answers.shift() as object)
  }
  return { call: answer as unknown as typeof call, sent }
}

test('calls the API until no messages are left, and reports the progress', async () => {
  const { call: api, sent } = fake([
    { released: 10_000, more: true },
    { released: 12, more: false },
  ])
  const progress: number[] = []
  const selection = { sourceId: 'src_1', rule: 'track Order Completed' }
  assert.equal(await endQuarantine('release', selection, api, (count) => progress.push(count)), 10_012)
  assert.deepEqual(progress, [10_000, 10_012])
  assert.deepEqual(sent, [
    ['POST /api/quarantine/release', selection],
    ['POST /api/quarantine/release', selection],
  ])
})

test('sends at most 1,000 ids in a call', async () => {
  const { call: api, sent } = fake([
    { deleted: 1_000, more: false },
    { deleted: 1, more: false },
  ])
  const ids = Array.from({ length: 1_001 }, (_, at) => `1-${at}`)
  assert.equal(await endQuarantine('delete', { ids }, api, () => {}), 1_001)
  assert.deepEqual(sent, [
    ['POST /api/quarantine/delete', { ids: ids.slice(0, 1_000) }],
    ['POST /api/quarantine/delete', { ids: ['1-1000'] }],
  ])
})

test('says in words what is released', () => {
  assert.equal(selectionWords({ ids: ['1-0'] }), '1 message')
  assert.equal(selectionWords({ sourceId: 'src_1', rule: 'track A' }, new Map([['src_1', 'Shop']])), 'all of Shop: A')
})
