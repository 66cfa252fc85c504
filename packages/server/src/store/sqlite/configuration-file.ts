// The configuration in memory and in the file. Changes are made one at a time. `work` runs on the main thread, which has the key of the
// secrets, so a change only collects its writes; the writing thread then commits all of them as one command. The same changes are
// applied in memory, because reading the configuration from the file again would take long.

import type { SecretBox } from '../../secrets/secret-box.ts'
import { createSerialQueue } from '../../timing/serial-queue.ts'
import type {
  ChangeTables,
  ConfigurationChange,
  ConfigurationChanges,
  SettingRows,
  VersionRow,
} from '../configuration/configuration-rows.ts'
import { checkSecrets } from '../configuration/configuration-tables.ts'
import { InMemoryConfiguration } from '../configuration/in-memory-configuration.ts'
import { columnsOf, docOfDeleted, type ResourceKind, type Resources, TABLES } from '../configuration/resource-rows.ts'
import { decryptDestination, type StoredDestination } from '../configuration/stored-destination.ts'
import type { Configuration, NewAuditEntry, ShipmentConsumer } from '../store.ts'
import type { Call, Topics } from './commands/commands.ts'
import { type Asked, auditNote } from './commands/protocol.ts'
import type { GroupCommit } from './threads/group-commit.ts'
import type { ReaderClient } from './threads/reader-client.ts'

/** What the parts of the store on the main thread share. */
export interface MainContext {
  writer: GroupCommit
  reader: ReaderClient
  /** Wall-clock time. */
  nowMs: () => number
  consumer: () => ShipmentConsumer | null
  configuration: () => Configuration
  isClosed: () => boolean
  /** Runs work in the background. */
  run: (work: Promise<void>) => void
}

export class ConfigurationFile extends InMemoryConfiguration implements ConfigurationChanges {
  readonly #context: MainContext
  readonly #inTurn = createSerialQueue()
  #secretBox: SecretBox

  /** `onDestinationDeleted` cancels the pending deliveries of a deleted destination. */
  constructor(context: MainContext, secretBox: SecretBox, onDestinationDeleted: (id: string) => void) {
    super(onDestinationDeleted)
    this.#context = context
    this.#secretBox = secretBox
  }

  change<T>(work: (change: Change) => Promise<T>): Promise<T> {
    const { writer, reader, nowMs } = this.#context
    return this.#inTurn(async () => {
      const change = new Change(this.configuration, this.#secretBox, reader)
      const result = await work(change)
      const { calls, entry } = change
      // A new key is used, and its audit entry written, even if nothing was encrypted with the old one.
      const isCommitted = calls.length > 0 || entry !== undefined
      const replies = isCommitted ? await writer.run('together', { calls, ...auditNote(entry, nowMs()) }) : []
      this.#secretBox = change.nextBox
      this.replace(change.next)
      for (const [at, answer] of change.answers.entries()) answer(replies[at])
      return result
    })
  }

  get secretBox(): SecretBox {
    return this.#secretBox
  }

  versions(destinationId: string, below: number, limit: number): Promise<VersionRow[]> {
    return this.#context.reader.ask('configuration', 'versions', destinationId, below, limit)
  }

  /** Called at the start. Throws SecretBoxError if the key does not decrypt a secret. */
  async load(): Promise<void> {
    const { reader } = this.#context
    const { destinations, ...rest } = await reader.ask('configuration', 'all')
    this.replace({
      ...rest,
      destinations: new Map(destinations.map((destination) => [destination.id, decryptDestination(destination, this.#secretBox)])),
    })
    await checkSecrets(reader.methods('configuration', 'secrets'), this.#secretBox)
  }
}

export class Change implements ConfigurationChange {
  readonly configuration: Configuration
  readonly secretBox: SecretBox
  readonly tables: ChangeTables
  /** The configuration, and the key with which secrets are encrypted, after the commit. */
  next: Configuration
  nextBox: SecretBox
  entry: NewAuditEntry | undefined
  /** The calls to the writing thread, and the functions that get its answers. */
  readonly calls: Call[] = []
  readonly answers: ((reply: unknown) => void)[] = []

  constructor(before: Configuration, secretBox: SecretBox, reader: ReaderClient) {
    this.configuration = before
    this.next = before
    this.secretBox = secretBox
    this.nextBox = secretBox
    this.tables = {
      ...reader.methods('configuration', 'versions', 'secrets'),
      putVersion: (row) => this.#write('putVersion', row),
      dropVersions: (destinationId, upTo) => this.#write('dropVersions', destinationId, upTo),
      dropState: (destinationId) => this.#write('dropState', destinationId),
      dropStateOf: (userIds) => this.#write('dropStateOf', userIds),
      setSetting: (name, encrypted) => this.#write('setSetting', name, encrypted),
    }
  }

  create<K extends ResourceKind>(kind: K, resource: Resources[K]): void {
    this.#resources(kind).set(resource.id, resource)
    this.#write('insert', TABLES[kind], { id: resource.id, ...columnsOf(kind, resource, this.secretBox) })
  }

  update<K extends ResourceKind>(kind: K, resource: Resources[K]): void {
    this.#resources(kind).set(resource.id, resource)
    this.#write('update', TABLES[kind], resource.id, columnsOf(kind, resource, this.secretBox))
  }

  delete<K extends ResourceKind>(kind: K, resource: Resources[K]): void {
    this.#resources(kind).delete(resource.id)
    const [table, doc] = [TABLES[kind], docOfDeleted(kind, resource)]
    if (doc === null) this.#write('delete', table, resource.id)
    else this.#write('update', table, resource.id, { doc, deleted: 1 })
  }

  suppress(sourceIds: readonly string[], userIds: readonly string[], atMs: number): void {
    const suppressions = new Map(this.next.suppressions)
    for (const id of sourceIds) suppressions.set(id, new Set([...(suppressions.get(id) ?? []), ...userIds]))
    this.next = { ...this.next, suppressions }
    this.#write('suppress', sourceIds, userIds, atMs)
  }

  unsuppress(sourceIds: readonly string[], userId: string): void {
    const suppressions = new Map(this.next.suppressions)
    for (const id of sourceIds) {
      const users = new Set(suppressions.get(id))
      users.delete(userId)
      if (users.size === 0) suppressions.delete(id)
      else suppressions.set(id, users)
    }
    this.next = { ...this.next, suppressions }
    this.#write('unsuppress', sourceIds, userId)
  }

  useKey(box: SecretBox, destinations: readonly StoredDestination[]): void {
    this.nextBox = box
    for (const stored of destinations) this.#write('update', TABLES.destinations, stored.id, { doc: JSON.stringify(stored) })
  }

  note(entry: NewAuditEntry | undefined): void {
    this.entry = entry
  }

  /** Adds another call to the transaction of the change. It answers after the commit, so `work` must not await it. */
  call<T extends keyof Topics, K extends keyof Topics[T] & string>(
    topic: T,
    name: K,
    ...args: Parameters<Asked<Topics[T]>[K]>
  ): ReturnType<Asked<Topics[T]>[K]> {
    this.calls.push({ topic, name, args })
    return new Promise((resolve) => this.answers.push(resolve)) as ReturnType<Asked<Topics[T]>[K]>
  }

  #write<K extends keyof Topics['configuration']>(name: K, ...args: Parameters<Asked<Topics['configuration']>[K]>): void {
    void this.call('configuration', name, ...args)
  }

  /** The map is copied once per change, because deleting a source may change thousands of destinations that are attached to it. */
  #resources<K extends ResourceKind>(kind: K): Map<string, Resources[K]> {
    if (this.next[kind] === this.configuration[kind]) this.next = { ...this.next, [kind]: new Map<string, unknown>(this.next[kind]) }
    return this.next[kind] as unknown as Map<string, Resources[K]>
  }
}

export function createSettings(writer: GroupCommit, reader: ReaderClient): SettingRows {
  return {
    ...reader.methods('configuration', 'getSetting', 'tokenUses'),
    ...writer.methods('configuration', 'setSetting', 'useToken', 'useAssertion'),
  }
}
