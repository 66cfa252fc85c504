// How many gzip bodies are decompressed at the same time, and in which order.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { createInflate } from './inflate.ts'

const bomb = gzipSync(' '.repeat(490_000))

for (const isKnown of [true, false]) {
  test(`a body of ${isKnown ? 'a known' : 'an unknown'} sender does not wait for all earlier bodies of ${isKnown ? 'unknown' : 'known'} senders`, async () => {
    const inflate = createInflate()
    const finished: string[] = []
    await new Promise<void>((resolve) => {
      const add = (name: string, known: boolean): void => {
        inflate({
          body: bomb,
          maxBytes: 500_000,
          isKnown: known,
          done(error, inflated) {
            assert.deepEqual([error, inflated.length], [null, 490_000])
            if (finished.push(name) === 41) resolve()
          },
        })
      }
      for (let nth = 0; nth < 40; nth++) add(`other ${nth}`, !isKnown)
      add('own', isKnown)
    })
    assert.ok(finished.indexOf('own') < 30, finished.join())
  })
}

test('a job that is cancelled while it waits is not run', async () => {
  const inflate = createInflate()
  const finished: number[] = []
  await new Promise<void>((resolve) => {
    const cancels = Array.from({ length: 8 }, (_, nth) =>
      inflate({
        body: bomb,
        maxBytes: 500_000,
        isKnown: nth % 2 === 0,
        done() {
          finished.push(nth)
          if (nth === 7) resolve()
        },
      }),
    )
    for (const cancel of cancels.slice(4, 7)) cancel()
  })
  assert.equal(finished.includes(4) || finished.includes(5) || finished.includes(6), false, finished.join())
})
