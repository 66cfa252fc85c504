// What the service's sender does, without its guarantees: parses stored messages, writes and signs them, and sends them over connections that are kept
// open, one request at a time each. With undici, or with sockets and a response that is parsed only as far as the benchmark's receiver needs. There
// is no deadline, no address guard, no limit, no retry, and no outcome but a count.

import { createHmac, createSecretKey } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import { Client, type Dispatcher } from 'undici'
import { answerCpu } from './cpu-channel.ts'

export interface BareOptions {
  kind: 'undici' | 'sockets'
  receiver: string
  connections: number
  sharedSecret: string
}

/** Sends one request. Calls `done` when it is answered. */
type Send = (body: string, signature: string, done: () => void) => void

const { kind, receiver, connections, sharedSecret } = workerData as BareOptions
const key = createSecretKey(Buffer.from(sharedSecret))
const free = Array.from({ length: connections }, kind === 'undici' ? createUndici : createSocket)
const waiting: Uint8Array[] = []
let next = 0
let ended = 0

answerCpu(kind)
parentPort?.on('message', ({ bytes, lengths }: { bytes: Uint8Array; lengths: number[] }) => {
  let at = 0
  for (const length of lengths) {
    waiting.push(bytes.subarray(at, at + length))
    at += length
  }
  fill()
})

function fill(): void {
  while (free.length > 0 && next < waiting.length) post(free.pop() as Send, waiting[next++] as Uint8Array)
  if (next < waiting.length) return
  waiting.length = 0
  next = 0
}

function post(send: Send, stored: Uint8Array): void {
  const { batch } = JSON.parse(Buffer.from(stored.buffer, stored.byteOffset, stored.length).toString()) as { batch: unknown[] }
  const body = JSON.stringify(batch[0])
  send(body, createHmac('sha1', key).update(body).digest('hex'), () => {
    free.push(send)
    if (ended++ === 0) setImmediate(report)
    fill()
  })
}

function report(): void {
  parentPort?.postMessage(ended, [])
  ended = 0
}

function createUndici(): Send {
  const client = new Client(receiver, { pipelining: 1, headersTimeout: 0, bodyTimeout: 0 })
  return (body, signature, done) => {
    const headers = ['User-Agent', 'Switchyard/1.0', 'Content-Type', 'application/json', 'X-Attempt', '1', 'X-Signature', signature]
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart() {},
      onResponseStart() {},
      onResponseData() {},
      onResponseEnd: done,
      onResponseError: (_controller, error) => {
        throw error
      },
    }
    client.dispatch({ path: '/', method: 'POST', headers, body }, handler)
  }
}

function createSocket(): Send {
  const { hostname, port, host } = new URL(receiver)
  const socket: Socket = connect({ host: hostname, port: Number(port), noDelay: true })
  const head = `POST / HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\nUser-Agent: Switchyard/1.0\r\nContent-Type: application/json\r\nX-Attempt: 1\r\nX-Signature: `
  let done = (): void => undefined
  socket.on('data', (chunk: Buffer) => {
    const text = chunk.toString('latin1')
    if (!text.startsWith('HTTP/1.1 200') || !text.endsWith('\r\n\r\n')) throw new Error('not the answer of the receiver')
    done()
  })
  return (body, signature, onEnd) => {
    done = onEnd
    socket.write(`${head}${signature}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
  }
}
