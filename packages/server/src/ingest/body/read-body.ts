// Reads the body of a request and decompresses gzip. Invariant: reading always ends (at the end of the body, at the size limit, at
// the deadline, or when the connection closes) and never holds more bytes than the limit. A body whose declared length is too large is
// rejected before it is read, and decompression stops at the limit, so a compression bomb does no harm. All bodies together stay
// within a budget, including those that wait for decompression. It uses callbacks instead of promises because it runs for every request.

import type { IncomingMessage } from 'node:http'
import { MAX_BATCH_BYTES, MAX_MESSAGE_BYTES } from '@switchyard/protocol'
import { type ArrivingBody, type BodyBudget, createBodyBudget } from './body-budget.ts'
import { createInflate, type Inflate } from './inflate.ts'

export interface BodyLimits {
  maxBytes: number
  timeoutMs: number
  budget: BodyBudget
  inflate: Inflate
}

export interface BodyLimitsByRoute {
  batch: BodyLimits
  call: BodyLimits
}

export type BodyFailure = 'too_large' | 'timeout' | 'no_room' | 'bad_gzip' | 'unknown_encoding' | 'gone'

/** The bytes that gzip may add to incompressible data. Without a limit on the compressed bytes, an endless stream of empty blocks would be read forever. */
const GZIP_OVERHEAD_BYTES = 1024
const EMPTY: Buffer = Buffer.alloc(0)

export function createBodyLimits({ bodyTimeoutMs, maxBodiesBytes }: { bodyTimeoutMs: number; maxBodiesBytes: number }): BodyLimitsByRoute {
  const limits = { timeoutMs: bodyTimeoutMs, budget: createBodyBudget(maxBodiesBytes), inflate: createInflate() }
  return { batch: { ...limits, maxBytes: MAX_BATCH_BYTES }, call: { ...limits, maxBytes: MAX_MESSAGE_BYTES } }
}

/**
 * Calls `done` once, with the body or with the reason why there is none. The connection stays open for the response. `isKnown` is whether
 * the headers of the request contain the write key of a source.
 */
export function readBody(
  request: IncomingMessage,
  { maxBytes, timeoutMs, budget, inflate }: BodyLimits,
  isKnown: boolean,
  done: (body: Buffer, failure: BodyFailure | null) => void,
): void {
  const encoding = request.headers['content-encoding']
  const gzipped = encoding !== undefined && /^\s*(?:x-)?gzip\s*$/i.test(encoding)
  const declaredBytes = Number(request.headers['content-length'])
  const limit = gzipped ? maxBytes + GZIP_OVERHEAD_BYTES : maxBytes
  let first = EMPTY
  let chunks: Buffer[] | undefined
  let bytes = 0
  let over = false
  let arriving: ArrivingBody | undefined
  let cancelInflation: (() => void) | undefined

  const fail = (failure: BodyFailure): void => {
    if (over) return
    over = true
    first = EMPTY
    chunks = undefined
    if (arriving !== undefined) budget.remove(arriving)
    cancelInflation?.()
    // The rest of a rejected body is read and discarded, until the deadline. Closing the connection instead would reset it,
    // and the sender would never see the response.
    request.resume()
    // After the response, node:http does not report a closed connection, so the timer may never be cleared.
    timer.unref()
    done(EMPTY, failure)
  }
  const timer = setTimeout(() => {
    if (!over) fail('timeout')
    else if (!request.complete) request.socket.destroy()
  }, timeoutMs)

  request.on('close', () => {
    clearTimeout(timer)
    if (!request.complete) fail('gone')
  })
  request.on('end', () => {
    clearTimeout(timer)
    if (over) return
    const body = chunks === undefined ? first : Buffer.concat(chunks, bytes)
    const finish = (whole: Buffer, failure: BodyFailure | null): void => {
      if (over) return
      over = true
      if (arriving !== undefined) budget.remove(arriving)
      done(whole, failure)
    }
    if (!gzipped) return finish(body, null)
    const inflated = (error: NodeJS.ErrnoException | null, whole: Buffer): void =>
      finish(error ? EMPTY : whole, error && gzipFailure(error))
    cancelInflation = inflate({ body, maxBytes, isKnown, done: inflated })
  })
  if (encoding !== undefined && !gzipped && !/^\s*(?:identity)?\s*$/i.test(encoding)) fail('unknown_encoding')
  else if (declaredBytes > limit) fail('too_large')
  else {
    request.on('data', (chunk: Buffer) => {
      if (over) return
      bytes += chunk.length
      if (bytes > limit) {
        fail('too_large')
        return
      }
      if (first.length === 0) first = chunk
      else if (chunks === undefined) chunks = [first, chunk]
      else chunks.push(chunk)
      // Most bodies arrive in one piece. They are used immediately and do not count towards the budget.
      if (bytes === declaredBytes && !gzipped) return
      arriving ??= { isKnown, abandon: () => fail('no_room'), heldBytes: 0 }
      budget.add(arriving, chunk.length)
    })
  }
}

/** For a request that was rejected because of its headers: discards the body as it arrives, until the deadline. Calls `sampled` once, with its start. */
export function discardBody(request: IncomingMessage, timeoutMs: number, sampled: (start: Buffer) => void): void {
  let isSampled = false
  const sample = (start: Buffer): void => {
    if (isSampled) return
    isSampled = true
    sampled(start)
  }
  // After the response, node:http does not report a closed connection, so the end may only come from this timer.
  const timer = setTimeout(() => {
    sample(EMPTY)
    if (!request.complete) request.socket.destroy()
  }, timeoutMs)
  timer.unref()
  const end = (): void => {
    clearTimeout(timer)
    sample(EMPTY)
  }
  request.on('data', sample).on('end', end).on('close', end)
}

function gzipFailure(error: NodeJS.ErrnoException): BodyFailure {
  return error.code === 'ERR_BUFFER_TOO_LARGE' ? 'too_large' : 'bad_gzip'
}
