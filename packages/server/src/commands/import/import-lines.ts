// Reads the lines of an import file with their numbers and byte offsets, so that an import can resume. Memory is bounded: the rest of a
// line beyond the limit is skipped, and the line is marked as too long. gzip is detected by the first bytes.

import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'

export interface Line {
  /** The line number, from 1. */
  number: number
  /** The offset of the first byte after the line, in the decompressed data. */
  end: number
  start: number
  text: string
  tooLong: boolean
  /** Whether the bytes are valid UTF-8. */
  isText: boolean
  /** The number of bytes of the (compressed) file read so far, for the progress bar. */
  readBytes: number
}

export interface Start {
  offset: number
  line: number
}

/** Larger than a message may be, so that a message that is too large is still reported with its start. */
export const MAX_LINE_BYTES = 256 * 1024
const NEWLINE = 0x0a

export interface LinesOptions {
  /** Null to read `input`, which cannot be resumed. */
  path: string | null
  input: Readable
  from: Start
  signal: AbortSignal
}

export async function* readLines({ path, input, from, signal }: LinesOptions): AsyncGenerator<Line> {
  const gzip = path !== null && (await isGzip(path))
  let readBytes = 0
  const raw = path === null ? input : createReadStream(path, { start: gzip ? 0 : from.offset, highWaterMark: 256 * 1024 })
  if (!gzip) readBytes = from.offset
  let source: AsyncIterable<Buffer> = raw as AsyncIterable<Buffer>
  if (gzip) {
    const unzip = createGunzip()
    raw.on('data', (chunk: Buffer) => {
      readBytes += chunk.length
    })
    raw.on('error', (error: Error) => unzip.destroy(error))
    raw.pipe(unzip)
    source = unzip as AsyncIterable<Buffer>
  }
  let position = gzip ? 0 : from.offset
  let number = from.line
  let start = from.offset
  let parts: Buffer[] = []
  let held = 0
  let tooLong = false

  const line = (end: number): Line => {
    number += 1
    const bytes = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)
    let text = bytes.toString('utf8')
    if (start === 0) text = text.replace(/^\uFEFF/, '')
    const made = { number, start, end, text: text.replace(/\r$/, ''), tooLong, isText: isUtf8(bytes), readBytes }
    start = end
    parts = []
    held = 0
    tooLong = false
    return made
  }
  const hold = (bytes: Buffer): void => {
    if (held + bytes.length > MAX_LINE_BYTES) {
      tooLong = true
      if (held < MAX_LINE_BYTES) parts.push(bytes.subarray(0, MAX_LINE_BYTES - held))
      held = MAX_LINE_BYTES
    } else {
      parts.push(bytes)
      held += bytes.length
    }
  }

  try {
    for await (const whole of source) {
      if (!gzip) readBytes += whole.length
      let chunk = whole
      if (position < from.offset) {
        const skipped = Math.min(chunk.length, from.offset - position)
        position += skipped
        chunk = chunk.subarray(skipped)
      }
      let at = 0
      for (;;) {
        const newline = chunk.indexOf(NEWLINE, at)
        if (newline === -1) break
        hold(chunk.subarray(at, newline))
        yield line(position + newline + 1)
        if (signal.aborted) return
        at = newline + 1
      }
      if (at < chunk.length) hold(chunk.subarray(at))
      position += chunk.length
    }
    if (held > 0) yield line(position)
  } finally {
    raw.destroy()
  }
}

async function isGzip(path: string): Promise<boolean> {
  const head = await readHead(path, 2)
  return head[0] === 0x1f && head[1] === 0x8b
}

async function readHead(path: string, bytes: number): Promise<Buffer> {
  const file = await open(path)
  try {
    const buffer = Buffer.alloc(bytes)
    const { bytesRead } = await file.read(buffer, 0, bytes, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

/** Identifies a file by its start, which does not change when lines are appended. */
export async function fingerprintOf(path: string, bytes: number): Promise<string> {
  return createHash('sha256')
    .update(await readHead(path, bytes))
    .digest('hex')
}
