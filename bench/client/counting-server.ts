// The receiver, in a separate process: accepts any POST on a free port of 127.0.0.1, answers 200, and counts. While a
// workload runs it only keeps the bodies with their times. It parses them on request, after the timed part, so that the
// receiver does not limit the measurement. Of the formats it uses only `properties.sequence` and the id.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gunzipSync } from 'node:zlib'

export interface Progress {
  kind: 'progress'
  bodyBytes: number
}

export interface Counted {
  kind: 'counted'
  /** The number of calls, of `0 … expected - 1`, of which at least one message arrived. */
  distinct: number
  /** The number of duplicates: messages beyond the first of the same call. */
  duplicates: number
  /** The number of different `messageId`s (`uuid`s at PostHog). If it is less than messages minus duplicates, ids were reused. */
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
// A client that opens thousands of sockets at once must not fail because of the receiver's backlog or timeouts.
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

// A body that is cut off by the client's own timeout never reaches 'end', so a body that cannot be parsed here is the client's fault and counts as zero messages.
function messagesOf(json: Buffer): ReceivedMessage[] {
  try {
    return (JSON.parse(json.toString()) as { batch?: ReceivedMessage[] }).batch ?? []
  } catch {
    return []
  }
}
