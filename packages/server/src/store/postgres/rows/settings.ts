// Values that are stored beside the configuration and read when they are needed: settings, encrypted secrets, the last use of each token, and
// used assertions.

import type { SecretBox } from '../../../secrets/secret-box.ts'
import { SECRET_PREFIX, type SettingRows } from '../../configuration/configuration-rows.ts'
import type { Ask, Database } from '../session/database.ts'
import { readText, writeText } from '../session/text-columns.ts'

/** Each use of an assertion adds one row and removes up to this many expired ones, so the table stays small. */
const EXPIRED_PER_USE = 100

export function createSettings(database: Database): SettingRows {
  return {
    async getSetting(name) {
      const value = await readSetting(database.ask, writeText(name))
      return value && readText(value)
    },
    setSetting: (name, value) => writeSetting(database.ask, name, value),
    async tokenUses() {
      const { rows } = await database.query<{ id: string; atMs: number }>(
        'SELECT id, last_used_at AS "atMs" FROM tokens WHERE last_used_at IS NOT NULL',
      )
      return rows
    },
    async useToken(id, atMs) {
      await database.query('UPDATE tokens SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)', [id, atMs])
    },
    /** Returns whether this is the first use; the primary key decides. */
    async useAssertion({ appId, jti, keepUntilMs }, nowMs) {
      const { count } = await database.transaction((ask) =>
        ask(
          `WITH expired AS (
             DELETE FROM oauth_assertions WHERE (app, jti) IN (
               SELECT app, jti FROM oauth_assertions WHERE expires_at < $4 AND (app, jti) <> ($1, $2)
               ORDER BY expires_at LIMIT ${EXPIRED_PER_USE} FOR UPDATE SKIP LOCKED))
           INSERT INTO oauth_assertions (app, jti, expires_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
          [writeText(appId), writeText(jti), Math.floor(keepUntilMs), Math.floor(nowMs)],
        ),
      )
      return count === 1
    },
  }
}

/** `name` and the result are encoded as in the column: see session/text-columns.ts. */
export async function readSetting(ask: Ask, name: string): Promise<string | undefined> {
  const { rows } = await ask<{ value: string }>('SELECT value FROM settings WHERE name = $1', [name])
  return rows[0]?.value
}

export async function writeSetting(ask: Ask, name: string, value: string): Promise<void> {
  await ask('INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value', [
    writeText(name),
    writeText(value),
  ])
}

/** Returns the encrypted secrets with the names of their settings. */
export async function readSecrets(ask: Ask): Promise<{ name: string; value: string }[]> {
  const { rows } = await ask<{ name: string; value: string }>('SELECT name, value FROM settings WHERE starts_with(name, $1)', [
    SECRET_PREFIX,
  ])
  return rows
}

/** Throws SecretBoxError if the key cannot decrypt one of the stored secrets. */
export async function checkSecrets(ask: Ask, secretBox: SecretBox): Promise<void> {
  for (const { name, value } of await readSecrets(ask)) secretBox.open(value, name)
}
