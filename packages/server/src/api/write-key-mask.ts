// Write keys as viewers see them. A write key lets its holder send messages, and viewers may only read, so they get the last characters only: enough
// to tell keys apart. The mark cannot be part of a write key, so a masked key is never taken for one.

const MARK = '…'
const SHOWN = 4

export function maskedWriteKey(key: string): string {
  return key.length < 3 * SHOWN ? MARK : `${MARK}${key.slice(-SHOWN)}`
}

export function isMaskedWriteKey(key: string): boolean {
  return key.startsWith(MARK)
}
