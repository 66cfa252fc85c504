// One change of the configuration, inside its transaction and under the lock that all changes take: whoever makes it sees what
// the one before left, whichever node made that. What it writes carries the version that it makes; when it is over the
// version is raised and all nodes are told. A change that wrote nothing is none.

import type { ControlToken, NewAuditEntry } from '../../store.ts'
import { writeAudit } from '../rows/audit-entries.ts'
import type { Ask } from '../session/database.ts'
import type { Parts } from '../session/parts.ts'
import { writeText } from '../session/texts.ts'
import type { State } from './stored-configuration.ts'

/** What nodes listen on. The payload is the version. */
export const CHANNEL = 'switchyard_configuration'

export class Change {
  readonly ask: Ask
  /** As it is now: no other change is made before this one is over. */
  readonly configuration: State['configuration']
  readonly #parts: Parts
  readonly #version: number
  #made = false
  #unsuppressed = false

  constructor(parts: Parts, ask: Ask, before: State) {
    this.#parts = parts
    this.ask = ask
    this.configuration = before.configuration
    this.#version = before.version + 1
  }

  async create(table: 'sources' | 'destinations', thing: { id: string }): Promise<void> {
    this.#made = true
    await this.ask(`INSERT INTO ${table} (num, id, version, doc) VALUES ($1, $2, $3, $4)`, [
      this.#parts.ids.next(),
      thing.id,
      this.#version,
      JSON.stringify(thing),
    ])
  }

  async update(table: 'sources' | 'destinations', thing: { id: string }): Promise<void> {
    this.#made = true
    await this.ask(`UPDATE ${table} SET version = $2, doc = $3 WHERE id = $1`, [thing.id, this.#version, JSON.stringify(thing)])
  }

  /** The row stays, for what still refers to it, with nothing in it that could be read with the key. */
  async delete(table: 'sources' | 'destinations', left: { id: string }): Promise<void> {
    this.#made = true
    await this.ask(`UPDATE ${table} SET version = $2, doc = $3, deleted = true WHERE id = $1`, [
      left.id,
      this.#version,
      JSON.stringify(left),
    ])
  }

  async putApp(app: { id: string }): Promise<void> {
    this.#made = true
    await this.ask('INSERT INTO oauth_apps (num, id, doc) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET doc = excluded.doc', [
      this.#parts.ids.next(),
      app.id,
      JSON.stringify(app),
    ])
  }

  async createToken({ id, name, role, hash, createdAtMs }: ControlToken): Promise<void> {
    this.#made = true
    await this.ask('INSERT INTO tokens (num, id, name, role, hash, created_at) VALUES ($1, $2, $3, $4, $5, $6)', [
      this.#parts.ids.next(),
      id,
      writeText(name),
      role,
      hash,
      createdAtMs,
    ])
  }

  async remove(table: 'oauth_apps' | 'tokens', id: string): Promise<void> {
    this.#made = true
    await this.ask(`DELETE FROM ${table} WHERE id = $1`, [id])
  }

  /** For something that is not part of the configuration but that all nodes have to learn of. Returns the version at which they know it. */
  announce(): number {
    this.#made = true
    return this.#version
  }

  /** Of sources by their `num`. How many were not suppressed before. */
  async suppress(sources: readonly string[], userIds: readonly string[], atMs: number): Promise<number> {
    const { count } = await this.ask(
      `INSERT INTO suppressions (source, user_id, since, version)
       SELECT source, user_id, $3, $4 FROM unnest($1::bigint[]) AS source CROSS JOIN unnest($2::text[]) AS user_id ON CONFLICT DO NOTHING`,
      [sources, userIds.map(writeText), atMs, this.#version],
    )
    if (count > 0) this.#made = true
    return count
  }

  /** Of a source by its `num`; null: of all sources. How many there were. */
  async unsuppress(userId: string, source: string | null): Promise<number> {
    const { count } = await this.ask('DELETE FROM suppressions WHERE user_digest = digest_of($1) AND source = coalesce($2, source)', [
      writeText(userId),
      source,
    ])
    if (count > 0) {
      this.#made = true
      this.#unsuppressed = true
    }
    return count
  }

  /** Who made it. Call it only when something was changed. */
  async note(entry: NewAuditEntry | undefined): Promise<void> {
    await writeAudit(this.ask, this.#parts.ids, entry, this.#parts.nowMs())
  }

  /** False when nothing was changed. Nothing may be written after it. */
  async end(): Promise<boolean> {
    if (!this.#made) return false
    await this.ask('UPDATE configuration SET version = $1, unsuppressed = CASE WHEN $2 THEN $1 ELSE unsuppressed END', [
      this.#version,
      this.#unsuppressed,
    ])
    // Told to the others when the transaction is committed, and not if it is not.
    await this.ask('SELECT pg_notify($1, $2)', [CHANNEL, String(this.#version)])
    return true
  }
}
