// The writing thread's side of documents.

import { type DocumentRow, documentRows } from '../../history/documents.ts'
import type { WriterContext } from '../writing/writer-context.ts'

export function documentWrites({ rows }: WriterContext) {
  const documents = documentRows(rows)
  return {
    drop: documents.drop,
    async write(kind: string, changed: readonly DocumentRow[], deleted: readonly string[]): Promise<void> {
      const put = 'INSERT OR REPLACE INTO documents (kind, key, at, doc) VALUES (?, ?, ?, ?)'
      for (const { key, atMs, doc } of changed) rows.run(put, [kind, key, atMs, doc])
      await documents.delete(kind, deleted)
    },
  }
}
