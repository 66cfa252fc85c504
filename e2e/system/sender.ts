// Sends like the client library: batches of messages with new messageIds, each repeated unchanged until it is answered. Records which
// messages were acknowledged, to compare them with those that a receiver got.
//
//   using sender = startSender(() => service, { batchSize: 10 })
//   await sender.until(() => sender.acknowledged.size >= 500)     meanwhile it goes on sending
//   sender.resume()                                               after a restart: sends unanswered batches again
//   await sender.finish()                                         starts no new batch; resolves when every batch is answered

import { setTimeout as sleep } from 'node:timers/promises'
import { IS_LONG } from './long-tests.ts'
import { type Service, track } from './service.ts'
import { Signals, type Waiting } from './signals.ts'

/** Between two batches, so that a test does not send thousands of messages while it waits. The long form sends as fast as the service answers. */
const PAUSE_MS = IS_LONG ? 0 : 20

export interface SenderOptions {
  batchSize?: number
  /** The most batches in flight. */
  parallel?: number
  /** The prefix of every messageId. */
  name?: string
  /** Properties of each message. */
  fields?: object
}

export interface Sender extends Disposable {
  /** The messageIds of acknowledged messages. */
  acknowledged: Set<string>
  /** The messageIds of all messages that were sent, acknowledged or not. */
  sent: Set<string>
  /** How many messages were in repeated batches, counted each time. */
  resent: number
  /** The number of answers by status, except 200. */
  refusals: Map<number, number>
  until(condition: () => boolean, waiting?: Waiting): Promise<void>
  /** Called when the service is running again. */
  resume(): void
  finish(): Promise<void>
}

export function startSender(service: () => Service, options: SenderOptions = {}): Sender {
  const { batchSize = 10, parallel = 4, name = 'm', fields = {} } = options
  const signals = new Signals()
  let last = 0
  let comebacks = 0
  const told = { finish: false, abandon: false }

  /** False if the sender was disposed of before there was an answer. */
  async function deliver(messages: readonly object[]): Promise<boolean> {
    for (let attempt = 1; !told.abandon; attempt++) {
      const seen = comebacks
      if (attempt > 1) sender.resent += messages.length
      const status = await service()
        .send(messages)
        .then(
          (answer) => answer.status,
          () => null,
        )
      if (status === 200) return true
      if (status !== null) sender.refusals.set(status, (sender.refusals.get(status) ?? 0) + 1)
      signals.notify()
      await signals.until(() => comebacks > seen || told.abandon, { what: `the service comes back (last answer: ${status ?? 'none'})` })
    }
    return false
  }

  async function work(): Promise<void> {
    while (!told.finish) {
      const ids = Array.from({ length: batchSize }, () => `${name}-${++last}`)
      for (const id of ids) sender.sent.add(id)
      if (!(await deliver(ids.map((id) => track(id, fields))))) return
      for (const id of ids) sender.acknowledged.add(id)
      signals.notify()
      await sleep(PAUSE_MS)
    }
  }

  const sender: Sender = {
    acknowledged: new Set(),
    sent: new Set(),
    resent: 0,
    refusals: new Map(),
    until: (condition, waiting = {}) =>
      signals.until(condition, { state: () => `${sender.acknowledged.size} of ${sender.sent.size} acknowledged`, ...waiting }),
    resume() {
      comebacks++
      signals.notify()
    },
    async finish() {
      told.finish = true
      await all
    },
    [Symbol.dispose]() {
      told.finish = true
      told.abandon = true
      signals.notify()
    },
  }
  const all = Promise.all(Array.from({ length: parallel }, work))
  all.catch(() => {})
  return sender
}
