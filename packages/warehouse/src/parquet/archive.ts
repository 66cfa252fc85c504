// Reads the archive of a lake in pages, ordered by when messages were received. The cursor is the place in that order and not in a file, so it stays valid
// when files are merged or rewritten between two pages.

import { ARCHIVE_COLUMNS } from '../schema/evolve.ts'
import type { ArchivePage, ArchiveQuery, Cell } from '../warehouse.ts'
import type { LakeFiles } from './lake-files.ts'
import { type ManifestFile, readManifest } from './manifest.ts'
import { withReader } from './table-files.ts'

const NAMES = ARCHIVE_COLUMNS.map(({ name }) => name)
const ID = NAMES.indexOf('id')
const USER_ID = NAMES.indexOf('user_id')
const EVENT = NAMES.indexOf('event')
const RECEIVED_AT = NAMES.indexOf('received_at')
const MESSAGE = NAMES.indexOf('message')

type Row = Cell[]
type Place = readonly [receivedAtMs: number, id: string]

export class ArchiveReader {
  readonly #files: LakeFiles
  /** The file that was read last: most often the next page is in it, too. */
  #last: { key: string; rows: Row[] } = { key: '', rows: [] }

  constructor(files: LakeFiles) {
    this.#files = files
  }

  async read(folder: string, query: ArchiveQuery, cursor: string | null, limit: number): Promise<ArchivePage> {
    const after = cursor === null ? null : (JSON.parse(cursor) as Place)
    const fromMs = Math.max(query.afterMs, after?.[0] ?? 0)
    const { files } = await readManifest(this.#files, folder)
    const candidates = files
      .filter(({ from, to }) => Date.parse(to) >= fromMs && Date.parse(from) < query.beforeMs)
      .sort((one, other) => (one.from < other.from ? -1 : one.from > other.from ? 1 : one.path < other.path ? -1 : 1))
    let page: Row[] = []
    for (const file of candidates) {
      const last = page.at(-1)
      // Later files have only later messages.
      if (last !== undefined && page.length >= limit && Date.parse(file.from) > placeOf(last)[0]) break
      const fitting = (await this.#rowsOf(folder, file)).filter(
        (row) => isWanted(row, query) && (after === null || isAfter(placeOf(row), after)),
      )
      page = [...page, ...fitting].sort(byPlace).slice(0, limit)
    }
    const last = page.at(-1)
    return {
      messages: page.map((row) => ({ id: String(row[ID]), receivedAtMs: Number(row[RECEIVED_AT]), text: String(row[MESSAGE]) })),
      cursor: page.length < limit || last === undefined ? null : JSON.stringify(placeOf(last)),
    }
  }

  async #rowsOf(folder: string, { path, sha256 }: ManifestFile): Promise<Row[]> {
    const key = `${folder}/${path} ${sha256}`
    if (this.#last.key === key) return this.#last.rows
    const rows = await withReader(this.#files, `${folder}/${path}`, async (reader) => {
      const groups: Row[][] = []
      for (const group of reader.groups.keys()) groups.push(await reader.read(group, NAMES))
      return groups.flat()
    })
    this.#last = { key, rows: rows ?? [] }
    return this.#last.rows
  }
}

function isWanted(row: Row, { afterMs, beforeMs, event, userId }: ArchiveQuery): boolean {
  const receivedAt = Number(row[RECEIVED_AT])
  if (receivedAt < afterMs || receivedAt >= beforeMs) return false
  return (event === undefined || row[EVENT] === event) && (userId === undefined || row[USER_ID] === userId)
}

function placeOf(row: Row): Place {
  return [Number(row[RECEIVED_AT]), String(row[ID])]
}

function isAfter(place: Place, other: Place): boolean {
  return comparePlaces(place, other) > 0
}

function byPlace(one: Row, other: Row): number {
  return comparePlaces(placeOf(one), placeOf(other))
}

function comparePlaces([time, id]: Place, [otherTime, otherId]: Place): number {
  return time - otherTime || (id < otherId ? -1 : id > otherId ? 1 : 0)
}
