// Reads the archive of a lake in pages, ordered by when messages were received. The cursor is the place in that order and not in a file, so it stays valid
// when files are merged or rewritten between two pages. Files are read by row group, because a merged file does not fit into memory.

import { WarehouseProblem } from '../failure.ts'
import { ARCHIVE_COLUMNS } from '../schema/evolve.ts'
import type { ArchivePage, ArchiveQuery, Cell } from '../warehouse.ts'
import type { LakeFiles } from './lake-files.ts'
import { type ManifestFile, readManifest } from './manifest.ts'
import type { ParquetReader } from './parquet-file.ts'
import { withReader } from './table-files.ts'
import { missing } from './upkeep.ts'

const NAMES = ARCHIVE_COLUMNS.map(({ name }) => name)
const ID = NAMES.indexOf('id')
const USER_ID = NAMES.indexOf('user_id')
const EVENT = NAMES.indexOf('event')
const RECEIVED_AT = NAMES.indexOf('received_at')
const MESSAGE = NAMES.indexOf('message')
/** Texts of messages that stay in memory for the next page. */
const MAX_KEPT_CHARACTERS = 32 * 1024 * 1024
const ATTEMPTS = 5
/** A search for a rare event returns what it has found after this time. */
const MAX_READ_MS = 5_000

type Row = Cell[]
type Place = readonly [receivedAtMs: number, id: string]

interface Found {
  rows: Row[]
  /** Everything before this place was read; null if all files were. */
  next: Place | null
}

interface Group {
  rows: Row[]
  characters: number
}

export class ArchiveReader {
  readonly #files: LakeFiles
  /** Row groups that were read last: most often the next page is in them, too. The newest is the last. */
  readonly #kept = new Map<string, Group>()

  constructor(files: LakeFiles) {
    this.#files = files
  }

  /** How many messages the files with messages of this time have. They may have others, too. */
  async size(folder: string, query: ArchiveQuery): Promise<number> {
    return filesOf((await readManifest(this.#files, folder)).files, query, query.afterMs).reduce((total, { rows }) => total + rows, 0)
  }

  /** At most `limit` messages, and no more than one after `maxCharacters`. */
  async read(folder: string, query: ArchiveQuery, cursor: string | null, limit: number, maxCharacters: number): Promise<ArchivePage> {
    for (let attempt = 1; ; attempt++) {
      const { files } = await readManifest(this.#files, folder)
      const found = await this.#read(folder, files, query, cursor, limit)
      if (!('path' in found)) return pageOf(found, limit, maxCharacters)
      // A merge may have replaced it since the manifest was read.
      const now = await readManifest(this.#files, folder)
      if (attempt === ATTEMPTS || now.files.some(({ path, sha256 }) => path === found.path && sha256 === found.sha256)) {
        const { code, message } = missing(folder, found)
        throw new WarehouseProblem(code, `${message} It has messages from ${found.from} to ${found.to}.`)
      }
    }
  }

  /** The first rows after the cursor, in order; or a file that is gone. */
  async #read(
    folder: string,
    files: readonly ManifestFile[],
    query: ArchiveQuery,
    cursor: string | null,
    limit: number,
  ): Promise<Found | ManifestFile> {
    const startedMs = performance.now()
    const after = cursor === null ? null : (JSON.parse(cursor) as Place)
    const fromMs = Math.max(query.afterMs, after?.[0] ?? 0)
    let page: Row[] = []
    const isBeyond = (ms: number): boolean => page.length >= limit && ms > placeOf(page.at(-1) as Row)[0]
    for (const file of filesOf(files, query, fromMs)) {
      // Later files have only later messages.
      const firstMs = Date.parse(file.from)
      if (isBeyond(firstMs)) break
      if (performance.now() - startedMs > MAX_READ_MS && firstMs > fromMs)
        return { rows: page.filter((row) => placeOf(row)[0] < firstMs), next: [firstMs, ''] }
      const isPresent = await withReader(this.#files, `${folder}/${file.path}`, async (reader) => {
        for (const group of reader.groups.keys()) {
          const { min, max } = reader.times(group, 'received_at')
          if (max < fromMs || min >= query.beforeMs || isBeyond(min)) continue
          if (query.userId !== undefined && !reader.mayHave(group, 'user_id', [query.userId])) continue
          if (query.event !== undefined && !reader.mayHave(group, 'event', [query.event])) continue
          const rows = await this.#rowsOf(reader, group, `${folder}/${file.path} ${file.sha256} ${group}`)
          const fitting = rows.filter((row) => isWanted(row, query) && (after === null || comparePlaces(placeOf(row), after) > 0))
          page = [...page, ...fitting].sort(byPlace).slice(0, limit)
        }
        return true
      })
      if (isPresent === null) return file
    }
    return { rows: page, next: null }
  }

  async #rowsOf(reader: ParquetReader, group: number, key: string): Promise<Row[]> {
    const known = this.#kept.get(key)
    if (known !== undefined) {
      this.#kept.delete(key)
      this.#kept.set(key, known)
      return known.rows
    }
    const rows = await reader.read(group, NAMES)
    const characters = rows.reduce((total, row) => total + String(row[MESSAGE]).length, 0)
    this.#kept.set(key, { rows, characters })
    let total = [...this.#kept.values()].reduce((sum, each) => sum + each.characters, 0)
    for (const [oldest, each] of this.#kept) {
      if (total <= MAX_KEPT_CHARACTERS || oldest === key) break
      this.#kept.delete(oldest)
      total -= each.characters
    }
    return rows
  }
}

/** In the order of their first messages. */
function filesOf(files: readonly ManifestFile[], { beforeMs }: ArchiveQuery, fromMs: number): ManifestFile[] {
  return files
    .filter(({ from, to }) => Date.parse(to) >= fromMs && Date.parse(from) < beforeMs)
    .sort((one, other) => (one.from < other.from ? -1 : one.from > other.from ? 1 : one.path < other.path ? -1 : 1))
}

function pageOf({ rows, next }: Found, limit: number, maxCharacters: number): ArchivePage {
  const messages: ArchivePage['messages'] = []
  let characters = 0
  for (const row of rows) {
    if (characters >= maxCharacters) break
    const [receivedAtMs, id] = placeOf(row)
    const text = String(row[MESSAGE])
    characters += text.length
    messages.push({ id, receivedAtMs, text, cursor: JSON.stringify([receivedAtMs, id]) })
  }
  if (messages.length < rows.length || rows.length === limit) return { messages, cursor: messages.at(-1)?.cursor ?? null }
  return { messages, cursor: next && JSON.stringify(next) }
}

function isWanted(row: Row, { afterMs, beforeMs, event, userId }: ArchiveQuery): boolean {
  const receivedAt = Number(row[RECEIVED_AT])
  if (receivedAt < afterMs || receivedAt >= beforeMs) return false
  return (event === undefined || row[EVENT] === event) && (userId === undefined || row[USER_ID] === userId)
}

function placeOf(row: Row): Place {
  return [Number(row[RECEIVED_AT]), String(row[ID])]
}

function byPlace(one: Row, other: Row): number {
  return comparePlaces(placeOf(one), placeOf(other))
}

function comparePlaces([time, id]: Place, [otherTime, otherId]: Place): number {
  return time - otherTime || (id < otherId ? -1 : id > otherId ? 1 : 0)
}
