// One request through the client of Node.js. It makes the requests that our own connections are not used for, and reads the answers that
// plain-answer.ts leaves to it.

import http from 'node:http'
import https from 'node:https'
import type { Duplex } from 'node:stream'
import { libraryRequests } from './library-requests.ts'
import type { RequestTarget } from './request-target.ts'

export interface Outgoing {
  target: RequestTarget
  method: string
  /** As they are sent. */
  headers: Record<string, string>
  body: Buffer | null
  signal: AbortSignal
  /** Until the answer begins; null: only the signal ends it. */
  timeoutMs: number | null
}

export interface Answer {
  status: number
  statusText: string
  headers: Readonly<Record<string, string | readonly string[] | undefined>>
  body: Buffer
}

/** Thrown when the timeout of the request itself has passed. */
export class OwnTimeout extends Error {}

/** Of an answer, also of a decompressed one. Tools answer with kilobytes; a host has 512 MB for all answers that it reads at once. */
export const MAX_ANSWER_BYTES = 16 * 1024 * 1024

/** When a body has arrived in this many pieces, they are joined: each takes memory besides its bytes, and a tool may send every byte as a chunk. */
const MAX_PIECES = 1024

const REDIRECTS = new Set([301, 302, 303, 307, 308])

/** `onRequest` is called before anything is sent. `connection` is used instead of one of the default agent. */
export function sentByNode(
  { target, method, headers, body, signal, timeoutMs }: Outgoing,
  onRequest: (request: http.ClientRequest) => void = () => {},
  connection?: Duplex,
): Promise<Answer> {
  const { protocol, hostname, port, path, url } = target
  return new Promise((resolve, reject) => {
    const request =
      connection === undefined
        ? (protocol === 'https:' ? https : http).request({ protocol, hostname, port, path, method, headers })
        : http.request({ path, method, headers, createConnection: () => connection })
    onRequest(request)
    let timer: NodeJS.Timeout | undefined
    let answer: http.IncomingMessage | undefined
    const settle = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
    }
    const fail = (error: Error): void => {
      settle()
      reject(error)
      request.destroy()
    }
    const abort = (): void => fail(aborted())
    const broken = (error: Error): void => fail(brokenAnswer(url, error))
    signal.addEventListener('abort', abort)
    if (timeoutMs !== null) timer = setTimeout(() => fail(new OwnTimeout()), timeoutMs)
    request.on('error', (error) => {
      if (answer !== undefined) broken(error)
      else fail(failedRequest(url, error))
    })
    request.on('response', (message) => {
      clearTimeout(timer)
      answer = message
      const head = { status: message.statusCode as number, statusText: message.statusMessage as string, headers: message.headers }
      if (redirectOf(head) !== undefined) {
        settle()
        resolve({ ...head, body: Buffer.alloc(0) })
        request.destroy()
        return
      }
      const chunks: Buffer[] = []
      const pieces: Buffer[] = []
      let bytes = 0
      message.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > MAX_ANSWER_BYTES) fail(tooLarge(url))
        else if (pieces.push(chunk) === MAX_PIECES) chunks.push(Buffer.concat(pieces.splice(0)))
      })
      message.on('error', (error) => broken(message.headers['transfer-encoding'] === 'chunked' ? prematureClose() : error))
      message.on('end', () => {
        settle()
        resolve({ ...head, body: joined([...chunks, ...pieces]) })
      })
    })
    request.end(body ?? undefined)
  })
}

export function joined(chunks: readonly Buffer[]): Buffer {
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
}

/** Where the answer redirects to; undefined if it does not. */
export function redirectOf({ status, headers }: Pick<Answer, 'status' | 'headers'>): string | undefined {
  return REDIRECTS.has(status) ? (headers['location'] as string | undefined) : undefined
}

export function aborted(): Error {
  return new (libraryRequests().fetch.AbortError)('The user aborted a request.')
}

export function failedRequest(url: string, error: Error): Error {
  return new (libraryRequests().fetch.FetchError)(`request to ${url} failed, reason: ${error.message}`, 'system', error)
}

export function brokenAnswer(url: string, error: Error): Error {
  return new (libraryRequests().fetch.FetchError)(`Invalid response body while trying to fetch ${url}: ${error.message}`, 'system', error)
}

/** As node-fetch reports it. The action had an effect, so the message is not sent again. */
export function tooLarge(url: string): Error {
  return new (libraryRequests().fetch.FetchError)(`The answer of ${url} is larger than ${MAX_ANSWER_BYTES} bytes`, 'max-size')
}

function prematureClose(): Error {
  return Object.assign(new Error('Premature close'), { code: 'ERR_STREAM_PREMATURE_CLOSE' })
}
