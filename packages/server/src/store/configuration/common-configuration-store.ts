// Changes by operators: creates, updates and deletes sources, destinations, OAuth applications and tokens, each with its audit entry, and
// the secrets that are stored beside them. Every change is computed from what is stored, under the lock that all changes take.

import { isDeepStrictEqual } from 'node:util'
import type { SecretBox } from '../../secrets/secret-box.ts'
import type { Audit } from '../port/audit.ts'
import { type Check, type ConfigurationStore, WriteKeyTaken } from '../port/configuration.ts'
import { type ChangeOf, type FromStored, resolve } from '../port/from-stored.ts'
import type { Configuration, Source } from '../port/model.ts'
import type { SecretStore, StoredSecret } from '../port/secrets.ts'
import type { ConfigurationChanges, SettingRows } from './configuration-rows.ts'
import { newId } from './new-id.ts'
import { type Kind, SECRET_PREFIX, type Things } from './resource-rows.ts'
import { sealDestination, sealedCount } from './stored-destination.ts'

const ID_PREFIXES: Record<Kind, string> = { sources: 'src', destinations: 'dst', oauthApps: 'app', tokens: 'tok' }

type New<K extends Kind> = Omit<Things[K], 'id' | 'createdAtMs'>

export class Configuring implements Omit<ConfigurationStore, keyof SettingRows>, SecretStore {
  readonly #changes: ConfigurationChanges
  readonly #nowMs: () => number

  constructor(changes: ConfigurationChanges, nowMs: () => number) {
    this.#changes = changes
    this.#nowMs = nowMs
  }

  readonly createSource = this.#creating('sources')
  readonly updateSource = this.#updating('sources')
  readonly deleteSource = this.#deleting('sources')
  readonly createDestination = this.#creating('destinations')
  readonly updateDestination = this.#updating('destinations')
  readonly deleteDestination = this.#deleting('destinations')
  readonly createOAuthApp = this.#creating('oauthApps')
  readonly updateOAuthApp = this.#updating('oauthApps')
  readonly deleteOAuthApp = this.#deleting('oauthApps')
  readonly createToken = this.#creating('tokens')
  readonly deleteToken = this.#deleting('tokens')

  // ── Secrets ──

  keep(name: StoredSecret, fresh: string): Promise<string> {
    const setting = SECRET_PREFIX + name
    return this.#changes.change(async (change) => {
      const stored = (await change.secrets()).find((secret) => secret.name === setting)
      if (stored !== undefined) return change.secretBox.open(stored.value, setting)
      await change.setSecret(setting, change.secretBox.seal(fresh, setting))
      return fresh
    })
  }

  reseal(box: SecretBox, audit?: Audit<{ secrets: number }>, without: readonly StoredSecret[] = []): Promise<number> {
    const removed = new Set(without.map((name) => SECRET_PREFIX + name))
    return this.#changes.change(async (change) => {
      let secrets = 0
      for (const { name, value } of await change.secrets()) {
        const sealed = removed.has(name) ? null : box.seal(change.secretBox.open(value, name), name)
        if (sealed !== null) secrets++
        await change.setSecret(name, sealed)
      }
      const destinations = [...change.configuration.destinations.values()].map((destination) => sealDestination(destination, box))
      for (const destination of destinations) secrets += sealedCount(destination)
      await change.useKey(box, destinations)
      await change.note(audit?.({ secrets }, null))
      return secrets
    })
  }

  // ── Things of every kind ──

  #creating<K extends Kind>(kind: K) {
    return (wanted: FromStored<New<K>>, audit?: Audit<Things[K]>): Promise<Things[K]> =>
      this.#changes.change(async (change) => {
        const fields = resolve(wanted, change.configuration)
        const created = { ...fields, id: newId(ID_PREFIXES[kind]), createdAtMs: this.#nowMs() } as Things[K]
        refuseTakenKeys(change.configuration, created, null)
        await change.create(kind, created)
        await change.note(audit?.(created, null))
        return created
      })
  }

  /** Undefined if there is no thing with this id. Writes nothing if nothing changes. */
  #updating<K extends Kind>(kind: K) {
    return (id: string, wanted: ChangeOf<Things[K], New<K>>, audit?: Audit<Things[K]>): Promise<Things[K] | undefined> =>
      this.#changes.change(async (change) => {
        const before = stored(change.configuration, kind).get(id)
        if (before === undefined) return undefined
        const fields = resolve(wanted, before, change.configuration)
        refuseTakenKeys(change.configuration, fields, id)
        const updated: Things[K] = { ...before, ...fields }
        if (isDeepStrictEqual(updated, before)) return before
        await change.update(kind, updated)
        await change.note(audit?.(updated, before))
        return updated
      })
  }

  #deleting<K extends Kind>(kind: K) {
    return (id: string, audit?: Audit<Things[K]>, check?: Check<Things[K]>): Promise<boolean> =>
      this.#changes.change(async (change) => {
        const before = stored(change.configuration, kind).get(id)
        if (before === undefined) return false
        check?.(before)
        await change.delete(kind, before)
        if (kind === 'sources') {
          for (const detached of detachedFrom(id, change.configuration.destinations)) await change.update('destinations', detached)
          for (const detached of detachedFrom(id, change.configuration.oauthApps)) await change.update('oauthApps', detached)
        }
        await change.note(audit?.(null, before))
        return true
      })
  }
}

function stored<K extends Kind>(configuration: Configuration, kind: K): ReadonlyMap<string, Things[K]> {
  return configuration[kind] as ReadonlyMap<string, Things[K]>
}

/** A write key belongs to one source only. Other kinds of things have no write keys. */
function refuseTakenKeys({ sources }: Configuration, fields: object, exceptId: string | null): void {
  const { writeKeys } = fields as Partial<Source>
  if (writeKeys === undefined) return
  for (const source of sources.values()) {
    if (source.id !== exceptId && source.writeKeys.some((key) => writeKeys.includes(key))) throw new WriteKeyTaken()
  }
}

/** The things that are attached to the source, without it. */
function detachedFrom<T extends { sourceIds: readonly string[] }>(sourceId: string, things: ReadonlyMap<string, T>): T[] {
  const detached: T[] = []
  for (const thing of things.values()) {
    const sourceIds = thing.sourceIds.filter((id) => id !== sourceId)
    if (sourceIds.length < thing.sourceIds.length) detached.push({ ...thing, sourceIds })
  }
  return detached
}
