// The HTTP front end that the peers share: accepts batches over node:http with as little overhead as possible, and tells the benchmark where it
// listens and how much is still pending. Each peer decides what happens to a batch.

import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Pool } from 'undici'

export interface ProgramOptions {
  /** The URL to which messages are sent; missing if only ingest is measured. */
  receiver?: string
  folder: string
  connectionString?: string
  settings?: 'documented' | 'tuned'
  redisPort?: number
}

export type ProgramReport = { kind: 'listening'; port: number } | { kind: 'remaining'; remaining: number }

export interface Batch {
  batch: unknown[]
}

/** The service's destination has the same secret, so that every program computes a signature for each message. */
export const SHARED_SECRET = 'the shared secret of the benchmark'

const ANSWER = '{"success":true}'
const HEADERS = { 'content-type': 'application/json', 'content-length': ANSWER.length }
/** Measured in alternating runs with 16, 32, 64 and 128: 13,600 events/s with 16, and 15,100 to 15,800 without a clear order with the others. */
const CONNECTIONS = 64

export function readOptions(): ProgramOptions {
  return JSON.parse(process.argv[2] ?? '{}') as ProgramOptions
}

/** `accept` calls `answer` once the batch is durable. */
export function listen(accept: (body: Buffer, answer: () => void) => void, remaining: () => number | Promise<number>): void {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const [only] = chunks
      const body = chunks.length === 1 && only ? only : Buffer.concat(chunks)
      accept(body, () => response.writeHead(200, HEADERS).end(ANSWER))
    })
  })
  server.listen(0, '127.0.0.1', () => report({ kind: 'listening', port: (server.address() as AddressInfo).port }))
  process.on('message', () => void Promise.resolve(remaining()).then((count) => report({ kind: 'remaining', remaining: count })))
  process.on('disconnect', () => process.exit())
}

export function createPoster(receiver: string): (message: unknown) => Promise<void> {
  const pool = new Pool(receiver, { connections: CONNECTIONS })
  const key = createSecretKey(Buffer.from(SHARED_SECRET))
  return async (message) => {
    const json = JSON.stringify(message)
    const headers = { 'content-type': 'application/json', 'x-signature': signatureOf(json, key) }
    const { statusCode, body } = await pool.request({ method: 'POST', path: '/', headers, body: json })
    await body.dump()
    if (statusCode !== 200) throw new Error(`the receiver answered ${statusCode}`)
  }
}

/** The service's X-Signature, with the key parsed once. */
export function signatureOf(json: string | Buffer, key: KeyObject): string {
  return createHmac('sha1', key).update(json).digest('hex')
}

function report(message: ProgramReport): void {
  process.send?.(message)
}
