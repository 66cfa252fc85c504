// The receiver, in a separate process: accepts POSTs on a free port of 127.0.0.1, answers 200, and records for each
// event when it first arrived and how often. With the argument `hang` it accepts connections and never answers; a number is how many milliseconds it
// takes to answer. It can be told to answer 503 to all events of a user.

import { type AddressInfo, createServer, type Socket } from 'node:net'
import { sequenceAt, userOf } from './events.ts'
import { frame, nowMs } from './http-message.ts'

export type ReceiverRequest =
  | { kind: 'expect'; first: number; events: number; refused?: RefusedUser }
  | { kind: 'times'; first: number; events: number }
  | { kind: 'count' }

/** This one of so many users; see userOf. */
export interface RefusedUser {
  user: number
  users: number
}

export type ReceiverReport =
  | { kind: 'listening'; port: number }
  /** Sent as soon as every expected event has arrived at least once. */
  | { kind: 'complete'; lastNewAtMs: number }
  /** 0 for an event that has not arrived. */
  | { kind: 'times'; receivedAtMs: Float64Array; copies: Uint16Array; foreign: number }
  /** All events that have arrived, including duplicates. */
  | { kind: 'count'; received: number }

/** The upper limit of event numbers during the life of a receiver. */
export const CAPACITY = 2 ** 22

const ANSWER = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
const REFUSAL = Buffer.from('HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n')
const ID_KEY = Buffer.from('"messageId":"')

const receivedAtMs = new Float64Array(CAPACITY)
const copies = new Uint16Array(CAPACITY)
let foreign = 0
let received = 0
let expectedFirst = 0
let expectedEnd = 0
let missing = 0
let refused: RefusedUser | undefined

const isHanging = process.argv[2] === 'hang'
const answerAfterMs = Number(process.argv[2] ?? 0)
const server = createServer({ noDelay: true }, isHanging ? hang : serve)
server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () =>
  report({ kind: 'listening', port: (server.address() as AddressInfo).port }),
)

process.on('message', (request: ReceiverRequest) => {
  if (request.kind === 'count') return report({ kind: 'count', received })
  const { first, events } = request
  if (request.kind === 'expect') {
    refused = request.refused
    expect(first, events)
  } else {
    const end = first + events
    report({ kind: 'times', receivedAtMs: receivedAtMs.slice(first, end), copies: copies.slice(first, end), foreign })
  }
})
process.on('disconnect', () => process.exit())

function expect(first: number, events: number): void {
  expectedFirst = first
  expectedEnd = first + events
  missing = 0
  for (let sequence = expectedFirst; sequence < expectedEnd; sequence += 1) if (copies[sequence] === 0 && !isRefused(sequence)) missing += 1
  if (missing === 0) report({ kind: 'complete', lastNewAtMs: nowMs() })
}

function hang(socket: Socket): void {
  socket.on('error', () => {}).resume()
}

function serve(socket: Socket): void {
  let rest: Buffer | undefined
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => {
    const buffer = rest ? Buffer.concat([rest, chunk]) : chunk
    let start = 0
    for (let message = frame(buffer, start); message; message = start < buffer.length ? frame(buffer, start) : undefined) {
      const { bodyStart, end } = message
      const answer = note(buffer.subarray(bodyStart, end)) ? ANSWER : REFUSAL
      if (answerAfterMs > 0) setTimeout(() => socket.write(answer), answerAfterMs)
      else socket.write(answer)
      start = end
    }
    rest = start < buffer.length ? buffer.subarray(start) : undefined
  })
}

function isRefused(sequence: number): boolean {
  return refused !== undefined && userOf(sequence, refused.users) === refused.user
}

/** Returns whether the event is accepted. */
function note(body: Buffer): boolean {
  received += 1
  const at = body.indexOf(ID_KEY)
  const sequence = at === -1 ? CAPACITY : sequenceAt(body, at + ID_KEY.length)
  if (!(sequence < CAPACITY)) {
    foreign += 1
    return true
  }
  if (isRefused(sequence)) return false
  const count = (copies[sequence] ?? 0) + 1
  copies[sequence] = count
  if (count > 1) return true
  const now = nowMs()
  receivedAtMs[sequence] = now
  if (sequence < expectedFirst || sequence >= expectedEnd) return true
  missing -= 1
  if (missing === 0) report({ kind: 'complete', lastNewAtMs: now })
  return true
}

function report(message: ReceiverReport): void {
  process.send?.(message)
}
