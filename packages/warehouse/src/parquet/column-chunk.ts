// The values of one column in one row group. `hyparquet-writer` writes the rest of the file. Its own code for columns took most of the time of a load,
// because it handles every type, nesting and encoding. The rows of a lake have five types and no nesting, and nearly all columns have text or 8-byte values.

import { zstdCompressSync } from 'node:zlib'
import type { ColumnMetaData, OffsetIndex } from 'hyparquet'
import type { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import { microseconds } from '../schema/values.ts'
import type { ColumnCells, ColumnType } from '../warehouse.ts'
import { BloomFilter } from './bloom-filter.ts'
import { ByteBuffer } from './byte-buffer.ts'

/** A boolean is 0 or 1. */
type Value = string | number
export type WrittenChunk = ParquetWriter['pendingIndexes'][number]

/** The encodings with their numbers in the format. */
const ENCODINGS = { PLAIN: 0, RLE: 3, RLE_DICTIONARY: 8 } as const
type Encoding = keyof typeof ENCODINGS

const PAGE_BYTES = 1024 * 1024
/** Pages of up to this size are not compressed: it takes more time than it is worth. */
const SMALL_BYTES = 255
/** Smaller columns get no dictionary, because it is a second page. */
const DICTIONARY_FROM_BYTES = 256
const SAMPLE = 1_000

const NO_BYTES = new Uint8Array()

const page = new ByteBuffer()
const levels = new ByteBuffer()

interface Chunk {
  writer: ByteWriter
  type: ColumnType
  /** 1 where a row has a value. */
  isThere: Uint8Array
  values: readonly Value[]
  filter: BloomFilter | null
  uncompressed: number
  encodings: Encoding[]
  pages: OffsetIndex['page_locations']
  dictionaryOffset: bigint | undefined
  dataOffset: bigint
}

/** Writes the cells of the rows that are selected. */
export function writeChunk(
  writer: ByteWriter,
  { name, type }: { name: string; type: ColumnType },
  cells: ColumnCells,
  selected: Uint32Array,
  hasFilter: boolean,
): WrittenChunk {
  const { isThere, codes } = picked(cells, selected)
  const distinct = type === 'text' && cells.isDistinct ? distinctTexts(codes, cells.texts) : null
  const values: readonly Value[] = type === 'text' && distinct === null ? codes.map((code) => cells.texts[code] as string) : codes
  const dictionary = distinct ?? (type === 'boolean' || (type === 'text' && cells.isDistinct) ? null : dictionaryOf(values, type))
  const filter = hasFilter && type === 'text' ? new BloomFilter() : null
  const start = writer.offset
  const chunk: Chunk = {
    writer,
    type,
    isThere,
    values,
    filter,
    uncompressed: 0,
    encodings: [],
    pages: [],
    dictionaryOffset: undefined,
    dataOffset: 0n,
  }
  const bounds = dictionary === null ? writePlain(chunk) : writeDictionary(chunk, dictionary)
  const encoding = dictionary !== null ? 'RLE_DICTIONARY' : type === 'boolean' ? 'RLE' : 'PLAIN'
  const meta: ColumnMetaData = {
    type: PHYSICAL[type],
    encodings: chunk.encodings,
    path_in_schema: [name],
    codec: 'ZSTD',
    num_values: BigInt(selected.length),
    total_compressed_size: BigInt(writer.offset - start),
    total_uncompressed_size: BigInt(chunk.uncompressed),
    data_page_offset: chunk.dataOffset,
    ...(chunk.dictionaryOffset === undefined ? {} : { dictionary_page_offset: chunk.dictionaryOffset }),
    statistics: { ...bounds, null_count: BigInt(selected.length - codes.length) },
    encoding_stats: [
      ...(dictionary === null ? [] : [{ page_type: 'DICTIONARY_PAGE' as const, encoding: 'PLAIN' as const, count: 1 }]),
      { page_type: 'DATA_PAGE_V2', encoding, count: chunk.pages.length },
    ],
  }
  const blocks = filter?.blocks()
  return {
    chunk: { meta_data: meta, file_offset: BigInt(start) },
    ...(chunk.pages.length > 1 ? { offsetIndex: { page_locations: chunk.pages } } : {}),
    ...(blocks === undefined ? {} : { bloomFilter: blocks }),
  }
}

const PHYSICAL = { boolean: 'BOOLEAN', bigint: 'INT64', double: 'DOUBLE', timestamp: 'INT64', text: 'BYTE_ARRAY' } as const

interface Bounds {
  min_value?: string | number | bigint | boolean
  max_value?: string | number | bigint | boolean
}

interface Dictionary {
  entries: Value[]
  /** The index of the entry of each value. */
  indexes: Uint32Array
}

function picked({ codes: all, type }: ColumnCells, selected: Uint32Array): { isThere: Uint8Array; codes: number[] } {
  const isThere = new Uint8Array(selected.length)
  const codes: number[] = []
  const least = type === 'text' || type === 'boolean' ? 0 : Number.NEGATIVE_INFINITY
  for (let at = 0; at < selected.length; at++) {
    const row = selected[at] as number
    // NaN, which stands for no number, is not at least anything.
    if (row >= all.length || !((all[row] as number) >= least)) continue
    isThere[at] = 1
    codes.push(all[row] as number)
  }
  return { isThere, codes }
}

/** Null if a dictionary would not halve the bytes. The texts are all different. */
function distinctTexts(codes: readonly number[], texts: readonly string[]): Dictionary | null {
  const places = new Int32Array(texts.length).fill(-1)
  const entries: string[] = []
  const indexes = new Uint32Array(codes.length)
  let total = 0
  let bytes = 0
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] as number
    const text = texts[code] as string
    total += text.length + 4
    let place = places[code] as number
    if (place === -1) {
      bytes += text.length + 4
      place = entries.push(text) - 1
      places[code] = place
    }
    indexes[at] = place
  }
  return total < DICTIONARY_FROM_BYTES || bytes > total / 2 ? null : { entries, indexes }
}

/** Null if a dictionary would not halve the bytes. */
function dictionaryOf(values: readonly Value[], type: ColumnType): Dictionary | null {
  const sizeOf = (value: Value): number => (type === 'text' ? (value as string).length + 4 : 8)
  let total = 0
  for (const value of values) total += sizeOf(value)
  if (total < DICTIONARY_FROM_BYTES || !isRepetitive(values)) return null
  const places = new Map<Value, number>()
  const entries: Value[] = []
  const indexes = new Uint32Array(values.length)
  let bytes = 0
  for (let at = 0; at < values.length; at++) {
    const value = values[at] as Value
    // A key of a Map: -0 would become 0.
    if (Object.is(value, -0)) return null
    let place = places.get(value)
    if (place === undefined) {
      bytes += sizeOf(value)
      if (bytes > total / 2) return null
      place = entries.push(value) - 1
      places.set(value, place)
    }
    indexes[at] = place
  }
  return { entries, indexes }
}

/** Judges by a sample from the whole column. */
function isRepetitive(values: readonly Value[]): boolean {
  if (values.length <= SAMPLE) return true
  const found = new Set<Value>()
  for (let sample = 0; sample < SAMPLE; sample++) found.add(values[Math.floor((sample * (values.length - 1)) / (SAMPLE - 1))] as Value)
  return found.size < SAMPLE * 0.95
}

function writeDictionary(chunk: Chunk, { entries, indexes }: Dictionary): Bounds {
  const { writer, type } = chunk
  page.clear()
  const bounds = type === 'text' ? addTexts(entries as string[], chunk.filter) : addNumbers(entries as number[], type)
  chunk.dictionaryOffset = BigInt(writer.offset)
  const bytes = compressed(page.content())
  const headerAt = writer.offset
  writeHeader(writer, DICTIONARY_PAGE, page.length, bytes.length, [entries.length, ENCODINGS.PLAIN])
  chunk.uncompressed += writer.offset - headerAt + page.length
  writer.appendBytes(bytes)
  chunk.encodings.push('PLAIN')
  page.clear()
  const width = 32 - Math.clz32(entries.length - 1)
  page.ensure(1)
  page.bytes[page.length++] = width
  page.addHybrid(indexes, width)
  writePage(chunk, 'RLE_DICTIONARY', 0, chunk.isThere.length)
  return bounds
}

function writePlain(chunk: Chunk): Bounds {
  const { type, values } = chunk
  page.clear()
  if (type === 'text') return writeTexts(chunk)
  const isBoolean = type === 'boolean'
  const bounds = isBoolean ? addBooleans(values as number[]) : addNumbers(values as number[], type)
  writePage(chunk, isBoolean ? 'RLE' : 'PLAIN', 0, chunk.isThere.length)
  return bounds
}

/** Text columns are the only ones that can be larger than a page. */
function writeTexts(chunk: Chunk): Bounds {
  const { isThere, values, filter } = chunk
  const bounds = new TextBounds()
  let from = 0
  let next = 0
  for (let row = 0; row < isThere.length; row++) {
    if (isThere[row] === 0) continue
    const text = values[next++] as string
    if (page.length > 0 && page.length + text.length > PAGE_BYTES) {
      bounds.keep()
      writePage(chunk, 'PLAIN', from, row)
      from = row
      page.clear()
    }
    addText(text, bounds, filter)
  }
  bounds.keep()
  writePage(chunk, 'PLAIN', from, isThere.length)
  return bounds.result()
}

function addTexts(texts: readonly string[], filter: BloomFilter | null): Bounds {
  const bounds = new TextBounds()
  for (const text of texts) addText(text, bounds, filter)
  bounds.keep()
  return bounds.result()
}

function addText(text: string, bounds: TextBounds, filter: BloomFilter | null): void {
  const from = page.length + 4
  page.addText(text)
  bounds.add(page.bytes, from, page.length)
  filter?.add(page.bytes, from, page.length)
}

function addNumbers(numbers: readonly number[], type: ColumnType): Bounds {
  let [min, max] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const number of numbers) {
    if (number < min) min = number
    if (number > max) max = number
    if (type === 'double') page.addDouble(number)
    else if (type === 'timestamp') addMicroseconds(number)
    else addInteger(number)
  }
  if (min > max) return {}
  if (type === 'timestamp') return { min_value: microseconds(min), max_value: microseconds(max) }
  if (type === 'bigint') return { min_value: BigInt(min), max_value: BigInt(max) }
  // Readers treat the signs of a zero as equal.
  return { min_value: min === 0 ? -0 : min, max_value: max === 0 ? 0 : max }
}

const TWO_32 = 2 ** 32

function addInteger(integer: number): void {
  if (!Number.isSafeInteger(integer)) throw new TypeError(`${integer} is in a column of integers.`)
  const high = Math.floor(integer / TWO_32)
  page.addInt64(high, integer - high * TWO_32)
}

/** Adds the same number as `microseconds`, without BigInt. */
function addMicroseconds(ms: number): void {
  const whole = Math.floor(ms)
  if (!Number.isSafeInteger(whole)) throw new TypeError(`${ms} is in a column of times.`)
  const high = Math.floor(whole / TWO_32)
  const low = (whole - high * TWO_32) * 1_000 + Math.round((ms - whole) * 1_000)
  const carry = Math.floor(low / TWO_32)
  page.addInt64(high * 1_000 + carry, low - carry * TWO_32)
}

/** Adds runs of booleans, preceded by their size in bytes. */
function addBooleans(booleans: readonly number[]): Bounds {
  page.addSized(Uint8Array.from(booleans), 1)
  if (booleans.length === 0) return {}
  return { min_value: !booleans.includes(0), max_value: booleans.includes(1) }
}

/** The page has the values of the rows from `from` to `to`. */
function writePage(chunk: Chunk, encoding: Encoding, from: number, to: number): void {
  const { writer, isThere } = chunk
  const isThereInPage = isThere.subarray(from, to)
  let there = 0
  for (const one of isThereInPage) there += one
  levels.clear()
  levels.addHybrid(isThereInPage, 1)
  const bytes = compressed(page.content())
  const offset = writer.offset
  if (chunk.pages.length === 0) {
    chunk.dataOffset = BigInt(offset)
    chunk.encodings.push(encoding)
  }
  const values = [to - from, to - from - there, to - from, ENCODINGS[encoding], levels.length, 0]
  writeHeader(writer, DATA_PAGE_V2, levels.length + page.length, levels.length + bytes.length, values)
  chunk.uncompressed += writer.offset - offset + levels.length + page.length
  writer.appendBytes(levels.content())
  writer.appendBytes(bytes)
  chunk.pages.push({ offset: BigInt(offset), compressed_page_size: writer.offset - offset, first_row_index: BigInt(from) })
}

/** The kinds of pages, and the field of the header that is specific to the kind, with their numbers in the format. */
const DICTIONARY_PAGE = { kind: 2, field: 7 }
const DATA_PAGE_V2 = { kind: 3, field: 8 }

/**
 * Writes the compact protocol of Thrift: each field begins with its type and the difference between its number and that of the previous field, and a
 * structure ends with 0.
 */
function writeHeader(
  writer: ByteWriter,
  { kind, field }: { kind: number; field: number },
  size: number,
  compressedSize: number,
  values: readonly number[],
): void {
  const addIntegers = (integers: readonly number[]): void => {
    for (const integer of integers) {
      writer.appendUint8(0x15)
      writer.appendZigZag(integer)
    }
  }
  addIntegers([kind, size, compressedSize])
  writer.appendUint8(((field - 3) << 4) | 0x0c)
  addIntegers(values)
  writer.appendUint8(0)
  writer.appendUint8(0)
}

function compressed(bytes: Uint8Array): Uint8Array {
  return bytes.length > SMALL_BYTES ? zstdCompressSync(bytes) : storedFrame(bytes)
}

/** A zstd frame with bytes that are not compressed (RFC 8878): its magic number, a size of one byte, and a last block that is stored as it is. */
function storedFrame(bytes: Uint8Array): Uint8Array {
  const frame = new Uint8Array(9 + bytes.length)
  const block = bytes.length * 8 + 1
  frame.set([0x28, 0xb5, 0x2f, 0xfd, 0x20, bytes.length, block & 0xff, block >> 8, 0])
  frame.set(bytes, 9)
  return frame
}

/** The least and the greatest text, compared by their bytes, as readers do. */
class TextBounds {
  #isEmpty = true
  readonly #min: Range = { bytes: NO_BYTES, from: 0, to: 0 }
  readonly #max: Range = { bytes: NO_BYTES, from: 0, to: 0 }

  add(bytes: Uint8Array, from: number, to: number): void {
    if (this.#isEmpty || compare(bytes, from, to, this.#max) > 0) move(this.#max, bytes, from, to)
    if (this.#isEmpty || compare(bytes, from, to, this.#min) < 0) move(this.#min, bytes, from, to)
    this.#isEmpty = false
  }

  /** Copies the bounds, because the buffer that they are in is about to be overwritten. */
  keep(): void {
    for (const range of [this.#min, this.#max]) move(range, range.bytes.slice(range.from, range.to), 0, range.to - range.from)
  }

  result(): Bounds {
    return this.#isEmpty ? {} : { min_value: textOf(this.#min), max_value: textOf(this.#max) }
  }
}

interface Range {
  bytes: Uint8Array
  from: number
  to: number
}

function move(range: Range, bytes: Uint8Array, from: number, to: number): void {
  range.bytes = bytes
  range.from = from
  range.to = to
}

function textOf({ bytes, from, to }: Range): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString()
}

function compare(bytes: Uint8Array, from: number, to: number, { bytes: others, from: otherFrom, to: otherTo }: Range): number {
  const length = Math.min(to - from, otherTo - otherFrom)
  for (let at = 0; at < length; at++) {
    const difference = (bytes[from + at] as number) - (others[otherFrom + at] as number)
    if (difference !== 0) return difference
  }
  return to - from - (otherTo - otherFrom)
}
