// Waiting for a database that is not there yet: for so long, with one line in the log, and not for what waiting does not mend.

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
    'not to be reached',
    code === undefined ? undefined : { cause: new AggregateError([Object.assign(new Error(), { code })]) },
  )

test('a store that answers later is waited for, and that is said once', async () => {
  const { lines, log } = listening()
  let tries = 0
  const open = async (): Promise<string> => {
    if (++tries < 3) throw away('ECONNREFUSED')
    return 'opened'
  }
  assert.equal(await retryWhileUnavailable(open, 'db:5432/x', { log, waitMs: 10_000 }), 'opened')
  assert.deepEqual(lines, ['the store does not respond yet: retrying for up to 10 s', 'connected to the store'])
})

test('one that does not answer in time is a problem', async () => {
  const { log } = listening()
  await assert.rejects(
    retryWhileUnavailable(() => Promise.reject(away()), 'db:5432/x', { log, waitMs: 20 }),
    StoreUnavailable,
  )
})

test('a wrong password and a database that there is not are told at once', async () => {
  for (const code of ['28P01', '3D000']) {
    const { lines, log } = listening()
    await assert.rejects(
      retryWhileUnavailable(() => Promise.reject(away(code)), 'db:5432/x', { log, waitMs: 60_000 }),
      StoreUnavailable,
    )
    assert.deepEqual(lines, [])
  }
})

test('what is not a matter of the network is not tried again', async () => {
  const { log } = listening()
  let tries = 0
  const open = (): Promise<never> => {
    tries++
    return Promise.reject(new TypeError('a bug'))
  }
  await assert.rejects(retryWhileUnavailable(open, 'db:5432/x', { log, waitMs: 60_000 }), TypeError)
  assert.equal(tries, 1)
})

test('a signal to stop ends the waiting', async () => {
  const { log } = listening()
  const stop = new AbortController()
  const open = (): Promise<never> => {
    setImmediate(() => stop.abort())
    return Promise.reject(away())
  }
  await assert.rejects(retryWhileUnavailable(open, 'db:5432/x', { log, waitMs: 60_000, stopping: stop.signal }), StartProblem)
})
