// Encodes arrays in PostgreSQL's binary wire format. A group of batches is sent as a few arrays; as text, the bodies would be twice
// their size and take longer to encode than to store. node-postgres sends a Buffer as it is, so each result is a complete parameter.

import { Buffer } from 'node:buffer'

const OID = { bool: 16, bytea: 17, int8: 20, int4: 23, text: 25, uuid: 2950 }
const HEADER = 20

function header(oid: number, count: number, bytes: number, hasNulls: boolean): Buffer {
  const buffer = Buffer.allocUnsafe(HEADER + bytes)
  buffer.writeInt32BE(count === 0 ? 0 : 1, 0)
  buffer.writeInt32BE(hasNulls ? 1 : 0, 4)
  buffer.writeInt32BE(oid, 8)
  buffer.writeInt32BE(count, 12)
  buffer.writeInt32BE(1, 16)
  // An empty array has no dimensions.
  return count === 0 ? buffer.subarray(0, 12) : buffer
}

export function int8s(values: readonly (string | number | null)[]): Buffer {
  const nulls = values.reduce((sum: number, value) => sum + (value === null ? 1 : 0), 0)
  const buffer = header(OID.int8, values.length, values.length * 12 - nulls * 8, nulls > 0)
  let at = HEADER
  for (const value of values) {
    if (value === null) {
      at = buffer.writeInt32BE(-1, at)
      continue
    }
    at = buffer.writeInt32BE(8, at)
    at = buffer.writeBigInt64BE(BigInt(value), at)
  }
  return buffer
}

export function int4s(values: readonly number[]): Buffer {
  const buffer = header(OID.int4, values.length, values.length * 8, false)
  let at = HEADER
  for (const value of values) {
    at = buffer.writeInt32BE(4, at)
    at = buffer.writeInt32BE(value, at)
  }
  return buffer
}

export function bools(values: readonly boolean[]): Buffer {
  const buffer = header(OID.bool, values.length, values.length * 5, false)
  let at = HEADER
  for (const value of values) {
    at = buffer.writeInt32BE(1, at)
    at = buffer.writeUInt8(value ? 1 : 0, at)
  }
  return buffer
}

export function texts(values: readonly (string | null)[]): Buffer {
  let bytes = 0
  let hasNulls = false
  for (const value of values) {
    if (value === null) hasNulls = true
    bytes += 4 + (value === null ? 0 : Buffer.byteLength(value))
  }
  const buffer = header(OID.text, values.length, bytes, hasNulls)
  let at = HEADER
  for (const value of values) {
    if (value === null) {
      at = buffer.writeInt32BE(-1, at)
      continue
    }
    const length = buffer.write(value, at + 4)
    at = buffer.writeInt32BE(length, at) + length
  }
  return buffer
}

export function byteas(values: readonly Uint8Array[]): Buffer {
  const bytes = values.reduce((sum, value) => sum + 4 + value.length, 0)
  const buffer = header(OID.bytea, values.length, bytes, false)
  let at = HEADER
  for (const value of values) {
    at = buffer.writeInt32BE(value.length, at)
    buffer.set(value, at)
    at += value.length
  }
  return buffer
}

/** Each value has 16 bytes or is null. */
export function uuids(values: readonly (Uint8Array | null)[]): Buffer {
  const nulls = values.reduce((sum: number, value) => sum + (value === null ? 1 : 0), 0)
  const buffer = header(OID.uuid, values.length, values.length * 20 - nulls * 16, nulls > 0)
  let at = HEADER
  for (const value of values) {
    if (value === null) {
      at = buffer.writeInt32BE(-1, at)
      continue
    }
    at = buffer.writeInt32BE(16, at)
    buffer.set(value, at)
    at += 16
  }
  return buffer
}
