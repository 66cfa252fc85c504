// Preloaded into the service (--import), in every thread of it: its wall clock goes wrong by as many milliseconds as a
// file says, from the moment it says so, as when somebody sets the machine's clock. The monotonic clock does not notice.
// The query of its URL names the file, because some threads see no environment variables.

import { readFileSync } from 'node:fs'

const RealDate = Date
const file = new URL(import.meta.url).searchParams.get('file') ?? ''
const offsetMs = (): number => Number(readFileSync(file, 'utf8'))

class OffsetDate extends RealDate {
  constructor(...parts: unknown[]) {
    if (parts.length === 0) super(RealDate.now() + offsetMs())
    else super(...(parts as [number]))
  }

  static override now(): number {
    return RealDate.now() + offsetMs()
  }
}

globalThis.Date = OffsetDate as DateConstructor
