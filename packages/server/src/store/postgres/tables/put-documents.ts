// Writes documents, which replace those with the same keys. Documents themselves use it, and settlements, for what integrations keep.

import type { DocumentRow } from '../../history/documents.ts'
import { Columns, statement } from '../session/row-parameters.ts'

const DOCUMENTS = new Columns<DocumentRow>({
  key: ['text', ({ key }) => key],
  at: ['bigint', ({ atMs }) => atMs],
  doc: ['text', ({ doc }) => doc],
})

export const PUT_DOCUMENTS = statement({
  parameters: { kind: 'value', documents: DOCUMENTS },
  text: ({ kind, documents }) => `
    INSERT INTO documents (kind, key, at, doc) SELECT ${kind}, d.key, d.at, d.doc FROM ${documents.as('d')}
    ON CONFLICT (kind, key) DO UPDATE SET at = excluded.at, doc = excluded.doc`,
})
