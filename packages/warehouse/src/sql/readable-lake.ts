// What a query reads of a lake: the tables of the schemas that the caller may see, and their files on this machine.

import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { LakeFiles } from '../parquet/lake-files.ts'
import { readManifest } from '../parquet/manifest.ts'
import { tablesOf } from '../parquet/table-list.ts'
import type { TableName } from './protocol.ts'

export interface ReadableLake {
  /** The same for two objects only if they read the same lake. Without it, nothing is prepared for the next query. */
  readonly id?: string
  /** The tables of the schemas, in the order of their names. */
  tables(schemas: readonly string[], signal: AbortSignal): Promise<TableName[]>
  /** The files of the manifest, and what is missing. */
  files(table: TableName, signal: AbortSignal): Promise<{ files: string[]; warnings: string[] }>
}

/** After this many a merge is not the reason any more. */
const READS = 3

export class FolderLake implements ReadableLake {
  readonly id: string
  readonly #files: LakeFiles
  readonly #folder: string
  readonly #destinationId: string | null

  /** `folder` is where `files` is. With `destinationId`, folders of other destinations have no tables. */
  constructor(files: LakeFiles, folder: string, destinationId: string | null = null) {
    this.#files = files
    this.#folder = folder
    this.#destinationId = destinationId
    this.id = JSON.stringify([folder, destinationId])
  }

  tables(schemas: readonly string[]): Promise<TableName[]> {
    return tablesOf(this.#files, schemas, this.#destinationId)
  }

  async files({ schema, table }: TableName): Promise<{ files: string[]; warnings: string[] }> {
    const folder = `${schema}/${table}`
    for (let read = 1; ; read++) {
      const { files } = await readManifest(this.#files, folder)
      const paths = files.map(({ path }) => join(this.#folder, folder, path))
      const isThere = await Promise.all(
        paths.map((path) =>
          stat(path).then(
            () => true,
            () => false,
          ),
        ),
      )
      // A merge may have replaced files after the manifest was read.
      if (isThere.includes(false) && read < READS) continue
      const warnings = files
        .filter((_, at) => !isThere[at])
        .map(({ path, rows }) => `${folder}/${path} is gone, so its ${rows} rows are missing in the result.`)
      return { files: paths.filter((_, at) => isThere[at]), warnings }
    }
  }
}
