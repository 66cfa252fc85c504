// The table of settings: strings by name.

import type { DatabaseSync } from 'node:sqlite'

export function readSetting(database: DatabaseSync, name: string): string | undefined {
  return (database.prepare('SELECT value FROM settings WHERE name = ?').get(name) as { value: string } | undefined)?.value
}

/** The value null removes the setting. */
export function writeSetting(database: DatabaseSync, name: string, value: string | null): void {
  if (value === null) {
    database.prepare('DELETE FROM settings WHERE name = ?').run(name)
    return
  }
  database
    .prepare('INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value')
    .run(name, value)
}
