// Messages between the service and a host, through a pipe: the length of each in four bytes, and then its value as node:v8 serializes it. It is not the
// channel of node:child_process, because Node.js itself reads what arrives there. Code in a host can write anything to it, and what cannot be read
// ends the process that reads it.

import type { Readable, Writable } from 'node:stream'
import { deserialize, serialize } from 'node:v8'

/** The file descriptor of the pipe in a host. */
export const PIPE_FD = 3
const HEADER_BYTES = 4

export function writeMessage(pipe: Writable, message: unknown): void {
  const body = serialize(message)
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt32LE(body.length)
  pipe.cork()
  pipe.write(header)
  pipe.write(body)
  pipe.uncork()
}

/** Calls `onMessage` for each message. What cannot be read, is longer than `maxBytes`, or makes `onMessage` throw, ends the reading with `onError`. */
export function readMessages(
  pipe: Readable,
  maxBytes: number,
  onMessage: (message: unknown) => void,
  onError: (error: unknown) => void,
): void {
  const header = Buffer.alloc(HEADER_BYTES)
  let target = header
  let filled = 0
  const read = (chunk: Buffer): void => {
    for (let at = 0; at < chunk.length || filled === target.length; ) {
      const copied = chunk.copy(target, filled, at)
      at += copied
      filled += copied
      if (filled < target.length) return
      filled = 0
      if (target === header) {
        const length = header.readUInt32LE()
        if (length > maxBytes) throw new Error(`a message has ${length} bytes; the limit is ${maxBytes}`)
        target = Buffer.allocUnsafe(length)
      } else {
        const body = target
        target = header
        onMessage(deserialize(body))
      }
    }
  }
  const onData = (chunk: Buffer): void => {
    try {
      read(chunk)
    } catch (error) {
      pipe.off('data', onData)
      onError(error)
    }
  }
  pipe.on('data', onData)
}
