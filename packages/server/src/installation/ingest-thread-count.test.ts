import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ingestThreadCount } from './ingest-thread-count.ts'

const sqlite = { store: { kind: 'sqlite', path: 'x' }, processes: 1 } as const
const postgres = { store: { kind: 'postgres', url: 'x' }, processes: 2 } as const

test('auto is no thread with up to four cores, and then one for every four cores, at most four', () => {
  for (const [cores, expected] of [
    [1, 0],
    [2, 0],
    [4, 0],
    [5, 1],
    [8, 2],
    [16, 4],
    [64, 4],
  ] as const)
    assert.deepEqual(
      ingestThreadCount({ ...sqlite, ingestThreads: 'auto' }, { cores, platform: 'linux' }),
      { count: expected, problem: null },
      `${cores} cores`,
    )
})

test('where threads cannot share a port, there are none, and a number in the settings is reported', () => {
  for (const ingestThreads of ['auto', 0] as const) {
    assert.deepEqual(ingestThreadCount({ ...sqlite, ingestThreads }, { cores: 16, platform: 'darwin' }), { count: 0, problem: null })
    assert.deepEqual(ingestThreadCount({ ...postgres, ingestThreads }, { cores: 16, platform: 'linux' }), { count: 0, problem: null })
  }
  const onMac = ingestThreadCount({ ...sqlite, ingestThreads: 2 }, { cores: 16, platform: 'darwin' })
  assert.equal(onMac.count, 0)
  assert.match(onMac.problem ?? '', /only on Linux, not on darwin/)
  const shared = ingestThreadCount({ ...postgres, ingestThreads: 2 }, { cores: 16, platform: 'linux' })
  assert.equal(shared.count, 0)
  assert.match(shared.problem ?? '', /SWITCHYARD_PROCESSES is above 1/)
})
