// Writes server-sent events to a response: headers, a heartbeat, and each event as it comes. It respects backpressure: the next event is
// taken after the previous one has been written, so events queue up only in the feed, whose size is bounded. The stream ends when the events
// end, when the client disconnects or stops reading, or when its token is revoked.

import type { ServerResponse } from 'node:http'

export interface StreamEvent {
  event: string
  /** The data, as JSON. */
  json: string
}

export interface StreamOptions {
  events: AsyncIterable<StreamEvent>
  headers: Record<string, string>
  /** Called repeatedly, because a token may be revoked. */
  stillAllowed: () => Promise<boolean>
  heartbeatMs?: number
  checkEveryMs?: number
  /** A client that reads nothing for this long is disconnected. */
  stalledMs?: number
}

const HEARTBEAT_MS = 15_000
const CHECK_EVERY_MS = 20_000
const STALLED_MS = 30_000
/** Tells the client how long to wait before it reconnects. */
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
    // Tells proxies not to buffer the response.
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
      // The JSON contains no line breaks, because those in strings are escaped. So one data line is enough.
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

/** Resolves to false if the client disconnected, or did not read for too long. */
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
