// Small JSON documents, for what the service counted or noticed: events of the event catalogue, violations of tracking plans, incidents, and
// the settings of alerts. They are not part of the configuration and not on the path of a message, except for what integrations keep
// (integration-state.ts).

import type { JsonObject } from '@switchyard/protocol'

export interface StoredDocument {
  /** 1 to 200 printable ASCII characters without a backslash. */
  key: string
  /** By this time documents are ordered and dropped. */
  atMs: number
  doc: JsonObject
}

export interface DocumentQuery {
  /** Only documents whose key starts with this. */
  prefix?: string
  /** Only documents whose key starts with one of these, in addition. */
  prefixes?: readonly string[] | undefined
  /** By key, or by time with the newest first. */
  order: 'key' | 'newest'
  /** The last document of the page before. */
  after?: Pick<StoredDocument, 'key' | 'atMs'> | undefined
  limit: number
}

/** Returns what to write, by key. Null deletes the document; keys that are left out stay as they are. */
export type DocumentChange = (
  stored: ReadonlyMap<string, StoredDocument>,
) => ReadonlyMap<string, Pick<StoredDocument, 'atMs' | 'doc'> | null>

export interface DocumentStore {
  get(kind: string, key: string): Promise<StoredDocument | undefined>
  list(kind: string, query: DocumentQuery): Promise<StoredDocument[]>
  /**
   * Reads the documents with these keys, and writes what `change` returns, which may include other keys. No other update of the same kind, on any
   * node, happens in between. `change` must not wait, and may be called again. If this rejects with StoreUnavailable, the change may have been made.
   */
  update(kind: string, keys: readonly string[], change: DocumentChange): Promise<void>
  /** Deletes the documents that fit both conditions, in steps, and returns how many. */
  drop(kind: string, which: { prefix?: string; beforeMs?: number }): Promise<number>
}

const KEY = /^[\x20-\x5b\x5d-\x7e]{1,200}$/

/** Throws if a key cannot be stored. Callers make keys from text of clients, which they must encode. */
export function checkKeys(keys: Iterable<string>): void {
  for (const key of keys) if (!KEY.test(key)) throw new Error(`not a key of a document: ${JSON.stringify(key.slice(0, 50))}`)
}

/** The first text after all texts that start with the prefix. Every key is less than `\x7f`. */
export function endOfPrefix(prefix: string): string {
  return `${prefix}\x7f`
}
