// Stored secrets, inside the group's transaction. They come here sealed and stay so: this thread has no key.

import type { DatabaseSync } from 'node:sqlite'
import type { StoredDestination } from '../../configuration/stored-destination.ts'

/** Settings of these names hold sealed secrets. */
export const SECRET_PREFIX = 'secret.'

/** As emptiedDestination has it. */
const WITHOUT_SECRETS =
  "json_set(doc, '$.sharedSecret', NULL, '$.signingSecrets', json('[]'), '$.sealedUrls', json('[]'), '$.sealedHeaders', json('{}'))"

/** Null: it is taken away. */
export type ResealedSetting = readonly [name: string, sealed: string | null]

export class SecretsWriter {
  readonly #database: DatabaseSync

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  /** What is stored under the name now: `sealed`, unless another was there before. */
  keep(name: string, sealed: string): string {
    this.#database.prepare('INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING').run(name, sealed)
    return (this.#database.prepare('SELECT value FROM settings WHERE name = ?').get(name) as { value: string }).value
  }

  /** A deleted destination keeps its row, for what refers to it, and nothing that could be read with the key. */
  forget(destinationId: string): void {
    this.#database.prepare(`UPDATE destinations SET doc = ${WITHOUT_SECRETS} WHERE id = ?`).run(destinationId)
  }

  replace(destinations: readonly StoredDestination[], settings: readonly ResealedSetting[]): void {
    // Those that were deleted before secrets were taken out of them.
    this.#database.exec(`UPDATE destinations SET doc = ${WITHOUT_SECRETS} WHERE deleted = 1`)
    const destination = this.#database.prepare('UPDATE destinations SET doc = ? WHERE id = ?')
    for (const stored of destinations) destination.run(JSON.stringify(stored), stored.id)
    const setting = this.#database.prepare('UPDATE settings SET value = ? WHERE name = ?')
    const removal = this.#database.prepare('DELETE FROM settings WHERE name = ?')
    for (const [name, sealed] of settings) {
      if (sealed === null) removal.run(name)
      else setting.run(sealed, name)
    }
  }
}
