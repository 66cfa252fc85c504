// The receiver, in a process of its own: takes any POST on a free port of 127.0.0.1, answers 200, and counts. While a
// workload runs it only stamps and keeps the bodies; parsing waits until it is asked, after the timed part, so that the
// receiver is never what is measured. It knows the formats' two facts it needs, `properties.sequence` and the id.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gunzipSync } from 'node:zlib'

export interface Progress {
  kind: 'progress'
  bodyBytes: number
}

export interface Counted {
  kind: 'counted'
  /** Calls of which at least one message arrived, of `0 … expected - 1`. */
  distinct: number
  /** Messages beyond the first of the same call. */
  duplicates: number
  /** Different `messageId`s (`uuid`s at PostHog); fewer than messages minus duplicates means ids that repeat. */
  distinctIds: number
  /** On the clock all processes of a machine share (`process.hrtime`), in milliseconds. */
  lastNewAtMs: number
  requests: number
  bodyBytes: number
  peakSockets: number
}

export type ServerReport = { kind: 'listening'; port: number } | Progress | Counted

interface Body {
  chunks: Buffer[]
  isGzip: boolean
  receivedAtMs: number
}

const bodies: Body[] = []
let bodyBytes = 0
let sockets = 0
let peakSockets = 0

const ANSWER = '{"success":true}'
const HEADERS = { 'content-type': 'application/json', 'content-length': ANSWER.length }

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    bodyBytes += chunk.length
  })
  request.on('end', () => {
    const receivedAtMs = Number(process.hrtime.bigint()) / 1e6
    response.writeHead(200, HEADERS).end(ANSWER)
    bodies.push({ chunks, isGzip: request.headers['content-encoding'] === 'gzip', receivedAtMs })
  })
})
// A client that opens thousands of sockets at once must not be refused by the receiver's backlog or its own time-outs.
server.requestTimeout = 0
server.headersTimeout = 0
server.on('connection', (socket) => {
  sockets += 1
  peakSockets = Math.max(peakSockets, sockets)
  socket.on('close', () => (sockets -= 1))
})
server.listen({ port: 0, host: '127.0.0.1', backlog: 65_535 }, () => {
  report({ kind: 'listening', port: (server.address() as AddressInfo).port })
})

setInterval(() => report({ kind: 'progress', bodyBytes }), 250)
process.on('message', (expected: number) => report(count(expected)))
process.on('disconnect', () => process.exit())

function report(message: ServerReport): void {
  process.send?.(message)
}

function count(expected: number): Counted {
  const seen = new Uint8Array(expected)
  const ids = new Set<unknown>()
  let distinct = 0
  let duplicates = 0
  let lastNewAtMs = 0
  for (const { chunks, isGzip, receivedAtMs } of bodies) {
    const bytes = Buffer.concat(chunks)
    for (const message of messagesOf(isGzip ? gunzipSync(bytes) : bytes)) {
      const sequence = message.properties?.sequence
      if (sequence === undefined) continue
      ids.add(message.messageId ?? message.uuid)
      if (seen[sequence] === 0) {
        seen[sequence] = 1
        distinct += 1
        lastNewAtMs = receivedAtMs
      } else duplicates += 1
    }
  }
  return { kind: 'counted', distinct, duplicates, distinctIds: ids.size, lastNewAtMs, requests: bodies.length, bodyBytes, peakSockets }
}

interface ReceivedMessage {
  messageId?: string
  uuid?: string
  properties?: { sequence?: number }
}

// A body cut off by a client's own time-out never reaches 'end', so what does not parse here is a client's fault: zero messages.
function messagesOf(json: Buffer): ReceivedMessage[] {
  try {
    return (JSON.parse(json.toString()) as { batch?: ReceivedMessage[] }).batch ?? []
  } catch {
    return []
  }
}
