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

test('what is given while a group is being committed makes up the next, and one alone does not wait', async (t) => {
  const commit = await GroupCommit.start({ path: pathFor(t), dedupMs: 1_000 }, () => {})
  // All of a group are prepared in one go, and microtasks run between groups.
  let turn = 0
  const groups: number[] = []
  const prepare = (): void => {
    groups.push(turn)
    queueMicrotask(() => turn++)
  }
  const groupsNow = (): number => new Set(groups).size
  const set = (value: string): Promise<void> => commit.run('setSetting', { name: 'n', value }, { prepare })
  await set('alone')
  assert.equal(groups.length, 1)
  const first = set('first')
  await new Promise((resolve) => setImmediate(resolve))
  await Promise.all([first, ...Array.from({ length: 300 }, (_, at) => set(`${at}`))])
  assert.equal(groups.length, 302)
  assert.ok(groupsNow() <= 5, `${groupsNow()} groups`)
  await commit.close()
})

test('every transaction is told, with how long it took and how many commands shared it', async (t) => {
  const commit = await GroupCommit.start({ path: pathFor(t), dedupMs: 1_000 }, () => {})
  const told: [commitMs: number, commands: number][] = []
  commit.onCommit = (commitMs, commands) => told.push([commitMs, commands])
  const set = (value: string): Promise<void> => commit.run('setSetting', { name: 'n', value })
  await Promise.all([set('a'), set('b'), set('c')])
  // Changes nothing that is stored, so there is no transaction.
  await commit.run('find', { messageId: 'm' })
  await set('d')
  await commit.close()
  assert.deepEqual(
    told.map(([, commands]) => commands),
    [3, 1],
  )
  for (const [commitMs] of told) assert.ok(commitMs > 0 && commitMs < 60_000, String(commitMs))
})

test('more than fits in memory is refused as unavailable, and what was taken is stored', { timeout: 60_000 }, async (t) => {
  const store = await openFor(t, pathFor(t))
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  const body = Buffer.from(JSON.stringify({ batch: [{ noise: randomBytes(374_000).toString('base64') }] }))
  const results = await Promise.allSettled(
    Array.from({ length: 200 }, (_, at) =>
      store.ingest.accept({
        content: contentOf(sourceId, [{}]),
        body,
        messageIds: [`m-${at}`],
        plan: { shipments: [{ destinationId, indexes: null }], skips: [] },
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

test('a closed one refuses as unavailable', async (t) => {
  const commit = await GroupCommit.start({ path: pathFor(t), dedupMs: 1_000 }, () => {})
  const given = commit.run('setSetting', { name: 'n', value: 'v' })
  await Promise.all([commit.close(), given])
  await assert.rejects(commit.run('mark', { scheduleMs: 1 }), StoreUnavailable)
})
