// The keys of message_keys: fingerprints of messageIds (encoding/fingerprint.ts) stored as uuids, and the secret seed of the
// fingerprints.

import { randomBytes } from 'node:crypto'
import { FINGERPRINT_WORDS, type Seed } from '../../encoding/fingerprint.ts'
import type { Database } from '../session/database.ts'
import { readSetting } from './sql.ts'

export const SEED_SETTING = 'seed'

/** Reads the seed once, when it is first needed. */
export function seedOf(database: Database): () => Promise<Seed> {
  let opening: Promise<Seed> | undefined
  return () => {
    opening ??= openSeed(database).catch((error: unknown) => {
      opening = undefined
      throw error
    })
    return opening
  }
}

/** The first node creates the seed; all nodes use the same one. */
async function openSeed(database: Database): Promise<Seed> {
  await database.query('INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING', [
    SEED_SETTING,
    randomBytes(16).toString('hex'),
  ])
  const bytes = Buffer.from((await readSetting(database.ask, SEED_SETTING)) ?? '', 'hex')
  return [bytes.readUInt32BE(0), bytes.readUInt32BE(4), bytes.readUInt32BE(8), bytes.readUInt32BE(12)]
}

/** The 16 bytes of the key at `at` in words. */
export function keyBytes(words: Uint32Array, at = 0): Buffer {
  const bytes = Buffer.allocUnsafe(16)
  for (let word = 0; word < FINGERPRINT_WORDS; word++) bytes.writeUInt32BE(words[at + word] as number, word * 4)
  return bytes
}

/** The key as PostgreSQL formats a uuid. */
export function keyText(words: Uint32Array, at = 0): string {
  const hex = keyBytes(words, at).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
