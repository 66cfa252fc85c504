// Encodes arrays in PostgreSQL's binary wire format. A group of batches is sent as a few arrays; as text, the bodies would be twice
// their size and take longer to encode than to store. node-postgres sends a Buffer as it is, so each result is a complete parameter.

import { Buffer } from 'node:buffer'

const HEADER = 20

/** How a value that is not null is written. */
interface Encoding<Value> {
  /** The type's number in the server's catalogue. */
  oid: number
  bytesOf: (value: Value) => number
  /** Returns the position after the value. */
  write: (buffer: Buffer, value: Value, at: number) => number
}

function encoded<Value>({ oid, bytesOf, write }: Encoding<Value>, values: readonly (Value | null)[]): Buffer {
  let bytes = HEADER
  let hasNulls = false
  for (const value of values) {
    if (value === null) hasNulls = true
    bytes += 4 + (value === null ? 0 : bytesOf(value))
  }
  const buffer = Buffer.allocUnsafe(bytes)
  buffer.writeInt32BE(values.length === 0 ? 0 : 1, 0)
  buffer.writeInt32BE(hasNulls ? 1 : 0, 4)
  buffer.writeInt32BE(oid, 8)
  // An empty array has no dimensions.
  if (values.length === 0) return buffer.subarray(0, 12)
  buffer.writeInt32BE(values.length, 12)
  buffer.writeInt32BE(1, 16)
  let at = HEADER
  for (const value of values) {
    const end = value === null ? at + 4 : write(buffer, value, at + 4)
    buffer.writeInt32BE(value === null ? -1 : end - at - 4, at)
    at = end
  }
  return buffer
}

const INT8: Encoding<string | number> = {
  oid: 20,
  bytesOf: () => 8,
  write: (buffer, value, at) => buffer.writeBigInt64BE(BigInt(value), at),
}
const INT4: Encoding<number> = { oid: 23, bytesOf: () => 4, write: (buffer, value, at) => buffer.writeInt32BE(value, at) }
const BOOL: Encoding<boolean> = { oid: 16, bytesOf: () => 1, write: (buffer, value, at) => buffer.writeUInt8(value ? 1 : 0, at) }
const TEXT: Encoding<string> = {
  oid: 25,
  bytesOf: (value) => Buffer.byteLength(value),
  write: (buffer, value, at) => at + buffer.write(value, at),
}
const BYTEA: Encoding<Uint8Array> = {
  oid: 17,
  bytesOf: ({ length }) => length,
  write(buffer, value, at) {
    buffer.set(value, at)
    return at + value.length
  },
}
const UUID = { ...BYTEA, oid: 2950 }

export const int8s = (values: readonly (string | number | null)[]): Buffer => encoded(INT8, values)
export const int4s = (values: readonly number[]): Buffer => encoded(INT4, values)
export const bools = (values: readonly boolean[]): Buffer => encoded(BOOL, values)
export const texts = (values: readonly (string | null)[]): Buffer => encoded(TEXT, values)
export const byteas = (values: readonly Uint8Array[]): Buffer => encoded(BYTEA, values)
/** Each value has 16 bytes or is null. */
export const uuids = (values: readonly (Uint8Array | null)[]): Buffer => encoded(UUID, values)
