// The configuration: in memory as a whole, for the hot paths, and in the file. A change is written first, with who made
// it, and seen after; one at a time, each made from what the one before left. Secrets are sealed on the way to the file.

import { isDeepStrictEqual } from 'node:util'
import type { SecretBox } from '../../secrets/secret-box.ts'
import { createTurns } from '../../timing/turns.ts'
import { newId } from '../configuration/new-id.ts'
import { openDestination, sealDestination, sealedCount } from '../configuration/stored-destination.ts'
import { resolve } from '../port/from-stored.ts'
import {
  type Audit,
  type ChangeOf,
  type Check,
  type Configuration,
  type ConfigurationStore,
  type ControlToken,
  type Destination,
  type FromStored,
  type NewAuditEntry,
  type NewControlToken,
  type NewDestination,
  type NewOAuthApp,
  type NewSource,
  type OAuthApp,
  type Source,
  type StoredSecret,
  WriteKeyTaken,
} from '../store.ts'
import { type AuditNote, auditNote } from './rows/write-audit.ts'
import { SECRET_PREFIX } from './rows/write-secrets.ts'
import type { GroupCommit } from './threads/group-commit.ts'
import type { ReadingThread } from './threads/reading-thread.ts'

export interface ConfiguringParts {
  writer: GroupCommit
  reader: ReadingThread
  secretBox: SecretBox
  nowMs: () => number
  /** What a deleted destination is still owed is to be cancelled. */
  onDestinationDeleted: (id: string) => void
}

export class Configuring implements ConfigurationStore {
  readonly #parts: ConfiguringParts
  readonly #listeners: ((configuration: Configuration) => void)[] = []
  #configuration: Configuration = {
    sources: new Map(),
    destinations: new Map(),
    suppressions: new Map(),
    oauthApps: new Map(),
    tokens: new Map(),
  }

  readonly #inTurn = createTurns()
  #secretBox: SecretBox

  constructor(parts: ConfiguringParts) {
    this.#parts = parts
    this.#secretBox = parts.secretBox
  }

  get configuration(): Configuration {
    return this.#configuration
  }

  listen(listener: (configuration: Configuration) => void): void {
    this.#listeners.push(listener)
  }

  createSource(source: FromStored<NewSource>, audit?: Audit<Source>): Promise<Source> {
    return this.#inTurn(async () => {
      const created: Source = { ...resolve(source, this.#configuration), id: newId('src'), createdAtMs: this.#parts.nowMs() }
      this.#refuseTakenKeys(created.writeKeys, null)
      await this.#parts.writer.run('putSource', { source: created, create: true, ...this.#note(audit?.(created, null)) })
      this.#putSource(created)
      return created
    })
  }

  updateSource(id: string, wanted: ChangeOf<Source, NewSource>, audit?: Audit<Source>): Promise<Source | undefined> {
    return this.#inTurn(async () => {
      const before = this.#configuration.sources.get(id)
      if (before === undefined) return undefined
      const change = resolve(wanted, before, this.#configuration)
      if (change.writeKeys) this.#refuseTakenKeys(change.writeKeys, id)
      const source: Source = { ...before, ...change }
      if (isDeepStrictEqual(source, before)) return before
      await this.#parts.writer.run('putSource', { source, create: false, ...this.#note(audit?.(source, before)) })
      this.#putSource(source)
      return source
    })
  }

  deleteSource(id: string, audit?: Audit<Source>, check?: Check<Source>): Promise<boolean> {
    return this.#inTurn(async () => {
      const before = this.#configuration.sources.get(id)
      if (before === undefined) return false
      check?.(before)
      const { sources, destinations, oauthApps } = this.#configuration
      const detached = detachedFrom(destinations, id)
      const apps = detachedFrom(oauthApps, id)
      const stored = detached.map((destination) => sealDestination(destination, this.#secretBox))
      const note = this.#note(audit?.(null, before))
      if (!(await this.#parts.writer.run('deleteSource', { id, destinations: stored, apps, ...note }))) return false
      const left = new Map(sources)
      left.delete(id)
      this.#change({ sources: left, destinations: withThose(destinations, detached), oauthApps: withThose(oauthApps, apps) })
      return true
    })
  }

  createDestination(destination: FromStored<NewDestination>, audit?: Audit<Destination>): Promise<Destination> {
    return this.#inTurn(async () => {
      const created: Destination = { ...resolve(destination, this.#configuration), id: newId('dst'), createdAtMs: this.#parts.nowMs() }
      await this.#write(created, true, audit?.(created, null))
      this.#putDestination(created)
      return created
    })
  }

  updateDestination(
    id: string,
    wanted: ChangeOf<Destination, NewDestination>,
    audit?: Audit<Destination>,
  ): Promise<Destination | undefined> {
    return this.#inTurn(async () => {
      const before = this.#configuration.destinations.get(id)
      if (before === undefined) return undefined
      const destination: Destination = { ...before, ...resolve(wanted, before, this.#configuration) }
      if (isDeepStrictEqual(destination, before)) return before
      await this.#write(destination, false, audit?.(destination, before))
      this.#putDestination(destination)
      return destination
    })
  }

  deleteDestination(id: string, audit?: Audit<Destination>, check?: Check<Destination>): Promise<boolean> {
    return this.#inTurn(async () => {
      const before = this.#configuration.destinations.get(id)
      if (before === undefined) return false
      check?.(before)
      const deleted = await this.#parts.writer.run('deleteDestination', { id, ...this.#note(audit?.(null, before)) })
      if (!deleted) return false
      const destinations = new Map(this.#configuration.destinations)
      destinations.delete(id)
      this.#change({ destinations })
      this.#parts.onDestinationDeleted(id)
      return true
    })
  }

  createOAuthApp(app: FromStored<NewOAuthApp>, audit?: Audit<OAuthApp>): Promise<OAuthApp> {
    return this.#inTurn(async () => {
      const created: OAuthApp = { ...resolve(app, this.#configuration), id: newId('app'), createdAtMs: this.#parts.nowMs() }
      const note = this.#note(audit?.(created, null))
      await this.#parts.writer.run('putOAuthApp', { app: created, create: true, ...note })
      this.#putOAuthApp(created)
      return created
    })
  }

  updateOAuthApp(id: string, wanted: ChangeOf<OAuthApp, NewOAuthApp>, audit?: Audit<OAuthApp>): Promise<OAuthApp | undefined> {
    return this.#inTurn(async () => {
      const before = this.#configuration.oauthApps.get(id)
      if (before === undefined) return undefined
      const app: OAuthApp = { ...before, ...resolve(wanted, before, this.#configuration) }
      if (isDeepStrictEqual(app, before)) return before
      await this.#parts.writer.run('putOAuthApp', { app, create: false, ...this.#note(audit?.(app, before)) })
      this.#putOAuthApp(app)
      return app
    })
  }

  deleteOAuthApp(id: string, audit?: Audit<OAuthApp>, check?: Check<OAuthApp>): Promise<boolean> {
    return this.#inTurn(async () => {
      const before = this.#configuration.oauthApps.get(id)
      if (before === undefined) return false
      check?.(before)
      const note = this.#note(audit?.(null, before))
      if (!(await this.#parts.writer.run('deleteOAuthApp', { id, ...note }))) return false
      const oauthApps = new Map(this.#configuration.oauthApps)
      oauthApps.delete(id)
      this.#change({ oauthApps })
      return true
    })
  }

  createToken(token: FromStored<NewControlToken>, audit?: Audit<ControlToken>): Promise<ControlToken> {
    return this.#inTurn(async () => {
      const created: ControlToken = { ...resolve(token, this.#configuration), id: newId('tok'), createdAtMs: this.#parts.nowMs() }
      await this.#parts.writer.run('createToken', { token: created, ...this.#note(audit?.(created, null)) })
      this.#change({ tokens: new Map(this.#configuration.tokens).set(created.id, created) })
      return created
    })
  }

  deleteToken(id: string, audit?: Audit<ControlToken>): Promise<boolean> {
    return this.#inTurn(async () => {
      const before = this.#configuration.tokens.get(id)
      if (before === undefined) return false
      const note = this.#note(audit?.(null, before))
      if (!(await this.#parts.writer.run('deleteToken', { id, ...note }))) return false
      const tokens = new Map(this.#configuration.tokens)
      tokens.delete(id)
      this.#change({ tokens })
      return true
    })
  }

  tokenUses(): Promise<{ id: string; atMs: number }[]> {
    return this.#parts.reader.ask('configuration', 'tokenUses')
  }

  async useToken(id: string, atMs: number): Promise<void> {
    await this.#parts.writer.run('useToken', { id, atMs })
  }

  getSetting(name: string): Promise<string | undefined> {
    return this.#parts.reader.ask('configuration', 'setting', name)
  }

  async setSetting(name: string, value: string): Promise<void> {
    await this.#parts.writer.run('setSetting', { name, value })
  }

  /** For work that depends on the configuration without being part of it: no change is made until `work` is done. */
  exclusive<T>(work: (configuration: Configuration) => Promise<T>): Promise<T> {
    return this.#inTurn(() => work(this.#configuration))
  }

  keepSecret(name: StoredSecret, fresh: string): Promise<string> {
    const setting = SECRET_PREFIX + name
    return this.#inTurn(async () => {
      const sealed = this.#secretBox.seal(fresh, setting)
      return this.#secretBox.open(await this.#parts.writer.run('keepSecret', { name: setting, sealed }), setting)
    })
  }

  reseal(box: SecretBox, audit?: Audit<{ secrets: number }>, without: readonly StoredSecret[] = []): Promise<number> {
    const removed = new Set(without.map((name) => SECRET_PREFIX + name))
    return this.#inTurn(async () => {
      const { reader, writer } = this.#parts
      const destinations = [...this.#configuration.destinations.values()].map((destination) => sealDestination(destination, box))
      const stored = await reader.ask('configuration', 'secrets')
      const settings = stored.map(
        ({ name, value }) => [name, removed.has(name) ? null : box.seal(this.#secretBox.open(value, name), name)] as const,
      )
      const inDestinations = destinations.reduce((sum, destination) => sum + sealedCount(destination), 0)
      const secrets = inDestinations + settings.filter(([, value]) => value !== null).length
      await writer.run('reseal', { destinations, settings, ...this.#note(audit?.({ secrets }, null)) })
      this.#secretBox = box
      return secrets
    })
  }

  /** As it was written by others; read from the file again it would take long, and wait for whoever reads there. */
  suppress(sourceIds: readonly string[], userIds: readonly string[]): void {
    const suppressions = new Map(this.#configuration.suppressions)
    for (const sourceId of sourceIds) suppressions.set(sourceId, new Set([...(suppressions.get(sourceId) ?? []), ...userIds]))
    this.#change({ suppressions })
  }

  /** Null: of all sources. */
  unsuppress(userId: string, sourceId: string | null): void {
    const suppressions = new Map(this.#configuration.suppressions)
    for (const [id, users] of this.#configuration.suppressions) {
      if ((sourceId !== null && id !== sourceId) || !users.has(userId)) continue
      const left = new Set(users)
      left.delete(userId)
      if (left.size === 0) suppressions.delete(id)
      else suppressions.set(id, left)
    }
    this.#change({ suppressions })
  }

  /** From the file, at the start. */
  async reload(): Promise<void> {
    const { sources, destinations, suppressions, oauthApps, tokens } = await this.#parts.reader.ask('configuration', 'all')
    const suppressed = new Map<string, Set<string>>()
    for (const { sourceId, userId } of suppressions) {
      const users = suppressed.get(sourceId) ?? new Set()
      suppressed.set(sourceId, users.add(userId))
    }
    this.#change({
      sources: new Map(sources.map((source) => [source.id, source])),
      destinations: new Map(destinations.map((destination) => [destination.id, openDestination(destination, this.#secretBox)])),
      suppressions: suppressed,
      oauthApps: new Map(oauthApps.map((app) => [app.id, app])),
      tokens: new Map(tokens.map((token) => [token.id, token])),
    })
  }

  /** Throws SecretBoxError for secrets that the key does not open; those of destinations are opened by `reload`. */
  async checkSecrets(): Promise<void> {
    for (const { name, value } of await this.#parts.reader.ask('configuration', 'secrets')) this.#secretBox.open(value, name)
  }

  #change(change: Partial<Configuration>): void {
    this.#configuration = { ...this.#configuration, ...change }
    for (const listener of this.#listeners) listener(this.#configuration)
  }

  #putSource(source: Source): void {
    this.#change({ sources: new Map(this.#configuration.sources).set(source.id, source) })
  }

  #putDestination(destination: Destination): void {
    this.#change({ destinations: new Map(this.#configuration.destinations).set(destination.id, destination) })
  }

  #putOAuthApp(app: OAuthApp): void {
    this.#change({ oauthApps: new Map(this.#configuration.oauthApps).set(app.id, app) })
  }

  async #write(destination: Destination, create: boolean, audit?: NewAuditEntry): Promise<void> {
    const { writer, nowMs } = this.#parts
    await writer.run('putDestination', { destination: sealDestination(destination, this.#secretBox), create, ...auditNote(audit, nowMs()) })
  }

  #note(entry: NewAuditEntry | undefined): { audit?: AuditNote } {
    return auditNote(entry, this.#parts.nowMs())
  }

  #refuseTakenKeys(keys: readonly string[], exceptId: string | null): void {
    for (const source of this.#configuration.sources.values()) {
      if (source.id !== exceptId && source.writeKeys.some((key) => keys.includes(key))) throw new WriteKeyTaken()
    }
  }
}

/** Those that name the source, as they are without it. */
function detachedFrom<T extends { sourceIds: readonly string[] }>(things: ReadonlyMap<string, T>, sourceId: string): T[] {
  const detached: T[] = []
  for (const thing of things.values()) {
    const sourceIds = thing.sourceIds.filter((id) => id !== sourceId)
    if (sourceIds.length < thing.sourceIds.length) detached.push({ ...thing, sourceIds })
  }
  return detached
}

function withThose<T extends { id: string }>(things: ReadonlyMap<string, T>, changed: readonly T[]): Map<string, T> {
  return new Map([...things, ...changed.map((thing) => [thing.id, thing] as const)])
}
