// The check itself: what it must find, and what it must allow after a process has died.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Arrival } from './receiver.ts'
import { assertOrdered } from './user-order.ts'

/** A request: from when to when, the status, and the numbers of the messages of user u. */
type Request = readonly [atMs: number, endMs: number | null, status: number | null, ...numbers: number[]]

function arrivals(...requests: readonly Request[]): Arrival[] {
  return requests.map(([atMs, endMs, status, ...numbers]) => {
    const messages = numbers.map((number) => ({ type: 'track', messageId: `p/u/${number}` }))
    return { atMs, endMs, status, answer: status === null ? 'cut' : 'written', messages } as unknown as Arrival
  })
}

const ALLOWED: Readonly<Record<string, readonly Request[]>> = {
  'one after the other': [
    [0, 1, 200, 1],
    [2, 3, 200, 2],
  ],
  'several in one request': [
    [0, 1, 500, 1, 2],
    [2, 3, 200, 1, 2],
    [4, 5, 200, 3],
  ],
}

const VIOLATIONS: Readonly<Record<string, readonly Request[]>> = {
  'u/2 arrived before u/1 was accepted': [
    [0, 1, 500, 1],
    [2, 3, 200, 2],
    [4, 5, 200, 1],
  ],
  'u/3 arrived before u/2 was accepted': [
    [0, 5, 200, 1],
    [6, 9, 200, 2],
    [8, 10, 200, 3],
  ],
  'u/4 arrived before u/3 was accepted': [
    [0, 1, 200, 1, 2],
    [2, 3, 200, 1, 4],
  ],
  'u/1 is behind u/2 in one request': [[0, 1, 200, 1, 2, 1]],
}

describe('The check of order', () => {
  for (const [name, requests] of Object.entries(ALLOWED))
    test(`allows ${name}`, () => {
      assertOrdered(arrivals(...requests))
      assertOrdered(arrivals(...requests), { afterDeath: true })
    })

  for (const [what, requests] of Object.entries(VIOLATIONS))
    test(`finds: ${what}`, () => {
      const message = new RegExp(`^${what}:[^]*${what}$`)
      assert.throws(() => assertOrdered(arrivals(...requests)), { message })
      assert.throws(() => assertOrdered(arrivals(...requests), { afterDeath: true }), { message })
    })

  test('allows only after a death that a message is sent again after later ones, also together with new ones', () => {
    // The outcome of 1 was not recorded, those of 2 and 3 were.
    const requests: Request[] = [
      [0, 1, 200, 1],
      [2, 3, 200, 2, 3],
      [4, 5, 200, 1, 4],
      [6, 7, 200, 2],
      [8, null, null, 5],
      [9, 10, 200, 5],
    ]
    assertOrdered(arrivals(...requests), { afterDeath: true })
    assert.throws(() => assertOrdered(arrivals(...requests)), /u\/2 arrived again after u\/4/)
  })
})
