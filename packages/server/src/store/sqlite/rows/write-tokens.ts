// Control tokens, inside the group's transaction: of each only its hash is here.

import type { DatabaseSync } from 'node:sqlite'
import type { ControlToken } from '../../store.ts'

export class TokenWriter {
  readonly #database: DatabaseSync

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  create({ id, name, role, hash, createdAtMs }: ControlToken): void {
    this.#database
      .prepare('INSERT INTO tokens (id, name, role, hash, created_at) VALUES (?, ?, ?, ?, ?)')
      .run(id, name, role, hash, createdAtMs)
  }

  delete(id: string): boolean {
    return this.#database.prepare('DELETE FROM tokens WHERE id = ?').run(id).changes === 1
  }

  use(id: string, atMs: number): void {
    this.#database.prepare('UPDATE tokens SET last_used_at = max(ifnull(last_used_at, 0), ?) WHERE id = ?').run(atMs, id)
  }
}
