// One change of the configuration, inside its transaction and under the lock that all changes take, so that it sees the result of the
// previous change, whichever node made it. The rows it writes carry the new version. At the end the version is increased and all
// nodes are notified. If nothing was written, the version stays the same.

import type { SecretBox } from '../../../secrets/secret-box.ts'
import type { ConfigurationChange } from '../../configuration/configuration-rows.ts'
import { type ConfigurationTables, configurationTables } from '../../configuration/configuration-tables.ts'
import { columnsOf, docOfDeleted, type ResourceKind, type Resources, TABLES } from '../../configuration/resource-rows.ts'
import type { StoredDestination } from '../../configuration/stored-destination.ts'
import type { Sql } from '../../encoding/sql.ts'
import { writeAudit } from '../../history/audit-log.ts'
import type { Configuration, NewAuditEntry } from '../../store.ts'
import type { Ask } from '../session/database.ts'
import { writeText } from '../session/text-columns.ts'
import { sqlOf } from '../tables/sql.ts'
import type { StoreContext } from './store-context.ts'
import type { State } from './stored-configuration.ts'

/** The notification channel. The payload is the version. */
export const CHANNEL = 'switchyard_configuration'

export class Change implements ConfigurationChange {
  readonly ask: Ask
  readonly #sql: Sql<string>
  readonly tables: ConfigurationTables
  readonly configuration: Configuration
  readonly secretBox: SecretBox
  /** The key with which secrets are encrypted after the commit. */
  nextBox: SecretBox
  readonly #context: StoreContext
  readonly #before: State
  readonly #version: number
  #made = false
  #unsuppressed = false

  constructor(context: StoreContext, ask: Ask, before: State, secretBox: SecretBox) {
    this.#context = context
    this.ask = ask
    this.#sql = sqlOf(ask)
    this.tables = configurationTables(this.#sql)
    this.configuration = before.configuration
    this.secretBox = secretBox
    this.nextBox = secretBox
    this.#before = before
    this.#version = before.version + 1
  }

  async create<K extends ResourceKind>(kind: K, resource: Resources[K]): Promise<void> {
    this.announce()
    await this.tables.insert(TABLES[kind], { num: this.#context.ids.next(), id: resource.id, ...this.#columns(kind, resource) })
  }

  async update<K extends ResourceKind>(kind: K, resource: Resources[K]): Promise<void> {
    this.announce()
    await this.tables.update(TABLES[kind], resource.id, this.#columns(kind, resource))
  }

  async delete<K extends ResourceKind>(kind: K, resource: Resources[K]): Promise<void> {
    const [table, doc, version] = [TABLES[kind], docOfDeleted(kind, resource), this.announce()]
    if (doc === null) await this.tables.delete(table, resource.id)
    else await this.tables.update(table, resource.id, { doc, deleted: this.#sql.flag(true), version })
  }

  /** Makes all nodes learn of the change. Returns the version with which they know it. */
  announce(): number {
    this.#made = true
    return this.#version
  }

  async suppress(sourceIds: readonly string[], userIds: readonly string[], atMs: number): Promise<void> {
    await this.ask(
      `INSERT INTO suppressions (source, user_id, since, version)
       SELECT num, user_id, $3, $4 FROM sources CROSS JOIN unnest($2::text[]) AS user_id WHERE id = ANY($1::text[]) ON CONFLICT DO NOTHING`,
      [sourceIds, userIds.map(writeText), atMs, this.announce()],
    )
  }

  async unsuppress(sourceIds: readonly string[], userId: string): Promise<void> {
    this.#unsuppressed = true
    this.announce()
    await this.ask(
      'DELETE FROM suppressions WHERE user_digest = digest_of($1) AND source IN (SELECT num FROM sources WHERE id = ANY($2::text[]))',
      [writeText(userId), sourceIds],
    )
  }

  async useKey(box: SecretBox, destinations: readonly StoredDestination[]): Promise<void> {
    // A secret that this node could not decrypt cannot be encrypted with the new key.
    if (this.#before.unopened !== null) throw this.#before.unopened
    await this.ask('UPDATE configuration SET secret_key = $1', [box.keyId])
    // The settings stay the same, so the versions of the rows do too.
    for (const stored of destinations) await this.ask('UPDATE destinations SET doc = $2 WHERE id = $1', [stored.id, JSON.stringify(stored)])
    this.nextBox = box
  }

  async note(entry: NewAuditEntry | undefined): Promise<void> {
    await writeAudit(this.#sql, this.#context.ids, entry, this.#context.nowMs())
  }

  /** Returns false if nothing was changed. Nothing may be written afterwards. */
  async end(): Promise<boolean> {
    if (!this.#made) return false
    await this.ask('UPDATE configuration SET version = $1, unsuppressed = CASE WHEN $2 THEN $1 ELSE unsuppressed END', [
      this.#version,
      this.#unsuppressed,
    ])
    // PostgreSQL sends the notification only if the transaction commits.
    await this.ask('SELECT pg_notify($1, $2)', [CHANNEL, String(this.#version)])
    return true
  }

  #columns<K extends ResourceKind>(kind: K, resource: Resources[K]): Record<string, string | number | null> {
    const columns = columnsOf(kind, resource, this.secretBox)
    if (kind === 'tokens') return { ...columns, name: writeText(resource.name) }
    return kind === 'oauthApps' ? columns : { ...columns, version: this.#version }
  }
}
