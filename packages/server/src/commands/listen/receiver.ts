// A webhook receiver for inspection: accepts every request, verifies its signatures with @switchyard/webhook, reports what it received,
// and answers or fails as configured. It prints nothing, and remembers only which messages it has accepted.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { VerifyOptions, VerifyResult } from '@switchyard/webhook'
import { pause } from '../service/api.ts'

export type Signature =
  /** No secret is configured. `carried` says whether the request has a signature. */
  | { verdict: 'unchecked'; carried: boolean }
  | { verdict: 'good'; coverage: 'body' | 'first_message' }
  | { verdict: 'missing' | 'wrong' | 'unreadable'; code: string; message: string }

export interface ArrivedMessage {
  type: string
  messageId: string | null
  event: string | null
  userId: string | null
  anonymousId: string | null
  /** Whether it was received before and answered with success. */
  duplicate: boolean
  body: Record<string, unknown>
}

export interface Arrival {
  number: number
  atMs: number
  method: string
  path: string
  headers: Readonly<Record<string, string>>
  /** The body as text. */
  text: string
  batch: boolean
  messages: readonly ArrivedMessage[]
  attempt: number | null
  replay: boolean
  signature: Signature
  /** The status of the response; null for no response. */
  status: number | null
  misbehaviour: Misbehaviour | null
}

export type Misbehaviour = 'status' | 'reset' | 'hang' | 'drip'

export interface ReceiverOptions {
  host: string
  port: number
  /** Null to skip checking signatures. */
  secrets: Pick<VerifyOptions, 'sharedSecret' | 'signingSecrets'> | null
  /** Whether to reject a request without a valid signature, as a real receiver does. */
  strict: boolean
  /** The kind of failure to simulate; null for none. */
  misbehaviour: Misbehaviour | null
  status: number
  /** The share of requests that fail, from 0 to 1. */
  share: number
  delayMs: number
  onArrival: (arrival: Arrival) => void
  random?: () => number
}

export interface RunningReceiver {
  url: string
  close(): Promise<void>
}

const MAX_BODY_BYTES = 16 * 1024 * 1024
/** Beyond this number the oldest messages are forgotten, because a receiver may run for days. */
const MAX_REMEMBERED = 500_000
const DRIP_EVERY_MS = 1_000

/** `verify` is a parameter, so that the package is loaded only when it is needed. */
export async function startReceiver(
  options: ReceiverOptions,
  verify: (webhook: { headers: Record<string, string>; body: Buffer }, options: VerifyOptions) => VerifyResult,
): Promise<RunningReceiver> {
  const { host, port, secrets, strict, misbehaviour, status, share, delayMs, onArrival, random = Math.random } = options
  const accepted = new Set<string>()
  const sockets = new Set<Socket>()
  const closing = new AbortController()
  let count = 0

  const server = createServer((request, response) => void receive(request, response))
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => {})
  })

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request)
    if (body === undefined) return void response.writeHead(413).end(() => request.destroy())
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
    const signature = secrets === null ? unchecked(headers) : signatureOf(verify({ headers, body }, { ...secrets, ...INSPECTING }))
    const isRejected = strict && signature.verdict !== 'good' && signature.verdict !== 'unchecked'
    const bad = !isRejected && misbehaviour !== null && random() < share ? misbehaviour : null
    const answered = isRejected ? 401 : bad === null ? 200 : bad === 'status' ? status : null
    const isGood = answered !== null && answered >= 200 && answered < 300
    const payload = parse(body)
    const arrival: Arrival = {
      number: ++count,
      atMs: Date.now(),
      method: request.method ?? '',
      path: request.url ?? '',
      headers,
      text: body.toString('utf8'),
      batch: Array.isArray(payload),
      messages: messagesOf(payload).map((message) => arrived(message, accepted, isGood)),
      attempt: /^\d{1,9}$/.test(headers['x-attempt'] ?? '') ? Number(headers['x-attempt']) : null,
      replay: headers['x-replay'] === 'true',
      signature,
      status: answered,
      misbehaviour: bad,
    }
    onArrival(arrival)
    if (delayMs > 0) await pause(delayMs, closing.signal)
    if (closing.signal.aborted) return
    answer(arrival, response)
  }

  function answer({ status: answered, misbehaviour: bad }: Arrival, response: ServerResponse): void {
    if (response.destroyed) return
    if (bad === 'hang') return
    if (bad === 'reset') return void response.socket?.resetAndDestroy()
    if (bad === 'drip') {
      response.writeHead(200, { 'content-type': 'text/plain' })
      const timer = setInterval(() => response.write('.'), DRIP_EVERY_MS)
      response.write('.')
      response.on('close', () => clearInterval(timer))
      return
    }
    response.writeHead(answered as number, { 'content-type': 'text/plain' }).end()
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return {
    url: urlOf(server.address() as AddressInfo),
    async close() {
      closing.abort()
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

function urlOf({ address, family, port }: AddressInfo): string {
  const shown = address === '0.0.0.0' || address === '::' ? '127.0.0.1' : family === 'IPv6' ? `[${address}]` : address
  return `http://${shown}:${port}/`
}

/** This is a tool for inspection: it shows how much of a batch the signature covers instead of rejecting it. */
const INSPECTING = { allowUnprovenMessages: true, maxBodyBytes: MAX_BODY_BYTES }

function unchecked(headers: Record<string, string>): Signature {
  return { verdict: 'unchecked', carried: 'x-signature' in headers || 'webhook-signature' in headers }
}

function signatureOf(result: VerifyResult): Signature {
  if (result.ok) return { verdict: 'good', coverage: result.coverage }
  const { code, message } = result
  if (code === 'signature_missing') return { verdict: 'missing', code, message }
  return { verdict: code.startsWith('invalid_') ? 'unreadable' : 'wrong', code, message }
}

/** `accepted` has the ids of the messages that were answered with success; `isGood` is whether this one is. */
function arrived(body: Record<string, unknown>, accepted: Set<string>, isGood: boolean): ArrivedMessage {
  const text = (name: string): string | null => (typeof body[name] === 'string' ? body[name] : null)
  const messageId = text('messageId')
  const duplicate = messageId !== null && accepted.has(messageId)
  if (messageId !== null && isGood && !duplicate) {
    if (accepted.size >= MAX_REMEMBERED) accepted.delete(accepted.values().next().value as string)
    accepted.add(messageId)
  }
  const [userId, anonymousId] = [text('userId'), text('anonymousId')]
  return { type: text('type') ?? '?', messageId, event: text('event') ?? text('name'), userId, anonymousId, duplicate, body }
}

/** Returns undefined if the body is too large. */
async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > MAX_BODY_BYTES) return undefined
      chunks.push(chunk)
    }
  } catch {
    // The sender aborted the request; show what was received.
  }
  return Buffer.concat(chunks)
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown
  } catch {
    return undefined
  }
}

function messagesOf(payload: unknown): Record<string, unknown>[] {
  const list = Array.isArray(payload) ? payload : [payload]
  return list.filter((entry): entry is Record<string, unknown> => typeof entry === 'object' && entry !== null && !Array.isArray(entry))
}
