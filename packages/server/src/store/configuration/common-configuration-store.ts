// Changes by operators: creates, updates and deletes sources, destinations, OAuth applications, tokens and tracking plans, each with its audit entry, and
// the secrets that are stored beside them. Every change is computed from the stored state, under the lock that all changes take.

import { isDeepStrictEqual } from 'node:util'
import { newId } from '../../model/new-id.ts'
import type { SecretBox } from '../../secrets/secret-box.ts'
import { type Check, type ConfigurationStore, type DestinationVersion, SourceHasPlan, WriteKeyTaken } from '../port/configuration.ts'
import { type ChangeOf, type FromStored, resolve } from '../port/from-stored.ts'
import type { Page, PageRequest } from '../port/pages.ts'
import type { SecretStore, StoredSecret } from '../port/secrets.ts'
import { type Audit, type Configuration, type Destination, type NewPlan, type Source, type StoredPlan, SYSTEM_SOURCE } from '../store.ts'
import { type ConfigurationChanges, SECRET_PREFIX, type SettingRows } from './configuration-rows.ts'
import { dropAllVersions, listVersions, readVersion, reencryptVersions, withVersion, writeVersion } from './destination-versions.ts'
import type { ResourceKind, Resources } from './resource-rows.ts'
import { encryptDestination, secretCount } from './stored-destination.ts'

const ID_PREFIXES: Record<ResourceKind, string> = { sources: 'src', destinations: 'dst', oauthApps: 'app', tokens: 'tok', plans: 'pln' }

type NewOf<Resource> = Resource extends unknown ? Omit<Resource, 'id' | 'createdAtMs'> : never
type New<K extends ResourceKind> = NewOf<Resources[K]>

export class CommonConfigurationStore implements Omit<ConfigurationStore, keyof SettingRows>, SecretStore {
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
  readonly deletePlan = this.#deleting('plans')

  ensureSystemSource(): Promise<void> {
    return this.#changes.change(async (change) => {
      if (change.configuration.sources.has(SYSTEM_SOURCE)) return
      const source: Source = {
        id: SYSTEM_SOURCE,
        name: SYSTEM_SOURCE,
        enabled: true,
        writeKeys: [],
        requireOAuth: false,
        builtIn: true,
        createdAtMs: this.#nowMs(),
      }
      await change.create('sources', source)
    })
  }

  // ── Tracking plans ──

  createPlan(wanted: FromStored<NewPlan>, audit?: Audit<StoredPlan>): Promise<StoredPlan> {
    return this.#creating('plans')((configuration) => {
      const plan = resolve(wanted, configuration)
      rejectPlannedSources(configuration, plan.sourceIds, null)
      return { ...plan, version: 1 }
    }, audit)
  }

  updatePlan(id: string, wanted: ChangeOf<StoredPlan, NewPlan>, audit?: Audit<StoredPlan>): Promise<StoredPlan | undefined> {
    return this.#updating('plans')(
      id,
      (before, configuration) => {
        const change = resolve(wanted, before, configuration)
        const after = { ...before, ...change }
        rejectPlannedSources(configuration, after.sourceIds, id)
        const isSame = isDeepStrictEqual({ ...after, sourceIds: before.sourceIds }, before)
        return isSame ? change : { ...change, version: before.version + 1 }
      },
      audit,
    )
  }

  // ── Versions of destinations ──

  async destinationVersions(id: string, page: PageRequest): Promise<Page<DestinationVersion>> {
    const destination = this.#changes.configuration.destinations.get(id)
    return destination === undefined ? { data: [], next: null } : listVersions(this.#changes, destination, page)
  }

  async destinationVersion(id: string, version: number): Promise<DestinationVersion | undefined> {
    const destination = this.#changes.configuration.destinations.get(id)
    return destination && readVersion(this.#changes, destination, version)
  }

  // ── Secrets ──

  getOrCreate(name: StoredSecret, fresh: string): Promise<string> {
    const setting = SECRET_PREFIX + name
    return this.#changes.change(async (change) => {
      const stored = (await change.tables.secrets()).find((secret) => secret.name === setting)
      if (stored !== undefined) return change.secretBox.open(stored.value, setting)
      await change.tables.setSetting(setting, change.secretBox.seal(fresh, setting))
      return fresh
    })
  }

  rotateKey(box: SecretBox, audit?: Audit<{ secrets: number }>, remove: readonly StoredSecret[] = []): Promise<number> {
    const removed = new Set(remove.map((name) => SECRET_PREFIX + name))
    return this.#changes.change(async (change) => {
      let secrets = 0
      for (const { name, value } of await change.tables.secrets()) {
        const encrypted = removed.has(name) ? null : box.seal(change.secretBox.open(value, name), name)
        if (encrypted !== null) secrets++
        await change.tables.setSetting(name, encrypted)
      }
      const destinations = [...change.configuration.destinations.values()].map((destination) => encryptDestination(destination, box))
      for (const destination of destinations) secrets += secretCount(destination)
      for (const { id } of destinations) await reencryptVersions(change, id, box)
      await change.useKey(box, destinations)
      await change.note(audit?.({ secrets }, null))
      return secrets
    })
  }

  // ── Resources of every kind ──

  #creating<K extends ResourceKind>(kind: K) {
    return (wanted: FromStored<New<K>>, audit?: Audit<Resources[K]>): Promise<Resources[K]> =>
      this.#changes.change(async (change) => {
        const fields = resolve(wanted, change.configuration)
        const created = { ...fields, id: newId(ID_PREFIXES[kind]), createdAtMs: this.#nowMs() } as unknown as Resources[K]
        rejectTakenWriteKeys(change.configuration, created, null)
        const entry = audit?.(created, null)
        await change.create(kind, created)
        if (isDestination(kind, created)) await writeVersion(change, null, created, { entry, atMs: this.#nowMs() })
        await change.note(entry)
        return created
      })
  }

  /** Returns undefined if there is no resource with this id. Writes nothing if nothing changes. */
  #updating<K extends ResourceKind>(kind: K) {
    return (id: string, wanted: ChangeOf<Resources[K], New<K>>, audit?: Audit<Resources[K]>): Promise<Resources[K] | undefined> =>
      this.#changes.change(async (change) => {
        const before = stored(change.configuration, kind).get(id)
        if (before === undefined) return undefined
        const fields = resolve(wanted, before, change.configuration)
        rejectTakenWriteKeys(change.configuration, fields, id)
        const asked: Resources[K] = { ...before, ...fields }
        const isVersioned = isDestination(kind, before) && isDestination(kind, asked)
        const updated = isVersioned ? ((await withVersion(change, before, asked)) as typeof asked) : asked
        if (isDeepStrictEqual(updated, before)) return before
        const entry = audit?.(updated, before)
        await change.update(kind, updated)
        if (isVersioned) {
          const restoredFrom = asked.version === before.version ? null : asked.version
          await writeVersion(change, before, updated as Destination, { entry, atMs: this.#nowMs(), restoredFrom })
        }
        await change.note(entry)
        return updated
      })
  }

  #deleting<K extends ResourceKind>(kind: K) {
    return (id: string, audit?: Audit<Resources[K]>, check?: Check<Resources[K]>): Promise<boolean> =>
      this.#changes.change(async (change) => {
        const before = stored(change.configuration, kind).get(id)
        if (before === undefined) return false
        check?.(before)
        await change.delete(kind, before)
        if (kind === 'sources') {
          for (const detached of detachedFrom(id, change.configuration.destinations)) await change.update('destinations', detached)
          for (const detached of detachedFrom(id, change.configuration.oauthApps)) await change.update('oauthApps', detached)
          for (const detached of detachedFrom(id, change.configuration.plans)) await change.update('plans', detached)
        }
        if (kind === 'destinations') {
          await dropAllVersions(change, id)
          await change.tables.dropState(id)
          for (const other of change.configuration.destinations.values()) {
            if (other.deadLetter === id) await change.update('destinations', { ...other, deadLetter: null })
          }
        }
        await change.note(audit?.(null, before))
        return true
      })
  }
}

function isDestination(kind: ResourceKind, _resource: Resources[ResourceKind]): _resource is Destination {
  return kind === 'destinations'
}

function stored<K extends ResourceKind>(configuration: Configuration, kind: K): ReadonlyMap<string, Resources[K]> {
  return configuration[kind] as ReadonlyMap<string, Resources[K]>
}

/** A write key belongs to one source only. Other kinds of resources have no write keys. */
function rejectTakenWriteKeys({ sources }: Configuration, fields: object, exceptId: string | null): void {
  const { writeKeys } = fields as Partial<Source>
  if (writeKeys === undefined) return
  for (const source of sources.values()) {
    if (source.id !== exceptId && source.writeKeys.some((key) => writeKeys.includes(key))) throw new WriteKeyTaken()
  }
}

function rejectPlannedSources({ plans }: Configuration, sourceIds: readonly string[], exceptId: string | null): void {
  for (const plan of plans.values()) {
    const taken = plan.id === exceptId ? undefined : plan.sourceIds.find((id) => sourceIds.includes(id))
    if (taken !== undefined) throw new SourceHasPlan(taken)
  }
}

/** The resources that are attached to the source, with the source removed. */
function detachedFrom<T extends { sourceIds: readonly string[] }>(sourceId: string, resources: ReadonlyMap<string, T>): T[] {
  const detached: T[] = []
  for (const resource of resources.values()) {
    const sourceIds = resource.sourceIds.filter((id) => id !== sourceId)
    if (sourceIds.length < resource.sourceIds.length) detached.push({ ...resource, sourceIds })
  }
  return detached
}
