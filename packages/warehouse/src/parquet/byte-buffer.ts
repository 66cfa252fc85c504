// The bytes of a page while it is encoded. The buffer is reused for the next page, so that not every page allocates one.

/** A buffer larger than this is not kept for the next page. */
const KEPT_BYTES = 4 * 1024 * 1024

export class ByteBuffer {
  bytes = Buffer.allocUnsafe(64 * 1024)
  length = 0

  clear(): void {
    this.length = 0
    if (this.bytes.length > KEPT_BYTES) this.bytes = Buffer.allocUnsafe(64 * 1024)
  }

  /** What was written. It is overwritten by the next page. */
  content(): Uint8Array {
    return this.bytes.subarray(0, this.length)
  }

  ensure(more: number): void {
    if (this.length + more <= this.bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.bytes.length * 2, this.length + more))
    this.bytes.copy(larger, 0, 0, this.length)
    this.bytes = larger
  }

  /** Adds a text in UTF-8, preceded by its length in bytes. */
  addText(text: string): void {
    // A UTF-16 code unit has at most three bytes in UTF-8.
    this.ensure(4 + text.length * 3)
    const size = this.bytes.write(text, this.length + 4)
    this.bytes.writeUInt32LE(size, this.length)
    this.length += 4 + size
  }

  addDouble(value: number): void {
    this.ensure(8)
    this.bytes.writeDoubleLE(value, this.length)
    this.length += 8
  }

  /** Adds `high * 2^32 + low`. `high` is signed, `low` is not. */
  addInt64(high: number, low: number): void {
    this.ensure(8)
    this.bytes.writeUInt32LE(low, this.length)
    this.bytes.writeInt32LE(high, this.length + 4)
    this.length += 8
  }

  /** Adds numbers of `width` bits in Parquet's "RLE/bit-packing hybrid": runs of the same number are stored once with their length, the rest is packed. */
  addHybrid(values: Uint8Array | Uint32Array, width: number): void {
    const count = values.length
    // This includes the headers of the runs.
    this.ensure(16 + Math.ceil((count + 8) / 8) * (width + 6))
    let packedFrom = 0
    let groups = 0
    for (let at = 0; at < count; ) {
      const value = values[at] as number
      let end = at + 1
      while (end < count && values[end] === value) end++
      if (end - at >= 8) {
        this.#addPacked(values, packedFrom, groups, width)
        groups = 0
        this.#addVarInt((end - at) * 2)
        for (let bits = 0; bits < width; bits += 8) this.bytes[this.length++] = (value >>> bits) & 0xff
        at = end
      } else {
        if (groups === 0) packedFrom = at
        groups++
        at += 8
      }
    }
    this.#addPacked(values, packedFrom, groups, width)
  }

  /** Adds the same, preceded by its size in bytes. */
  addSized(values: Uint8Array, width: number): void {
    const from = this.length
    this.ensure(4)
    this.length += 4
    this.addHybrid(values, width)
    this.bytes.writeUInt32LE(this.length - from - 4, from)
  }

  /** Adds groups of eight numbers. The last group is filled up with zeros. */
  #addPacked(values: Uint8Array | Uint32Array, from: number, groups: number, width: number): void {
    if (groups === 0) return
    this.#addVarInt(groups * 2 + 1)
    const { bytes } = this
    let pending = 0
    let bits = 0
    let { length } = this
    for (let at = from; at < from + groups * 8; at++) {
      pending |= (at < values.length ? (values[at] as number) : 0) << bits
      bits += width
      while (bits >= 8) {
        bytes[length++] = pending & 0xff
        pending >>>= 8
        bits -= 8
      }
    }
    this.length = length
  }

  #addVarInt(value: number): void {
    let rest = value
    while (rest > 0x7f) {
      this.bytes[this.length++] = (rest & 0x7f) | 0x80
      rest >>>= 7
    }
    this.bytes[this.length++] = rest
  }
}
