import assert from 'node:assert/strict'
import { test } from 'node:test'
import { coresForThisProcess, processCount } from './process-count.ts'

const postgres = { kind: 'postgres', url: 'postgres://127.0.0.1/x' } as const
const sqlite = { kind: 'sqlite', path: 'x.db' } as const

test('auto is one process per core with PostgreSQL, at most 64, and one process with SQLite', () => {
  assert.equal(processCount({ processes: 'auto', store: postgres }, 16), 16)
  assert.equal(processCount({ processes: 'auto', store: postgres }, 1), 1)
  assert.equal(processCount({ processes: 'auto', store: postgres }, 128), 64)
  assert.equal(processCount({ processes: 'auto', store: sqlite }, 16), 1)
  assert.equal(processCount({ processes: 3, store: postgres }, 16), 3)
})

test('the processes share the cores, and each has at least one', () => {
  assert.equal(coresForThisProcess({ processes: 1, store: postgres }, 16), 16)
  assert.equal(coresForThisProcess({ processes: 3, store: postgres }, 16), 5)
  assert.equal(coresForThisProcess({ processes: 'auto', store: postgres }, 16), 1)
  assert.equal(coresForThisProcess({ processes: 4, store: postgres }, 2), 1)
  assert.equal(coresForThisProcess({ processes: 'auto', store: sqlite }, 16), 16)
})
