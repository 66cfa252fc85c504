// Reads a body that has not been read yet, from a Node.js stream or a fetch-style request. Invariant: a read ends, by
// the body's end, the size limit, the deadline or an error, and every end but the first is a refusal, not an exception.
// The connection is left open, because the receiver has yet to answer on it.

import type { Readable } from 'node:stream'
import { isBytes, type RawBody } from './raw-body.ts'
import { type Refusal, refusal } from './refusals.ts'
import type { FetchRequest } from './request-shapes.ts'

export interface ReadLimits {
  maxBodyBytes: number
  timeoutMs: number
}

export type BodyRead = { ok: true; body: RawBody } | Refusal

interface StreamReader {
  read(): Promise<{ done: boolean; value?: unknown }>
  cancel(): Promise<void>
}

export function readNodeStream(stream: Readable, { maxBodyBytes, timeoutMs }: ReadLimits): Promise<BodyRead> {
  return new Promise((resolve) => {
    const chunks: Uint8Array[] = []
    let bodyBytes = 0
    const finish = (result: BodyRead): void => {
      clearTimeout(timer)
      stream.off('data', onData).off('end', onEnd).off('error', onBroken).off('close', onBroken)
      // Paused, a sender of too much is held by backpressure; Node.js drops the rest once the receiver has answered.
      if (!result.ok) stream.pause()
      resolve(result)
    }
    const onData = (chunk: Uint8Array | string): void => {
      // Text only where the application called setEncoding.
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk, stream.readableEncoding ?? 'utf8') : chunk
      bodyBytes += bytes.byteLength
      if (bodyBytes > maxBodyBytes) finish(refusal('body_too_large'))
      else chunks.push(bytes)
    }
    const onEnd = (): void => finish({ ok: true, body: joined(chunks) })
    const onBroken = (): void => finish(refusal('body_unreadable'))
    const timer = setTimeout(() => finish(refusal('body_timeout')), timeoutMs)
    stream.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken)
    // A stream that was paused explicitly does not start with its first listener.
    stream.resume()
  })
}

/** Reads a copy where the request can be cloned, so that the application can still read its own. */
export async function readFetchRequest(request: FetchRequest, { maxBodyBytes, timeoutMs }: ReadLimits): Promise<BodyRead> {
  if (request.bodyUsed === true) return refusal('body_already_read')
  let source: FetchRequest & { body?: unknown }
  try {
    source = typeof request.clone === 'function' ? request.clone() : request
  } catch {
    // clone throws for one thing: a body that someone holds a reader of.
    return refusal('body_already_read')
  }
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<Refusal>((resolve) => {
    timer = setTimeout(() => resolve(refusal('body_timeout')), timeoutMs)
  })
  try {
    if (isWebStream(source.body)) return await readWebStream(source.body.getReader(), maxBodyBytes, deadline)
    const whole = await Promise.race([source.arrayBuffer(), deadline])
    return 'ok' in whole ? whole : { ok: true, body: new Uint8Array(whole) }
  } catch {
    return refusal('body_unreadable')
  } finally {
    clearTimeout(timer)
  }
}

/** arrayBuffer() would be shorter, and would hold whatever is sent in memory before its size is known. */
async function readWebStream(reader: StreamReader, maxBodyBytes: number, deadline: Promise<Refusal>): Promise<BodyRead> {
  const chunks: Uint8Array[] = []
  let bodyBytes = 0
  for (;;) {
    const step = await Promise.race([reader.read(), deadline])
    if ('ok' in step) return abandon(reader, step)
    if (step.done) return { ok: true, body: joined(chunks) }
    if (!isBytes(step.value)) return abandon(reader, refusal('body_unreadable'))
    bodyBytes += step.value.byteLength
    if (bodyBytes > maxBodyBytes) return abandon(reader, refusal('body_too_large'))
    chunks.push(step.value)
  }
}

function abandon(reader: StreamReader, reason: Refusal): Refusal {
  // Not awaited: for a cloned request it settles only when the original is cancelled too, which may be never.
  reader.cancel().catch(() => undefined)
  return reason
}

function joined(chunks: Uint8Array[]): Uint8Array {
  const [first] = chunks
  return chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks)
}

function isWebStream(body: unknown): body is { getReader(): StreamReader } {
  return typeof body === 'object' && body !== null && typeof (body as { getReader?: unknown }).getReader === 'function'
}
