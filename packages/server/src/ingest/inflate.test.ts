// How many gzip bodies are inflated at once, and which are next.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { createInflate } from './inflate.ts'

const bomb = gzipSync(' '.repeat(490_000))

test('a body of a known sender does not wait for the bodies that strangers sent before', async () => {
  const inflate = createInflate()
  const finished: string[] = []
  await new Promise<void>((resolve) => {
    const add = (name: string, isKnown: boolean): void => {
      inflate({
        body: bomb,
        maxBytes: 500_000,
        isKnown,
        done(error, inflated) {
          assert.deepEqual([error, inflated.length], [null, 490_000])
          if (finished.push(name) === 41) resolve()
        },
      })
    }
    for (let nth = 0; nth < 40; nth++) add(`stranger ${nth}`, false)
    add('known', true)
  })
  assert.ok(finished.indexOf('known') < 20, finished.join())
})

test('what is cancelled while it waits is not inflated', async () => {
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
