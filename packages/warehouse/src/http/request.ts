// One HTTP request with deadlines and a limit for the response. Redirects are not followed. Connections are kept for the next request. Where addresses have
// to be checked, the process checks all its sockets.

import { Agent as HttpAgent, type IncomingHttpHeaders, type OutgoingHttpHeaders, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { WarehouseProblem } from '../failure.ts'

export interface HttpRequest {
  method: string
  url: URL
  headers?: OutgoingHttpHeaders
  /** Sent one after the other, without a copy. */
  body?: readonly Uint8Array[]
  timeoutMs?: number
  /** How long nothing may come or go. */
  idleMs?: number
  maxBytes?: number | undefined
  signal?: AbortSignal | undefined
}

export interface HttpAnswer {
  status: number
  headers: IncomingHttpHeaders
  body: Buffer
}

const IDLE_MS = 30_000
const TIMEOUT_MS = 300_000
const MAX_BYTES = 256 * 1024 * 1024

/** The response is larger than the caller accepts. The rest of it is not read. */
export class AnswerTooLarge extends WarehouseProblem {}

export class HttpConnections {
  readonly #agents = { 'http:': new HttpAgent({ keepAlive: true }), 'https:': new HttpsAgent({ keepAlive: true }) }

  async request({
    method,
    url,
    headers,
    body = [],
    timeoutMs = TIMEOUT_MS,
    idleMs = IDLE_MS,
    maxBytes = MAX_BYTES,
    signal,
  }: HttpRequest): Promise<HttpAnswer> {
    const isSecure = url.protocol === 'https:'
    const deadline = AbortSignal.timeout(timeoutMs)
    const length = body.reduce((total, { byteLength }) => total + byteLength, 0)
    return new Promise((resolve, reject) => {
      const sent = (isSecure ? requestHttps : requestHttp)(url, {
        method,
        agent: this.#agents[isSecure ? 'https:' : 'http:'],
        headers: { ...headers, ...(method === 'GET' || method === 'HEAD' || method === 'DELETE' ? {} : { 'content-length': length }) },
        timeout: idleMs,
        signal: signal === undefined ? deadline : AbortSignal.any([deadline, signal]),
      })
      sent.on('timeout', () => sent.destroy(timedOut(url)))
      sent.on('error', (error) => reject(deadline.aborted ? timedOut(url) : error))
      sent.on('response', (answer) => {
        const parts: Buffer[] = []
        let bytes = 0
        answer.on('data', (part: Buffer) => {
          bytes += part.length
          if (bytes > maxBytes) answer.destroy(new AnswerTooLarge('failed', `${url.host} answered with more than ${maxBytes} bytes.`))
          else parts.push(part)
        })
        answer.on('error', reject)
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(parts) }))
      })
      for (const part of body) sent.write(part)
      sent.end()
    })
  }

  close(): void {
    for (const agent of Object.values(this.#agents)) agent.destroy()
  }
}

function timedOut(url: URL): Error {
  return Object.assign(new Error(`no answer from ${url.host} in time`), { code: 'ETIMEDOUT' })
}
