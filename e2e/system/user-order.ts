// Messages that say which one of their user they are, and whether a receiver got them in order.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Answer, Arrival, Receiver } from './receiver.ts'

interface Sent {
  user: string
  number: number
}

/** The number of a message among those of its user, from 1. */
export class Users {
  /** Tests share a service, and messages are found by their messageId. */
  readonly #prefix = randomUUID().slice(0, 8)
  readonly #last = new Map<string, number>()

  message(user: string): object {
    const number = (this.#last.get(user) ?? 0) + 1
    this.#last.set(user, number)
    return { type: 'track', event: 'Counted', userId: user, messageId: this.id(user, number), properties: { number } }
  }

  id(user: string, number: number): string {
    return `${this.#prefix}/${user}/${number}`
  }

  get total(): number {
    return [...this.#last.values()].reduce((sum, count) => sum + count, 0)
  }
}

export function sentIn({ messages }: Arrival): Sent[] {
  return messages.map(({ messageId = '' }) => {
    const [, user = '', number] = messageId.split('/')
    return { user, number: Number(number) }
  })
}

function listOf(arrivals: readonly Arrival[]): string {
  return arrivals
    .map(
      (arrival) =>
        `${arrival.status} ${sentIn(arrival)
          .map(({ user, number }) => `${user}/${number}`)
          .join(' ')}`,
    )
    .join('\n')
}

/** Checks the promise for everything that arrived: a message arrives only after all earlier ones of its user were accepted, or with them. */
export function assertOrdered(arrivals: readonly Arrival[], isAccepted = (arrival: Arrival) => arrival.status === 200): void {
  const accepted = new Map<string, number>()
  for (const arrival of arrivals) {
    const next = new Map<string, number>()
    for (const { user, number } of sentIn(arrival)) {
      const expected = (next.get(user) ?? accepted.get(user) ?? 0) + 1
      assert.ok(number <= expected, `${user}/${number} arrived before ${user}/${expected} was accepted:\n${listOf(arrivals)}`)
      next.set(user, Math.max(number, next.get(user) ?? 0))
    }
    if (!isAccepted(arrival)) continue
    for (const [user, number] of next) accepted.set(user, Math.max(number, accepted.get(user) ?? 0))
  }
}

/** How many messages the receiver has accepted. */
export const acceptedOf = (receiver: Receiver): number =>
  new Set(receiver.arrivals.filter(({ status }) => status === 200).flatMap(({ messages }) => messages.map(({ messageId }) => messageId)))
    .size

/** True for every third different message, at its first attempt. */
export function failsFirst(every = 3): (arrival: Arrival) => Answer | undefined {
  const seen = new Set<string>()
  let count = 0
  return (arrival) => {
    const ids = arrival.messages.map(({ messageId = '' }) => messageId)
    const isNew = ids.some((id) => !seen.has(id))
    for (const id of ids) seen.add(id)
    return isNew && ++count % every === 0 ? { status: 500 } : undefined
  }
}
