// What operators change, on any node: sources, destinations, applications, tokens, each with who did it; and the small things kept
// beside them. How a change is made so that all nodes agree is in shared-configuration.ts. Secrets are sealed on the way to
// the database.

import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { SecretBox } from '../../secrets/secret-box.ts'
import { emptiedDestination, sealDestination, sealedCount } from '../configuration/stored-destination.ts'
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
  type NewControlToken,
  type NewDestination,
  type NewOAuthApp,
  type NewSource,
  type OAuthApp,
  type Source,
  type StoredSecret,
  type UsedAssertion,
  WriteKeyTaken,
} from '../store.ts'
import { SharedConfiguration, type SharedOptions } from './cluster/shared-configuration.ts'
import { writeAudit } from './rows/audit-entries.ts'
import { keepSecret, readSetting, resealSettings, tokenUses, useAssertion, useToken, writeSetting } from './rows/keepsakes.ts'
import type { Parts } from './session/parts.ts'

export class Configuring extends SharedConfiguration implements ConfigurationStore {
  readonly #parts: Parts

  constructor(parts: Parts, options: SharedOptions) {
    super(parts, options)
    this.#parts = parts
  }

  // ── Sources ──

  createSource(source: FromStored<NewSource>, audit?: Audit<Source>): Promise<Source> {
    return this.change(async (change) => {
      const created: Source = { ...resolve(source, change.configuration), id: newId('src'), createdAtMs: this.#parts.nowMs() }
      refuseTakenKeys(change.configuration, created.writeKeys, null)
      await change.create('sources', created)
      await change.note(audit?.(created, null))
      return created
    })
  }

  updateSource(id: string, wanted: ChangeOf<Source, NewSource>, audit?: Audit<Source>): Promise<Source | undefined> {
    return this.change(async (change) => {
      const before = change.configuration.sources.get(id)
      if (before === undefined) return undefined
      const fields = resolve(wanted, before, change.configuration)
      if (fields.writeKeys) refuseTakenKeys(change.configuration, fields.writeKeys, id)
      const source: Source = { ...before, ...fields }
      if (isDeepStrictEqual(source, before)) return before
      await change.update('sources', source)
      await change.note(audit?.(source, before))
      return source
    })
  }

  deleteSource(id: string, audit?: Audit<Source>, check?: Check<Source>): Promise<boolean> {
    return this.change(async (change) => {
      const { sources, destinations, oauthApps } = change.configuration
      const before = sources.get(id)
      if (before === undefined) return false
      check?.(before)
      await change.delete('sources', before)
      for (const left of detachedFrom(destinations, id)) await change.update('destinations', sealDestination(left, this.secretBox))
      for (const left of detachedFrom(oauthApps, id)) await change.putApp(left)
      await change.note(audit?.(null, before))
      return true
    })
  }

  // ── Destinations ──

  createDestination(destination: FromStored<NewDestination>, audit?: Audit<Destination>): Promise<Destination> {
    return this.change(async (change) => {
      const created: Destination = { ...resolve(destination, change.configuration), id: newId('dst'), createdAtMs: this.#parts.nowMs() }
      await change.create('destinations', sealDestination(created, this.secretBox))
      await change.note(audit?.(created, null))
      return created
    })
  }

  updateDestination(
    id: string,
    wanted: ChangeOf<Destination, NewDestination>,
    audit?: Audit<Destination>,
  ): Promise<Destination | undefined> {
    return this.change(async (change) => {
      const before = change.configuration.destinations.get(id)
      if (before === undefined) return undefined
      const destination: Destination = { ...before, ...resolve(wanted, before, change.configuration) }
      if (isDeepStrictEqual(destination, before)) return before
      await change.update('destinations', sealDestination(destination, this.secretBox))
      await change.note(audit?.(destination, before))
      return destination
    })
  }

  deleteDestination(id: string, audit?: Audit<Destination>, check?: Check<Destination>): Promise<boolean> {
    return this.change(async (change) => {
      const before = change.configuration.destinations.get(id)
      if (before === undefined) return false
      check?.(before)
      await change.delete('destinations', emptiedDestination(before))
      await change.note(audit?.(null, before))
      return true
    })
  }

  // ── OAuth applications ──

  createOAuthApp(app: FromStored<NewOAuthApp>, audit?: Audit<OAuthApp>): Promise<OAuthApp> {
    return this.change(async (change) => {
      const created: OAuthApp = { ...resolve(app, change.configuration), id: newId('app'), createdAtMs: this.#parts.nowMs() }
      await change.putApp(created)
      await change.note(audit?.(created, null))
      return created
    })
  }

  updateOAuthApp(id: string, wanted: ChangeOf<OAuthApp, NewOAuthApp>, audit?: Audit<OAuthApp>): Promise<OAuthApp | undefined> {
    return this.change(async (change) => {
      const before = change.configuration.oauthApps.get(id)
      if (before === undefined) return undefined
      const app: OAuthApp = { ...before, ...resolve(wanted, before, change.configuration) }
      if (isDeepStrictEqual(app, before)) return before
      await change.putApp(app)
      await change.note(audit?.(app, before))
      return app
    })
  }

  deleteOAuthApp(id: string, audit?: Audit<OAuthApp>, check?: Check<OAuthApp>): Promise<boolean> {
    return this.change(async (change) => {
      const before = change.configuration.oauthApps.get(id)
      if (before === undefined) return false
      check?.(before)
      await change.remove('oauth_apps', id)
      await change.note(audit?.(null, before))
      return true
    })
  }

  // ── Tokens ──

  createToken(token: FromStored<NewControlToken>, audit?: Audit<ControlToken>): Promise<ControlToken> {
    return this.change(async (change) => {
      const created: ControlToken = { ...resolve(token, change.configuration), id: newId('tok'), createdAtMs: this.#parts.nowMs() }
      await change.createToken(created)
      await change.note(audit?.(created, null))
      return created
    })
  }

  deleteToken(id: string, audit?: Audit<ControlToken>): Promise<boolean> {
    return this.change(async (change) => {
      const before = change.configuration.tokens.get(id)
      if (before === undefined) return false
      await change.remove('tokens', id)
      await change.note(audit?.(null, before))
      return true
    })
  }

  tokenUses(): Promise<{ id: string; atMs: number }[]> {
    return tokenUses(this.#parts.database)
  }

  useToken(id: string, atMs: number): Promise<void> {
    return useToken(this.#parts.database, id, atMs)
  }

  // ── Settings, secrets, assertions ──

  getSetting(name: string): Promise<string | undefined> {
    return readSetting(this.#parts.database, name)
  }

  setSetting(name: string, value: string): Promise<void> {
    return writeSetting(this.#parts.database, name, value)
  }

  useAssertion(assertion: UsedAssertion, nowMs: number): Promise<boolean> {
    return useAssertion(this.#parts.database, assertion, nowMs)
  }

  keepSecret(name: StoredSecret, fresh: string): Promise<string> {
    return this.locked((ask) => keepSecret(ask, this.secretBox, name, fresh))
  }

  reseal(box: SecretBox, audit?: Audit<{ secrets: number }>, without: readonly StoredSecret[] = []): Promise<number> {
    return this.useKey(box, async (ask, destinations) => {
      let secrets = await resealSettings(ask, this.secretBox, box, without)
      for (const destination of destinations) {
        const stored = sealDestination(destination, box)
        secrets += sealedCount(stored)
        // It is the same as before, so its version is.
        await ask('UPDATE destinations SET doc = $2 WHERE id = $1', [stored.id, JSON.stringify(stored)])
      }
      await writeAudit(ask, this.#parts.ids, audit?.({ secrets }, null), this.#parts.nowMs())
      return secrets
    })
  }
}

function refuseTakenKeys({ sources }: Configuration, keys: readonly string[], exceptId: string | null): void {
  for (const source of sources.values()) {
    if (source.id !== exceptId && source.writeKeys.some((key) => keys.includes(key))) throw new WriteKeyTaken()
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

function newId(prefix: string): string {
  return `${prefix}_${randomBytes(9).toString('base64url').replaceAll(/[-_]/g, 'x')}`
}
