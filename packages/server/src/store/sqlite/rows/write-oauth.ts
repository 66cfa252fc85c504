// OAuth applications and the assertions that were used, inside the group's transaction.

import type { DatabaseSync } from 'node:sqlite'
import type { OAuthApp, UsedAssertion } from '../../store.ts'

/** Each use takes away more than it brings, so that the table stays as small as the assertions that can still be used are few. */
const FORGOTTEN_PER_USE = 100

export class OAuthWriter {
  readonly #database: DatabaseSync

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  put(app: OAuthApp, create: boolean): void {
    const doc = JSON.stringify(app)
    if (create) this.#database.prepare('INSERT INTO oauth_apps (id, doc) VALUES (?, ?)').run(app.id, doc)
    else this.#database.prepare('UPDATE oauth_apps SET doc = ? WHERE id = ?').run(doc, app.id)
  }

  delete(id: string): boolean {
    return this.#database.prepare('DELETE FROM oauth_apps WHERE id = ?').run(id).changes === 1
  }

  /** The primary key decides who was first. */
  useAssertion({ appId, jti, keepUntilMs }: UsedAssertion, nowMs: number): boolean {
    this.#database
      .prepare(
        `DELETE FROM oauth_assertions WHERE (app, jti) IN
           (SELECT app, jti FROM oauth_assertions WHERE expires_at < ? ORDER BY expires_at LIMIT ${FORGOTTEN_PER_USE})`,
      )
      .run(nowMs)
    const { changes } = this.#database
      .prepare('INSERT INTO oauth_assertions (app, jti, expires_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING')
      .run(appId, jti, keepUntilMs)
    return changes === 1
  }
}
