// Reads a body that has not been read yet, from a Node.js stream or a fetch-style request. Invariant: reading stops at the end
// of the body, the size limit, the deadline or an error; all but the first return a refusal and never throw. The connection
// is left open, because the receiver still has to respond on it.

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
      // Pausing stops a sender of too much data by backpressure; Node.js discards the rest once the receiver has responded.
      if (!result.ok) stream.pause()
      resolve(result)
    }
    const onData = (chunk: Uint8Array | string): void => {
      // A chunk is text only if the application called setEncoding.
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk, stream.readableEncoding ?? 'utf8') : chunk
      bodyBytes += bytes.byteLength
      if (bodyBytes > maxBodyBytes) finish(refusal('body_too_large'))
      else chunks.push(bytes)
    }
    const onEnd = (): void => finish({ ok: true, body: joined(chunks) })
    const onBroken = (): void => finish(refusal('body_unreadable'))
    const timer = setTimeout(() => finish(refusal('body_timeout')), timeoutMs)
    stream.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken)
    // Adding a listener does not start a stream that was paused explicitly.
    stream.resume()
  })
}

/** Reads a clone if the request can be cloned, so that the application can still read the body itself. */
export async function readFetchRequest(request: FetchRequest, { maxBodyBytes, timeoutMs }: ReadLimits): Promise<BodyRead> {
  if (request.bodyUsed === true) return refusal('body_already_read')
  let source: FetchRequest & { body?: unknown }
  try {
    source = typeof request.clone === 'function' ? request.clone() : request
  } catch {
    // clone() throws only if the body is locked by a reader.
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

/** arrayBuffer() would be simpler, but would load a body of any size into memory before it can be checked. */
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
  // Not awaited: for a cloned request it settles only when the original is cancelled, too, which may never happen.
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
