// One change of the configuration, inside its transaction and under the lock that all changes take, so that it sees the result of the
// previous change, whichever node made it. The rows it writes carry the new version. At the end the version is increased and all
// nodes are notified. If nothing was written, the version stays the same.

import type { SecretBox } from '../../../secrets/secret-box.ts'
import type { ConfigurationChange, VersionRow } from '../../configuration/configuration-rows.ts'
import { columnsOf, docOfDeleted, type ResourceKind, type Resources, TABLES } from '../../configuration/resource-rows.ts'
import type { StoredDestination } from '../../configuration/stored-destination.ts'
import type { Configuration, NewAuditEntry } from '../../store.ts'
import { writeAudit } from '../rows/audit-rows.ts'
import { readSecrets, writeSetting } from '../rows/settings.ts'
import { readVersions, writeVersion } from '../rows/version-rows.ts'
import type { Value } from '../session/connection.ts'
import type { Ask } from '../session/database.ts'
import type { StoreContext } from '../session/store-context.ts'
import { writeText } from '../session/text-columns.ts'
import type { State } from './stored-configuration.ts'

/** The notification channel. The payload is the version. */
export const CHANNEL = 'switchyard_configuration'

export class Change implements ConfigurationChange {
  readonly ask: Ask
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
    this.configuration = before.configuration
    this.secretBox = secretBox
    this.nextBox = secretBox
    this.#before = before
    this.#version = before.version + 1
  }

  create<K extends ResourceKind>(kind: K, resource: Resources[K]): Promise<void> {
    const columns = { num: this.#context.ids.next(), id: resource.id, ...this.#columns(kind, resource) }
    const names = Object.keys(columns)
    const placeholders = names.map((_, at) => `$${at + 1}`)
    return this.#write(`INSERT INTO ${TABLES[kind]} (${names.join(', ')}) VALUES (${placeholders.join(', ')})`, Object.values(columns))
  }

  update<K extends ResourceKind>(kind: K, resource: Resources[K]): Promise<void> {
    return this.#update(kind, resource.id, this.#columns(kind, resource))
  }

  delete<K extends ResourceKind>(kind: K, resource: Resources[K]): Promise<void> {
    const doc = docOfDeleted(kind, resource)
    if (doc !== null) return this.#update(kind, resource.id, { doc, deleted: true, version: this.#version })
    return this.#write(`DELETE FROM ${TABLES[kind]} WHERE id = $1`, [resource.id])
  }

  versions(destinationId: string, below: number, limit: number): Promise<VersionRow[]> {
    return readVersions(this.ask, destinationId, below, limit)
  }

  async putVersion(row: VersionRow): Promise<void> {
    await writeVersion(this.ask, row)
  }

  async dropVersions(destinationId: string, upTo: number): Promise<void> {
    await this.ask('DELETE FROM destination_versions WHERE destination = $1 AND version <= $2', [destinationId, upTo])
  }

  /** For something that is not part of the configuration but that all nodes must learn of. Returns the version with which they know it. */
  announce(): number {
    this.#made = true
    return this.#version
  }

  async suppress(sourceIds: readonly string[], userIds: readonly string[], atMs: number): Promise<void> {
    await this.#write(
      `INSERT INTO suppressions (source, user_id, since, version)
       SELECT num, user_id, $3, $4 FROM sources CROSS JOIN unnest($2::text[]) AS user_id WHERE id = ANY($1::text[]) ON CONFLICT DO NOTHING`,
      [sourceIds, userIds.map(writeText), atMs, this.#version],
    )
  }

  async unsuppress(sourceIds: readonly string[], userId: string): Promise<void> {
    this.#unsuppressed = true
    await this.#write(
      'DELETE FROM suppressions WHERE user_digest = digest_of($1) AND source IN (SELECT num FROM sources WHERE id = ANY($2::text[]))',
      [writeText(userId), sourceIds],
    )
  }

  secrets(): Promise<{ name: string; value: string }[]> {
    return readSecrets(this.ask)
  }

  async setSecret(name: string, sealed: string | null): Promise<void> {
    if (sealed === null) await this.ask('DELETE FROM settings WHERE name = $1', [name])
    else await writeSetting(this.ask, name, sealed)
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
    await writeAudit(this.ask, this.#context.ids, entry, this.#context.nowMs())
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

  async #write(sql: string, values: readonly Value[]): Promise<void> {
    this.#made = true
    await this.ask(sql, values)
  }

  #update(kind: ResourceKind, id: string, columns: Record<string, Value>): Promise<void> {
    const changes = Object.keys(columns).map((name, at) => `${name} = $${at + 2}`)
    return this.#write(`UPDATE ${TABLES[kind]} SET ${changes.join(', ')} WHERE id = $1`, [id, ...Object.values(columns)])
  }

  #columns<K extends ResourceKind>(kind: K, resource: Resources[K]): Record<string, Value> {
    const columns = columnsOf(kind, resource, this.secretBox)
    if (kind === 'tokens') return { ...columns, name: writeText(resource.name) }
    return kind === 'oauthApps' ? columns : { ...columns, version: this.#version }
  }
}
