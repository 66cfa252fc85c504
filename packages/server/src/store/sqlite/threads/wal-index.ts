// The number of pages in the write-ahead log, read from its index, the -shm file. SQLite reports it only through its C API, and the size of the log file
// does not show it, because after a checkpoint the log is overwritten from its beginning.
// https://sqlite.org/walformat.html, "WAL-Index Header": mxFrame, 4 bytes at offset 16, in the machine's byte order.

import { closeSync, openSync, readSync } from 'node:fs'
import { endianness } from 'node:os'

const MX_FRAME_AT = 16

export function openWalIndex(path: string): { frames(): number; close(): void } {
  const file = openSync(`${path}-shm`, 'r')
  const buffer = Buffer.alloc(4)
  const little = endianness() === 'LE'
  return {
    frames() {
      readSync(file, buffer, 0, 4, MX_FRAME_AT)
      return little ? buffer.readUInt32LE(0) : buffer.readUInt32BE(0)
    },
    close: () => closeSync(file),
  }
}
