import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { accept, contentOf, counts, ledgerOf, newSourceAndDestination, tracks } from '../../conformance/fixtures.ts'
import { StoreUnavailable } from '../../store.ts'
import { openFor, tempFolder } from '../fixtures/temp-store.ts'
import { GroupCommit } from './group-commit.ts'

function pathFor(t: TestContext): string {
  const folder = tempFolder()
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'test.db')
}

test('commands that arrive while a group is being committed form the next group, and a single command does not wait', async (t) => {
  const commit = await GroupCommit.start({ path: pathFor(t), dedupMs: 1_000 }, () => {})
  // All commands of a group are prepared synchronously, and microtasks run between groups.
  let turn = 0
  const groups: number[] = []
  const prepare = (): void => {
    groups.push(turn)
    queueMicrotask(() => turn++)
  }
  const groupsNow = (): number => new Set(groups).size
  const set = (value: string): Promise<void> => commit.call('configuration', 'setSetting', ['n', value], {}, { prepare })
  await set('alone')
  assert.equal(groups.length, 1)
  const first = set('first')
  await new Promise((resolve) => setImmediate(resolve))
  await Promise.all([first, ...Array.from({ length: 300 }, (_, at) => set(`${at}`))])
  assert.equal(groups.length, 302)
  assert.ok(groupsNow() <= 5, `${groupsNow()} groups`)
  await commit.close()
})

test('onCommit is called for every transaction with its duration and its number of commands', async (t) => {
  const commit = await GroupCommit.start({ path: pathFor(t), dedupMs: 1_000 }, () => {})
  const told: [commitMs: number, commands: number][] = []
  commit.onCommit = (commitMs, commands) => told.push([commitMs, commands])
  const set = (value: string): Promise<void> => commit.call('configuration', 'setSetting', ['n', value])
  await Promise.all([set('a'), set('b'), set('c')])
  // Writes nothing, so there is no transaction.
  await commit.run('find', { messageId: 'm' })
  await set('d')
  await commit.close()
  assert.deepEqual(
    told.map(([, commands]) => commands),
    [3, 1],
  )
  for (const [commitMs] of told) assert.ok(commitMs > 0 && commitMs < 60_000, String(commitMs))
})

test('commands that exceed the memory limit are rejected with StoreUnavailable, and the others are stored', {
  timeout: 180_000,
}, async (t) => {
  const store = await openFor(t, pathFor(t))
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  const body = Buffer.from(JSON.stringify({ batch: [{ noise: randomBytes(374_000).toString('base64') }] }))
  const results = await Promise.allSettled(
    Array.from({ length: 200 }, (_, at) =>
      store.ingest.accept({
        content: contentOf(sourceId, [{}]),
        body,
        messageIds: [`m-${at}`],
        routing: { shipments: [{ destinationId, indexes: null }], skips: [] },
      }),
    ),
  )
  const refused = results.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[]
  assert.ok(refused.length >= 30 && refused.length <= 80, `${refused.length} were refused`)
  for (const { reason } of refused) assert.ok(reason instanceof StoreUnavailable)
  const owed = 200 - refused.length
  assert.deepEqual(await ledgerOf(store, destinationId), counts({ owed, pending: owed }))
  await accept(store, sourceId, tracks(2), [destinationId])
  await store.close()
})

test('after close, commands are rejected with StoreUnavailable', async (t) => {
  const commit = await GroupCommit.start({ path: pathFor(t), dedupMs: 1_000 }, () => {})
  const given = commit.call('configuration', 'setSetting', ['n', 'v'])
  await Promise.all([commit.close(), given])
  await assert.rejects(commit.run('mark', { scheduleMs: 1, wallMs: 1 }), StoreUnavailable)
})
