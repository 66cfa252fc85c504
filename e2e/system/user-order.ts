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

/**
 * Checks the promise for everything that arrived: a message arrives only after all earlier ones of its user were accepted, or behind them in the same
 * request, and is not sent again after a later one. `afterDeath`: processes died, so what was in flight or not recorded then may be sent again.
 */
export function assertOrdered(arrivals: readonly Arrival[], { afterDeath = false } = {}): void {
  const violation = violationIn(arrivals, afterDeath)
  if (violation === null) return
  const { user, what } = violation
  // The list may be cut off where it is shown.
  assert.fail(`${what}:\n${listOf(arrivals, user)}\n${what}`)
}

function violationIn(arrivals: readonly Arrival[], afterDeath: boolean): { user: string; what: string } | null {
  const accepted = new Accepted(arrivals)
  const started = new Map<string, number>()
  for (const arrival of arrivals) {
    const last = new Map<string, number>()
    for (const { user, number } of sentIn(arrival)) {
      const before = last.get(user) ?? 0
      if (number <= before) return { user, what: `${user}/${number} is behind ${user}/${before} in one request` }
      // After a death, a request may have a message again whose outcome was not recorded, and then later ones than were accepted already.
      const next = Math.max(before, accepted.until(user, arrival.atMs)) + 1
      if (number > next) return { user, what: `${user}/${number} arrived before ${user}/${next} was accepted` }
      last.set(user, number)
    }
    for (const [user, number] of last) {
      const latest = started.get(user) ?? 0
      if (!afterDeath && number < latest) return { user, what: `${user}/${number} arrived again after ${user}/${latest}` }
      started.set(user, Math.max(number, latest))
    }
  }
  return null
}

/** Up to which message of a user everything was accepted at a time. Times must not go back. */
class Accepted {
  readonly #endMs = new Map<string, number>()
  readonly #last = new Map<string, number>()

  constructor(arrivals: readonly Arrival[]) {
    for (const arrival of arrivals) {
      const { status, endMs } = arrival
      if (status !== 200 || endMs === null) continue
      for (const { user, number } of sentIn(arrival)) {
        const name = `${user}/${number}`
        this.#endMs.set(name, Math.min(endMs, this.#endMs.get(name) ?? endMs))
      }
    }
  }

  until(user: string, atMs: number): number {
    let last = this.#last.get(user) ?? 0
    while ((this.#endMs.get(`${user}/${last + 1}`) ?? Number.POSITIVE_INFINITY) <= atMs) last++
    this.#last.set(user, last)
    return last
  }
}

/** Everything that arrived of a user: from when to when, with which answer. */
function listOf(arrivals: readonly Arrival[], wanted: string): string {
  const lines: string[] = []
  for (const arrival of arrivals) {
    const own = sentIn(arrival).filter(({ user }) => user === wanted)
    if (own.length === 0) continue
    const { atMs, endMs, status, answer } = arrival
    const end = endMs === null ? '-' : Math.round(endMs)
    lines.push(`${Math.round(atMs)} to ${end} ms, ${status ?? answer}: ${own.map(({ number }) => number).join(' ')}`)
  }
  return lines.join('\n')
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
