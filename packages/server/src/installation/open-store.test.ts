// Waiting for a database that is not available yet: with a limit, with one log line, and not for errors that waiting does not fix.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreUnavailable } from '../store/store.ts'
import { retryWhileUnavailable, StartProblem } from './open-store.ts'

function listening() {
  const lines: string[] = []
  const write = (_fields: object, message: string): void => void lines.push(message)
  return { lines, log: { info: write, warn: write, error: write } as never }
}

const away = (code?: string): StoreUnavailable =>
  new StoreUnavailable(
    'unreachable',
    code === undefined ? undefined : { cause: new AggregateError([Object.assign(new Error(), { code })]) },
  )

test('it waits for a store that becomes available later, and logs this once', async () => {
  const { lines, log } = listening()
  let tries = 0
  const open = async (): Promise<string> => {
    if (++tries < 3) throw away('ECONNREFUSED')
    return 'opened'
  }
  assert.equal(await retryWhileUnavailable(open, 'db:5432/x', { log, waitMs: 10_000 }), 'opened')
  assert.deepEqual(lines, ['the store does not respond yet: retrying for up to 10 s', 'connected to the store'])
})

test('a store that does not respond in time is an error', async () => {
  const { log } = listening()
  await assert.rejects(
    retryWhileUnavailable(() => Promise.reject(away()), 'db:5432/x', { log, waitMs: 20 }),
    StoreUnavailable,
  )
})

test('a wrong password and a missing database are reported immediately', async () => {
  for (const code of ['28P01', '3D000']) {
    const { lines, log } = listening()
    await assert.rejects(
      retryWhileUnavailable(() => Promise.reject(away(code)), 'db:5432/x', { log, waitMs: 60_000 }),
      StoreUnavailable,
    )
    assert.deepEqual(lines, [])
  }
})

test('errors other than an unavailable store are not retried', async () => {
  const { log } = listening()
  let tries = 0
  const open = (): Promise<never> => {
    tries++
    return Promise.reject(new TypeError('a bug'))
  }
  await assert.rejects(retryWhileUnavailable(open, 'db:5432/x', { log, waitMs: 60_000 }), TypeError)
  assert.equal(tries, 1)
})

test('an abort signal ends the wait', async () => {
  const { log } = listening()
  const stop = new AbortController()
  const open = (): Promise<never> => {
    setImmediate(() => stop.abort())
    return Promise.reject(away())
  }
  await assert.rejects(retryWhileUnavailable(open, 'db:5432/x', { log, waitMs: 60_000, stopping: stop.signal }), StartProblem)
})
