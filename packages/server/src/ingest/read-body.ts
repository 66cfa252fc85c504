// Reads a request's body, and inflates gzip. Invariant: it ends, by the body's end, the limit, the deadline or a broken
// connection, and never holds more than the limit: what is declared too long is refused before it is read, and inflation
// stops at the limit, so a small bomb stays small. All bodies together stay within a budget, also while they wait to be
// inflated. Callbacks, not promises: this runs for every request.

import type { IncomingMessage } from 'node:http'
import type { ArrivingBody, BodyBudget } from './body-budget.ts'
import type { Inflate } from './inflate.ts'

export interface BodyLimits {
  maxBytes: number
  timeoutMs: number
  budget: BodyBudget
  inflate: Inflate
}

export type BodyFailure = 'too_large' | 'timeout' | 'no_room' | 'bad_gzip' | 'unknown_encoding' | 'gone'

/** What gzip may add to data that it cannot compress. Without a limit of its own, an endless empty stream would be read for ever. */
const GZIP_OVERHEAD_BYTES = 1024
const EMPTY: Buffer = Buffer.alloc(0)

/**
 * `done` is called once: with the body, or with why there is none. The connection is left open for the answer. `isKnown`: the head of
 * the request has the key of a source.
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
    // The rest of a refused body is read and thrown away, until the deadline. Closing instead would reset the connection,
    // and the sender would never see the answer that says why.
    request.resume()
    // Once it is answered, node:http no longer tells that the connection is gone, so nobody may come to clear it.
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
      // A body that arrived in one piece is used at once. Most do, and cost nothing here.
      if (bytes === declaredBytes && !gzipped) return
      arriving ??= { isKnown, giveUp: () => fail('no_room'), heldBytes: 0 }
      budget.add(arriving, chunk.length)
    })
  }
}

/** For a request that was answered because of its headers: its body is discarded as it arrives, until the deadline. `sampled` is called once, with its start. */
export function discardBody(request: IncomingMessage, timeoutMs: number, sampled: (start: Buffer) => void): void {
  let isSampled = false
  const sample = (start: Buffer): void => {
    if (isSampled) return
    isSampled = true
    sampled(start)
  }
  // Nothing else may come: once a request is answered, node:http does not tell that its connection is gone.
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
