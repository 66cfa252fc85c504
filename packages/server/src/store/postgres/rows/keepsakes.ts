// Small things that are kept beside the configuration and asked for when they are needed: settings, named secrets, when tokens
// were used, which assertions were. Secrets come out of here plain and lie in the tables sealed.

import type { SecretBox } from '../../../secrets/secret-box.ts'
import type { UsedAssertion } from '../../store.ts'
import type { Ask, Database } from '../session/database.ts'
import { readText, writeText } from '../session/texts.ts'

/** Settings of these names hold sealed secrets. */
export const SECRET_PREFIX = 'secret.'

/** Each use takes away more than it brings, so that the table stays as small as the assertions that can still be used are few. */
const FORGOTTEN_PER_USE = 100

export async function readSetting(database: Pick<Database, 'query'>, name: string): Promise<string | undefined> {
  const { rows } = await database.query<{ value: string }>('SELECT value FROM settings WHERE name = $1', [writeText(name)])
  return rows[0] && readText(rows[0].value)
}

export async function writeSetting(database: Pick<Database, 'query'>, name: string, value: string): Promise<void> {
  await database.query('INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value', [
    writeText(name),
    writeText(value),
  ])
}

// ── Secrets: under the lock of the configuration, so that none is sealed with a key that is just being changed ──

/** What is stored under the name: `fresh`, unless another was there before. */
export async function keepSecret(ask: Ask, secretBox: SecretBox, name: string, fresh: string): Promise<string> {
  const setting = SECRET_PREFIX + name
  const stored = async (): Promise<string | undefined> =>
    (await ask<{ value: string }>('SELECT value FROM settings WHERE name = $1', [setting])).rows[0]?.value
  const found = await stored()
  if (found !== undefined) return secretBox.open(found, setting)
  await ask('INSERT INTO settings (name, value) VALUES ($1, $2)', [setting, secretBox.seal(fresh, setting)])
  return fresh
}

/** Throws SecretBoxError for one that the key does not open. */
export async function checkSecrets(ask: Ask, secretBox: SecretBox): Promise<void> {
  for (const { name, value } of await storedSecrets(ask)) secretBox.open(value, name)
}

/** How many there are now. */
export async function resealSettings(ask: Ask, from: SecretBox, to: SecretBox, without: readonly string[]): Promise<number> {
  const removed = new Set(without.map((name) => SECRET_PREFIX + name))
  let left = 0
  for (const { name, value } of await storedSecrets(ask)) {
    if (removed.has(name)) await ask('DELETE FROM settings WHERE name = $1', [name])
    else {
      await ask('UPDATE settings SET value = $2 WHERE name = $1', [name, to.seal(from.open(value, name), name)])
      left++
    }
  }
  return left
}

async function storedSecrets(ask: Ask): Promise<{ name: string; value: string }[]> {
  const { rows } = await ask<{ name: string; value: string }>('SELECT name, value FROM settings WHERE starts_with(name, $1)', [
    SECRET_PREFIX,
  ])
  return rows
}

// ── Tokens and assertions ──

export async function tokenUses(database: Pick<Database, 'query'>): Promise<{ id: string; atMs: number }[]> {
  const { rows } = await database.query<{ id: string; atMs: number }>(
    'SELECT id, last_used_at AS "atMs" FROM tokens WHERE last_used_at IS NOT NULL',
  )
  return rows
}

export async function useToken(database: Pick<Database, 'query'>, id: string, atMs: number): Promise<void> {
  await database.query('UPDATE tokens SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)', [id, atMs])
}

/** The primary key decides who was first. */
export async function useAssertion(database: Database, { appId, jti, keepUntilMs }: UsedAssertion, nowMs: number): Promise<boolean> {
  const { count } = await database.transaction((ask) =>
    ask(
      `WITH forgotten AS (
         DELETE FROM oauth_assertions WHERE (app, jti) IN (
           SELECT app, jti FROM oauth_assertions WHERE expires_at < $4 AND (app, jti) <> ($1, $2)
           ORDER BY expires_at LIMIT ${FORGOTTEN_PER_USE} FOR UPDATE SKIP LOCKED))
       INSERT INTO oauth_assertions (app, jti, expires_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
      [writeText(appId), writeText(jti), Math.floor(keepUntilMs), Math.floor(nowMs)],
    ),
  )
  return count === 1
}
