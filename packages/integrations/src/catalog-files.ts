// Where the generated catalogue is, and what it was generated from.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

/** In the package's folder, whether this file is in src/, or somewhere in dist/ as in the published package. */
export const CATALOG_FOLDER = new URL(import.meta.url.replace(/^(.*)\/(?:src|dist)\/.*$/, '$1/dist/catalog/'))
export const INDEX_FILE = 'index.json'
/** Written last, so that a catalogue with a stamp is complete. */
export const STAMP_FILE = 'stamp'

const GENERATOR = [
  'generate-catalog.ts',
  'corrected-mappings.ts',
  'field-schema.ts',
  'definitions.ts',
  'feature-flags.ts',
  'host-settings.ts',
  'known-problems.ts',
  'purposes.ts',
  'titles.ts',
]

/** Changes with the version of the definitions and with the code of the generator. */
export function currentStamp(): string {
  const manifest = createRequire(import.meta.url).resolve('@segment/action-destinations/package.json')
  const hash = createHash('sha256').update(readFileSync(manifest))
  for (const file of GENERATOR) hash.update(readFileSync(new URL(file, import.meta.url)))
  return hash.digest('hex')
}
