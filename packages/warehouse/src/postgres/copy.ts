// COPY with the client of `pg`, which has the messages of the protocol but no function for them.

import pg from 'pg'
import { timestampText } from '../schema/values.ts'
import type { Cell, StoredColumn } from '../warehouse.ts'

const CHUNK_CHARACTERS = 65_536

/** What `pg` hands to a query when the server is ready for data. Its types leave these out. */
interface CopyConnection {
  stream: { write(bytes: Uint8Array): boolean; once(event: 'drain' | 'close', listener: () => void): void; writableNeedDrain: boolean }
  sendCopyFromChunk(chunk: Uint8Array): void
  endCopyFrom(): void
  sendCopyFail(message: string): void
}

class CopyQuery extends pg.Query {
  readonly #chunks: Iterator<Uint8Array>
  #hasFailed = false

  constructor(text: string, chunks: Iterable<Uint8Array>, callback: (error: Error | undefined) => void) {
    super(text, (error) => {
      this.#hasFailed = error !== undefined && error !== null
      callback(error ?? undefined)
    })
    this.#chunks = chunks[Symbol.iterator]()
  }

  /** Called by the client. */
  handleCopyInResponse(connection: CopyConnection): void {
    try {
      // The server reads while we write: only as much as the socket takes is made at a time.
      while (!this.#hasFailed) {
        const { value, done } = this.#chunks.next()
        if (done === true) return connection.endCopyFrom()
        connection.sendCopyFromChunk(value)
        if (connection.stream.writableNeedDrain) {
          connection.stream.once('drain', () => this.handleCopyInResponse(connection))
          return
        }
      }
    } catch (error) {
      connection.sendCopyFail((error as Error).message)
    }
  }
}

/** Returns the number of bytes that were sent. */
export async function copyInto(
  client: pg.ClientBase,
  target: string,
  columns: readonly StoredColumn[],
  rows: Iterable<readonly Cell[]>,
): Promise<number> {
  let bytes = 0
  const chunks = function* (): Generator<Uint8Array> {
    for (const chunk of copyText(columns, rows)) {
      const encoded = Buffer.from(chunk)
      bytes += encoded.length
      yield encoded
    }
  }
  const text = `COPY ${target} (${columns.map(({ name }) => quoted(name)).join(', ')}) FROM STDIN`
  await new Promise<void>((resolve, reject) => {
    client.query(new CopyQuery(text, chunks(), (error) => (error === undefined ? resolve() : reject(error))))
  })
  return bytes
}

/** Rows in COPY's text format, in pieces of about 64 KB. */
export function* copyText(columns: readonly StoredColumn[], rows: Iterable<readonly Cell[]>): Generator<string> {
  let text = ''
  for (const row of rows) {
    for (let at = 0; at < columns.length; at++) text += (at === 0 ? '' : '\t') + cellText(row[at] ?? null, columns[at] as StoredColumn)
    text += '\n'
    if (text.length > CHUNK_CHARACTERS) {
      yield text
      text = ''
    }
  }
  if (text !== '') yield text
}

const SPECIAL = /[\\\n\r\t]/
const ESCAPED: Record<string, string> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' }

function cellText(cell: Cell, { type }: StoredColumn): string {
  if (cell === null) return '\\N'
  if (type === 'timestamp') return timestampText(cell as number)
  if (typeof cell !== 'string') return String(cell)
  return SPECIAL.test(cell) ? cell.replace(/[\\\n\r\t]/g, (character) => ESCAPED[character] as string) : cell
}

export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
