// Finds what JSON.parse does not report: the number of bytes of each item of a batch, and how deeply it is nested. It can also parse only some of
// the items. It makes one pass over the raw bytes of a body that is known to be valid JSON, without recursion, because the nesting may be deep.
// It takes a third to a half of the time of JSON.parse, so small and flat bodies, which are the most common, are not scanned.

/**
 * JSON.parse accepts any depth, but JSON.stringify, which writes the outbound message, overflows the stack at a few thousand
 * levels. The message itself is level 1.
 */
export const MAX_DEPTH = 500

export interface BatchScan {
  /** The first item that is larger than the limit, and the position at which it starts. */
  oversized: { index: number; start: number } | null
  /** Indexes of the items that are nested too deeply. */
  deepItems: ReadonlySet<number> | null
  /** Whether a field other than the items is nested too deeply. */
  deepEnvelope: boolean
  /** The bytes of each item. */
  itemBytes: readonly number[]
}

const QUOTE = 0x22
const COMMA = 0x2c
const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** Returns false if nothing in the text is nested too deeply, and true if something may be. Takes about 15 ns per bracket. */
export function mayBeDeep(text: string): boolean {
  if (text.length < 2 * MAX_DEPTH) return false
  let brackets = 0
  for (let at = text.indexOf('{'); at !== -1; at = text.indexOf('{', at + 1)) if (++brackets > MAX_DEPTH) return true
  for (let at = text.indexOf('['); at !== -1; at = text.indexOf('[', at + 1)) if (++brackets > MAX_DEPTH) return true
  return false
}

export function isTooDeep(json: Uint8Array): boolean {
  skipValue(json, skipSpace(json, 0))
  return deepest > MAX_DEPTH
}

/** Scans a valid JSON object whose `batch` is an array. If a key occurs twice, the last one counts, as in JSON.parse. */
export function scanBatch(json: Uint8Array, maxItemBytes: number): BatchScan {
  let scan: BatchScan = { oversized: null, deepItems: null, deepEnvelope: false, itemBytes: [] }
  let deepEnvelope = false
  eachField(json, (at, isBatch) => {
    if (isBatch) {
      scan = scanItems(json, at, maxItemBytes)
      return listEnd
    }
    const end = skipValue(json, at)
    deepEnvelope ||= deepest > MAX_DEPTH
    return end
  })
  return { ...scan, deepEnvelope }
}

/** Parses such an object, but only these items of its batch. The others are null. */
export function parseBatchItems(json: Uint8Array, wanted: ReadonlySet<number>): unknown {
  const text = (start: number, end?: number): string =>
    Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString('utf8', start, end)
  let batch: unknown[] | undefined
  // The body without its items, which may be most of it.
  let envelope = ''
  let copied = 0
  eachField(json, (at, isBatch) => {
    if (!isBatch) return skipValue(json, at)
    const items: unknown[] = []
    eachItem(json, at, (start, end) => items.push(wanted.has(items.length) ? JSON.parse(text(start, end)) : null))
    batch = items
    envelope += `${text(copied, at)}[]`
    copied = listEnd
    return listEnd
  })
  const parsed = JSON.parse(envelope + text(copied)) as object
  return batch === undefined ? parsed : { ...parsed, batch }
}

/** Calls `field` with the start of each value of the object, and whether it is the array `batch`; `field` returns the end of the value. */
function eachField(json: Uint8Array, field: (start: number, isBatch: boolean) => number): void {
  let at = skipSpace(json, skipSpace(json, 0) + 1)
  while (json[at] === QUOTE) {
    const keyStart = at
    const keyEnd = skipString(json, at)
    at = skipSpace(json, skipSpace(json, keyEnd) + 1)
    at = skipSpace(json, field(at, json[at] === OPEN_LIST && isBatchKey(json, keyStart, keyEnd)))
    if (json[at] !== COMMA) break
    at = skipSpace(json, at + 1)
  }
}

// Second results of the functions below, which return the end of a value. Returning both would allocate an object for each value.
let deepest = 0
let listEnd = 0

function scanItems(json: Uint8Array, listStart: number, maxItemBytes: number): BatchScan {
  let oversized: BatchScan['oversized'] = null
  let deepItems: Set<number> | null = null
  const itemBytes: number[] = []
  eachItem(json, listStart, (start, end) => {
    const index = itemBytes.push(end - start) - 1
    if (end - start > maxItemBytes) oversized ??= { index, start }
    if (deepest > MAX_DEPTH) deepItems = (deepItems ?? new Set()).add(index)
  })
  return { oversized, deepItems, deepEnvelope: false, itemBytes }
}

/** Sets `listEnd`. While `item` runs, `deepest` is the depth of that item. */
function eachItem(json: Uint8Array, listStart: number, item: (start: number, end: number) => void): void {
  let at = skipSpace(json, listStart + 1)
  while (at < json.length && json[at] !== CLOSE_LIST) {
    const end = skipValue(json, at)
    item(at, end)
    at = skipSpace(json, end)
    if (json[at] !== COMMA) break
    at = skipSpace(json, at + 1)
  }
  listEnd = at + 1
}

/** Returns the position after the value that starts here. */
function skipValue(json: Uint8Array, start: number): number {
  let at = start
  let depth = 0
  deepest = 0
  for (; at < json.length; at++) {
    const byte = json[at]
    if (byte === QUOTE) {
      at = skipString(json, at)
      if (depth === 0) return at
      at--
    } else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
      depth++
      if (depth > deepest) deepest = depth
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
      // At depth 0, this bracket closes the array or object that contains the value, which is a number or a literal.
      if (depth === 0) return at
      depth--
      if (depth === 0) return at + 1
    } else if (depth === 0 && (byte === COMMA || byte === undefined || byte <= 0x20)) return at
  }
  return at
}

function skipString(json: Uint8Array, start: number): number {
  let at = start + 1
  while (at < json.length && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1
  return at + 1
}

function skipSpace(json: Uint8Array, start: number): number {
  let at = start
  while (at < json.length && (json[at] as number) <= 0x20) at++
  return at
}

/** Compares the key as JSON.parse would read it: `"b\u0061tch"` is the same key. */
function isBatchKey(json: Uint8Array, start: number, end: number): boolean {
  const key = Buffer.from(json.buffer, json.byteOffset + start, end - start)
  return key.equals(BATCH_KEY) || (key.includes(BACKSLASH) && JSON.parse(key.toString('utf8')) === 'batch')
}

const BATCH_KEY = Buffer.from('"batch"')
