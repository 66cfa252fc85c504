// Server-sent events over a response: the head, a sign of life now and then, and each event as it comes. Nothing is written
// ahead of the reader: the next event is taken when the last has left, so that what piles up does so where it is bounded.
// Ends when the events do, when the reader goes or stops reading, and when it is no longer allowed to listen.

import type { ServerResponse } from 'node:http'

export interface StreamEvent {
  event: string
  /** The data, as JSON. */
  json: string
}

export interface StreamOptions {
  events: AsyncIterable<StreamEvent>
  headers: Record<string, string>
  /** Asked again and again: a token may be revoked. */
  stillAllowed: () => Promise<boolean>
  heartbeatMs?: number
  checkEveryMs?: number
  /** A reader that has taken nothing for so long is gone. */
  stalledMs?: number
}

const HEARTBEAT_MS = 15_000
const CHECK_EVERY_MS = 20_000
const STALLED_MS = 30_000
/** For the reader: how long to wait before it connects again. */
const RETRY_MS = 2_000

export async function streamEvents(response: ServerResponse, options: StreamOptions): Promise<void> {
  const { events, headers, stillAllowed, heartbeatMs = HEARTBEAT_MS, checkEveryMs = CHECK_EVERY_MS, stalledMs = STALLED_MS } = options
  const iterator = events[Symbol.asyncIterator]()
  const leave = (): void => void iterator.return?.()
  response.once('close', leave)
  response.on('error', leave)
  response.writeHead(200, {
    ...headers,
    'content-type': 'text/event-stream; charset=utf-8',
    // For proxies that gather what they pass on.
    'x-accel-buffering': 'no',
  })
  response.write(`retry: ${RETRY_MS}\n\n`)
  const heartbeat = setInterval(() => {
    if (!response.writableNeedDrain) response.write(': alive\n\n')
  }, heartbeatMs)
  const checks = setInterval(() => void stillAllowed().then((allowed) => allowed || leave(), leave), checkEveryMs)
  try {
    if (response.destroyed) return
    for (;;) {
      const next = await iterator.next()
      if (next.done) break
      const { event, json } = next.value
      // JSON has no line breaks outside of strings, and in strings they are escaped: one line of data is all of it.
      if (!response.write(`event: ${event}\ndata: ${json}\n\n`) && !(await drained(response, stalledMs))) break
    }
  } finally {
    clearInterval(heartbeat)
    clearInterval(checks)
    leave()
    if (response.writableNeedDrain) response.destroy()
    else response.end()
  }
}

/** False when the reader has gone, or has not read for too long. */
function drained(response: ServerResponse, stalledMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (good: boolean): void => {
      clearTimeout(timer)
      response.off('drain', onDrain)
      response.off('close', onClose)
      resolve(good)
    }
    const onDrain = (): void => settle(true)
    const onClose = (): void => settle(false)
    const timer = setTimeout(() => settle(false), stalledMs)
    response.once('drain', onDrain)
    response.once('close', onClose)
    if (response.destroyed) settle(false)
  })
}
