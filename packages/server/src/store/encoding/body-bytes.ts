// The body column of a segment. Large bodies are compressed with zstd. The first byte shows whether a body is compressed: a zstd frame begins
// with 0x28, and no JSON document does.

import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'

/** Compressing smaller bodies takes more CPU time than the writing it saves. Without compressing larger ones, such as those of imports, the file would be several times the size. */
const MIN_COMPRESSED_BYTES = 32 * 1024
/** zstd's fast levels are negative. */
const OPTIONS = { params: { [constants.ZSTD_c_compressionLevel]: -3 } }
const ZSTD_FIRST_BYTE = 0x28

export function packBody(bytes: Uint8Array): Uint8Array {
  if (bytes.length < MIN_COMPRESSED_BYTES) return bytes
  const packed = zstdCompressSync(bytes, OPTIONS)
  return packed.length < bytes.length ? packed : bytes
}

/** A damaged body is returned as it is stored, and is then not JSON; readStoredBody detects that. */
export function unpackBody(stored: Uint8Array): Uint8Array {
  if (stored[0] !== ZSTD_FIRST_BYTE) return stored
  try {
    return zstdDecompressSync(stored)
  } catch {
    return stored
  }
}
