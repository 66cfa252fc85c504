// Reads a request's body, inflating gzip on the way. Invariant: it ends, by the body's end, the limit, the deadline or a
// broken connection, and never holds more than the limit: inflation stops there, so a small bomb stays small.
// The connection is left open, because the answer has yet to be written.

import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'

export interface BodyLimits {
  maxBytes: number
  timeoutMs: number
}

export type BodyRead =
  | { ok: true; bytes: Buffer }
  | { ok: false; reason: 'too_large' | 'timeout' | 'bad_gzip' | 'unknown_encoding' | 'gone' }

/** What gzip may add to data it cannot compress. Without a limit of its own, an endless empty stream would be read for ever. */
const GZIP_OVERHEAD_BYTES = 1024

export function readBody(request: IncomingMessage, { maxBytes, timeoutMs }: BodyLimits): Promise<BodyRead> {
  const encoding = (request.headers['content-encoding'] ?? 'identity').trim().toLowerCase()
  const gzipped = encoding === 'gzip' || encoding === 'x-gzip'
  if (!gzipped && encoding !== 'identity' && encoding !== '') {
    request.resume()
    return Promise.resolve({ ok: false, reason: 'unknown_encoding' })
  }
  return new Promise((resolve) => {
    const gunzip = gzipped ? createGunzip() : undefined
    const chunks: Buffer[] = []
    let bytes = 0
    let sentBytes = 0
    const finish = (result: BodyRead): void => {
      clearTimeout(timer)
      if (gunzip) {
        request.unpipe(gunzip)
        gunzip.destroy()
      }
      // The rest of a refused body is read and thrown away: closing instead would reset the connection, and the sender
      // would never see the answer that says why.
      if (!result.ok) request.off('data', onSent).off('data', onData).resume()
      resolve(result)
    }
    const onSent = (chunk: Buffer): void => {
      sentBytes += chunk.length
      if (sentBytes > maxBytes + GZIP_OVERHEAD_BYTES) finish({ ok: false, reason: 'too_large' })
    }
    const onData = (chunk: Buffer): void => {
      bytes += chunk.length
      if (bytes <= maxBytes) chunks.push(chunk)
      else finish({ ok: false, reason: 'too_large' })
    }
    const timer = setTimeout(() => finish({ ok: false, reason: 'timeout' }), timeoutMs)
    const source: Readable = gunzip ? request.on('data', onSent).pipe(gunzip) : request
    source.on('data', onData).on('end', () => finish({ ok: true, bytes: Buffer.concat(chunks) }))
    gunzip?.on('error', () => finish({ ok: false, reason: 'bad_gzip' }))
    request.on('error', () => finish({ ok: false, reason: 'gone' }))
    request.on('close', () => {
      if (!request.complete) finish({ ok: false, reason: 'gone' })
    })
  })
}
