// A connection between two threads, as a stream over a message port. A chunk counts as written when the other side has room for the next one, so
// neither side holds more than its buffers. When one side is destroyed, or its thread ends, so is the other.

import { Duplex } from 'node:stream'
import type { MessagePort } from 'node:worker_threads'

/** What a socket says about the other end of its connection. */
export interface Peer {
  remoteAddress: string | undefined
  remoteFamily: string | undefined
  remotePort: number | undefined
}

/** A chunk; null at the end of the stream; true if there is room for another chunk. */
type Part = Uint8Array | null | true

export class PortStream extends Duplex {
  readonly remoteAddress: string | undefined
  readonly remoteFamily: string | undefined
  readonly remotePort: number | undefined
  bytesWritten = 0
  readonly #port: MessagePort
  #onRoom: (() => void) | null = null
  /** Whether the other side waits to be told that there is room. */
  #isAsked = false

  constructor(port: MessagePort, peer: Partial<Peer> = {}) {
    super({ allowHalfOpen: true })
    this.#port = port
    this.remoteAddress = peer.remoteAddress
    this.remoteFamily = peer.remoteFamily
    this.remotePort = peer.remotePort
    port.on('message', (part: Part) => this.#receive(part))
    port.on('close', () => this.destroy())
  }

  override _read(): void {
    this.#ask()
  }

  #ask(): void {
    if (!this.#isAsked) return
    this.#isAsked = false
    this.#port.postMessage(true, [])
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, written: () => void): void {
    // A copy: a chunk may be a part of a buffer that is used for other things too.
    this.#send(new Uint8Array(chunk), written)
  }

  /** What was written together arrives in one piece. */
  override _writev(chunks: { chunk: Buffer }[], written: () => void): void {
    this.#send(joined(chunks.map(({ chunk }) => chunk)), written)
  }

  override _final(ended: () => void): void {
    this.#port.postMessage(null, [])
    ended()
  }

  override _destroy(error: Error | null, destroyed: (error: Error | null) => void): void {
    this.#port.close()
    destroyed(error)
  }

  #send(bytes: Uint8Array<ArrayBuffer>, written: () => void): void {
    this.#onRoom = written
    this.bytesWritten += bytes.length
    this.#port.postMessage(bytes, [bytes.buffer])
  }

  #receive(part: Part): void {
    if (part === true) {
      const written = this.#onRoom
      this.#onRoom = null
      written?.()
    } else if (part === null) this.push(null)
    else {
      this.#isAsked = true
      if (this.push(Buffer.from(part.buffer, part.byteOffset, part.byteLength))) this.#ask()
    }
  }
}

/** In a buffer of its own, which can be transferred. */
export function joined(chunks: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  let length = 0
  for (const chunk of chunks) length += chunk.length
  const bytes = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.length
  }
  return bytes
}
