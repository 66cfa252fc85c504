import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { type StreamEvent, type StreamOptions, streamEvents } from './stream.ts'

/** Events from the test, one by one, and whether their consumer has stopped reading them. */
class Given implements AsyncIterable<StreamEvent>, AsyncIterator<StreamEvent> {
  readonly #events: StreamEvent[] = []
  #waiting: ((result: IteratorResult<StreamEvent>) => void) | null = null
  #ended = false
  taken = 0
  readonly left: Promise<void>
  #leave: () => void = () => {}

  constructor() {
    this.left = new Promise((resolve) => {
      this.#leave = resolve
    })
  }

  give(...events: StreamEvent[]): void {
    this.#events.push(...events)
    this.#hand()
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<StreamEvent>> {
    return new Promise((resolve) => {
      this.#waiting = resolve
      this.#hand()
    })
  }

  async return(): Promise<IteratorResult<StreamEvent>> {
    this.#ended = true
    this.#leave()
    this.#hand()
    return { done: true, value: undefined }
  }

  #hand(): void {
    if (this.#waiting === null || (!this.#ended && this.#events.length === 0)) return
    const waiting = this.#waiting
    this.#waiting = null
    const event = this.#ended ? undefined : this.#events.shift()
    if (event !== undefined) this.taken++
    waiting(event === undefined ? { done: true, value: undefined } : { done: false, value: event })
  }
}

interface Streaming {
  events: Given
  answer: IncomingMessage
  /** Resolves when streamEvents returns. */
  over: Promise<void>
  response: ServerResponse
}

async function open(t: TestContext, options: Partial<StreamOptions> = {}): Promise<Streaming> {
  const events = new Given()
  let started: (value: { over: Promise<void>; response: ServerResponse }) => void = () => {}
  const serving = new Promise<{ over: Promise<void>; response: ServerResponse }>((resolve) => {
    started = resolve
  })
  const server = createServer((_request, response) => {
    started({ over: streamEvents(response, { events, headers: { 'x-own': '1' }, stillAllowed: async () => true, ...options }), response })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const call = request({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', agent: false }).end()
  call.on('error', () => {})
  const [answer] = (await once(call, 'response')) as [IncomingMessage]
  answer.on('error', () => {})
  return { events, answer, ...(await serving) }
}

/** Reads until the received text ends with this. */
async function readUntil(answer: IncomingMessage, end: string): Promise<string> {
  let text = ''
  for (;;) {
    const chunk = answer.read() as Buffer | null
    if (chunk === null) await once(answer, 'readable')
    else text += chunk.toString()
    if (text.endsWith(end)) return text
  }
}

test('events are written as they come, after the retry interval', async (t) => {
  const { events, answer } = await open(t)
  assert.deepEqual([answer.headers['content-type'], answer.headers['x-own']], ['text/event-stream; charset=utf-8', '1'])
  assert.equal(await readUntil(answer, '\n\n'), 'retry: 2000\n\n')
  events.give({ event: 'accepted', json: '{"a":"line\\nbreak"}' })
  assert.equal(await readUntil(answer, '\n\n'), 'event: accepted\ndata: {"a":"line\\nbreak"}\n\n')
})

test('a heartbeat is sent while there are no events', async (t) => {
  const { answer } = await open(t, { heartbeatMs: 5 })
  assert.match(await readUntil(answer, ': alive\n\n'), /^retry: 2000\n\n: alive\n\n$/)
})

test('the events are released when the client disconnects', async (t) => {
  const { events, answer, over } = await open(t)
  await readUntil(answer, '\n\n')
  answer.destroy()
  await events.left
  await over
})

test('the response ends when the events end', async (t) => {
  const { events, answer, over } = await open(t)
  await readUntil(answer, '\n\n')
  void events.return()
  answer.resume()
  await Promise.all([over, once(answer, 'end')])
  assert.equal(answer.complete, true)
})

test('a client that is no longer authorized is disconnected', async (t) => {
  let asked = 0
  const { events, answer, over } = await open(t, { checkEveryMs: 5, stillAllowed: async () => ++asked < 3 })
  answer.resume()
  await Promise.all([events.left, over, once(answer, 'end')])
  assert.equal(asked, 3)
})

test('a client is also disconnected if the authorization check fails', async (t) => {
  const { events, over, answer } = await open(t, { checkEveryMs: 5, stillAllowed: () => Promise.reject(new Error('away')) })
  answer.resume()
  await Promise.all([events.left, over])
})

test('a client that does not read gets no more events, and is disconnected after a while', async (t) => {
  const { events, over, answer, response } = await open(t, { stalledMs: 200 })
  answer.pause()
  const json = JSON.stringify({ large: 'x'.repeat(100_000) })
  for (let at = 0; at < 1_000; at++) events.give({ event: 'accepted', json })
  await Promise.all([events.left, over])
  // Only what the socket buffers hold, not everything that the test provided.
  assert.ok(events.taken < 200, `${events.taken} events were read`)
  assert.equal(response.destroyed, true)
})
