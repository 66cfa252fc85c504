// The program of a client under fault, in its own process: makes calls of @switchyard/node, and writes each event to stdout at once and
// synchronously, so that no line is lost if the process is killed.
//
//   calls ID        the call is about to be made
//   called ID       the call has returned
//   delivered ID    its callback was called without an error
//   failed ID CODE  its callback was called with an error
//   answered N      the tracking API answered with this status
//   early N         a request was sent N ms before the end of a pause that the tracking API asked for
//   closed JSON     the result of closeAndFlush(): the last line
//
// Lines on stdin: `calls N` makes N calls at once, and `finish` makes it deliver everything and end.

import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { Analytics } from '@switchyard/node'
import { numberedMessage } from '../system/numbered-message.ts'

export interface ClientOrder {
  /** The prefix of every messageId. */
  name: string
  host: string
  writeKey: string
  /** Null: messages are only in memory. */
  spool: string | null
  perSecond: number
}

const BURST = 5
/** A request that is on its way when the answer arrives cannot be stopped. */
const UNDERWAY_MS = 50
/** A timer may fire a little early. */
const TIMER_MS = 5

const { name, host, writeKey, spool, perSecond } = JSON.parse(process.argv[2] ?? '') as ClientOrder
const say = (line: string): void => void writeSync(1, `${line}\n`)

const analytics = new Analytics({
  writeKey,
  host,
  flushInterval: 300,
  maxRetries: Number.POSITIVE_INFINITY,
  ...(spool !== null && { spool: { dir: spool, maxBytes: 1024 ** 3 } }),
})
analytics.on('error', ({ code, message }) => say(`failed - ${code} ${message.replaceAll('\n', ' ')}`))

let answeredMs = 0
let pausedUntilMs = 0
analytics.on('http_response', ({ status, headers }) => {
  say(`answered ${status}`)
  const seconds = Number(headers['retry-after'])
  if ((status !== 429 && status !== 503) || !(seconds >= 1)) return
  answeredMs = performance.now()
  pausedUntilMs = Math.max(pausedUntilMs, answeredMs + seconds * 1_000)
})
analytics.on('http_request', () => {
  const now = performance.now()
  if (now > answeredMs + UNDERWAY_MS && now < pausedUntilMs - TIMER_MS) say(`early ${Math.round(pausedUntilMs - now)}`)
})

const finishing = new AbortController()
let wanted = 0
let nth = 0
let wake = (): void => {}
createInterface({ input: process.stdin }).on('line', (line) => {
  const [order, count] = line.split(' ')
  if (order === 'finish') finishing.abort()
  else wanted += Number(count)
  wake()
})

while (!finishing.signal.aborted) {
  const made = wanted > 0 ? wanted : BURST
  wanted = 0
  for (let at = 0; at < made; at++) await call(++nth)
  await Promise.race([
    sleep((1_000 * BURST) / perSecond),
    new Promise<void>((resolve) => {
      wake = resolve
    }),
  ])
}
process.stdin.destroy()
say(`closed ${JSON.stringify(await analytics.closeAndFlush())}`)

async function call(number: number): Promise<void> {
  const id = `${name}-${number}`
  say(`calls ${id}`)
  const hasRoom = analytics.enqueue(numberedMessage(id, number), (error) => say(error ? `failed ${id} ${error.code}` : `delivered ${id}`))
  say(`called ${id}`)
  if (!hasRoom) await new Promise<void>((resolve) => analytics.once('drained', () => resolve()))
}
