// A packet is one message between the main thread and a sender: many commands or outcomes, written one after the other. Numbers and the
// bytes of stored messages go into one buffer, which is transferred; the few other values are copied. So for each message only
// its bytes are copied, once. Buffers are reused: each is sent to the other side and returned.

export interface Packet {
  /** Numbers first, then bytes. */
  buffer: ArrayBuffer
  numbers: number
  values: readonly unknown[]
  /** Buffers of packets that were read, to be filled again. */
  spare: ArrayBuffer[]
}

/** A packet, what is to be transferred with it, and how much of its buffer is used. */
export interface TakenPacket {
  packet: Packet
  transfer: ArrayBuffer[]
  usedBytes: number
}

const MIN_BYTES = 64 * 1024
/** Further spare buffers, and larger ones, are left to the garbage collector. A packet can be as large as all messages in memory. */
const MAX_SPARE = 4
const MAX_SPARE_BYTES = 4 * 1024 * 1024
const NUMBER_BYTES = Float64Array.BYTES_PER_ELEMENT

export class PacketWriter {
  #numbers = new Float64Array(1_024)
  #count = 0
  #values: unknown[] = []
  #chunks: Uint8Array[] = []
  #bytes = 0
  readonly #spare: ArrayBuffer[] = []
  #toReturn: ArrayBuffer[] = []

  get isEmpty(): boolean {
    return this.#count === 0
  }

  number(value: number): void {
    if (this.#count === this.#numbers.length) {
      const larger = new Float64Array(this.#numbers.length * 2)
      larger.set(this.#numbers)
      this.#numbers = larger
    }
    this.#numbers[this.#count++] = value
  }

  /** Null is written as NaN. */
  nullable(value: number | null): void {
    this.number(value ?? Number.NaN)
  }

  value(value: unknown): void {
    this.#values.push(value)
  }

  /** The bytes are read when the packet is taken, so they must not change until then. */
  bytes(chunk: Uint8Array): void {
    this.number(this.#bytes)
    this.number(chunk.length)
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
  }

  /** Takes a buffer that came from the other side, to send it back with the next packet. */
  giveBack(buffer: ArrayBuffer): void {
    if (this.#toReturn.length < MAX_SPARE && buffer.byteLength <= MAX_SPARE_BYTES) this.#toReturn.push(buffer)
  }

  /** Keeps buffers that came back. */
  keepSpare(buffers: readonly ArrayBuffer[]): void {
    for (const buffer of buffers) if (this.#spare.length < MAX_SPARE) this.#spare.push(buffer)
  }

  /** The writer is empty afterwards. */
  take(): TakenPacket {
    const count = this.#count
    const bytesAt = count * NUMBER_BYTES
    const buffer = this.#bufferFor(bytesAt + this.#bytes)
    new Float64Array(buffer, 0, count).set(this.#numbers.subarray(0, count))
    const all = new Uint8Array(buffer)
    let at = bytesAt
    for (const chunk of this.#chunks) {
      all.set(chunk, at)
      at += chunk.length
    }
    const packet: Packet = { buffer, numbers: count, values: this.#values, spare: this.#toReturn }
    this.#count = 0
    this.#bytes = 0
    this.#chunks = []
    this.#values = []
    this.#toReturn = []
    return { packet, transfer: [buffer, ...packet.spare], usedBytes: at }
  }

  #bufferFor(bytes: number): ArrayBuffer {
    const spare = this.#spare.pop()
    if (spare !== undefined && spare.byteLength >= bytes) return spare
    return new ArrayBuffer(2 ** Math.ceil(Math.log2(Math.max(bytes, MIN_BYTES))))
  }
}

/** Reads a packet in the order in which it was written. */
export class PacketReader {
  readonly #numbers: Float64Array
  readonly #packet: Packet
  #at = 0
  #valueAt = 0

  constructor(packet: Packet) {
    this.#packet = packet
    this.#numbers = new Float64Array(packet.buffer, 0, packet.numbers)
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#packet.numbers
  }

  number(): number {
    return this.#numbers[this.#at++] as number
  }

  nullable(): number | null {
    const value = this.number()
    return Number.isNaN(value) ? null : value
  }

  value(): unknown {
    return this.#packet.values[this.#valueAt++]
  }

  /** A view of the packet's buffer: it must not be used after the buffer was given back. */
  bytes(): Uint8Array {
    const at = this.#packet.numbers * NUMBER_BYTES + this.number()
    return new Uint8Array(this.#packet.buffer, at, this.number())
  }
}
