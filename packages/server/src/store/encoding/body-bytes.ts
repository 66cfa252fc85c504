// The body column of a segment: compressed where that pays, which is for large batches. Which of the two a body is tells its
// first byte: a zstd frame begins with 0x28, which no JSON does.

import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'

/** Below, it costs more processor time than the writing it saves; above, as imports send them, the file would be several times the size. */
const LEAST_BYTES = 32 * 1024
/** The fast levels are negative. */
const OPTIONS = { params: { [constants.ZSTD_c_compressionLevel]: -3 } }
const ZSTD_FIRST = 0x28

export function packBody(bytes: Uint8Array): Uint8Array {
  if (bytes.length < LEAST_BYTES) return bytes
  const packed = zstdCompressSync(bytes, OPTIONS)
  return packed.length < bytes.length ? packed : bytes
}

/** A damaged body is returned as it is stored, and is then not JSON; readStoredBody detects that. */
export function unpackBody(stored: Uint8Array): Uint8Array {
  if (stored[0] !== ZSTD_FIRST) return stored
  try {
    return zstdDecompressSync(stored)
  } catch {
    return stored
  }
}
