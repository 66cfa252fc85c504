// Preloaded into the service (--import), in every thread of it: shifts the wall clock by the number of milliseconds in a file, as soon as the
// file changes, as if somebody had set the machine's clock. The monotonic clock is not affected. The query of the URL names the file, because
// some threads see no environment variables.

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
