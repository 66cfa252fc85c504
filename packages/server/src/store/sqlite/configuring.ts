// The configuration: in memory as a whole, for the hot paths, and in the file. A change is written first, with who made
// it, and seen after; one at a time, each made from what the one before left. Secrets are sealed on the way to the file.

import { randomBytes } from 'node:crypto'
import type { SecretBox } from '../../secret-box.ts'
import {
  type Audit,
  type Configuration,
  type ControlStore,
  type Destination,
  type NewAuditEntry,
  type NewDestination,
  type NewSource,
  NO_FILTER,
  type Source,
  WriteKeyTaken,
} from '../store.ts'
import { type AuditNote, auditNote, type StoredDestination } from './commands.ts'
import type { GroupCommit } from './group-commit.ts'
import type { ReadingThread } from './reading-thread.ts'

export interface ConfiguringParts {
  writer: GroupCommit
  reader: ReadingThread
  secretBox: SecretBox
  nowMs: () => number
  /** What a deleted destination is still owed is to be cancelled. */
  onDestinationDeleted: (id: string) => void
}

type Changes = Pick<
  ControlStore,
  'createSource' | 'updateSource' | 'deleteSource' | 'createDestination' | 'updateDestination' | 'deleteDestination'
>

export class Configuring implements Changes {
  readonly #parts: ConfiguringParts
  readonly #listeners: ((configuration: Configuration) => void)[] = []
  #configuration: Configuration = { sources: new Map(), destinations: new Map(), suppressions: new Map(), oauthApps: new Map() }

  constructor(parts: ConfiguringParts) {
    this.#parts = parts
  }

  get configuration(): Configuration {
    return this.#configuration
  }

  listen(listener: (configuration: Configuration) => void): void {
    this.#listeners.push(listener)
  }

  createSource(source: NewSource, audit?: Audit<Source>): Promise<Source> {
    return this.inTurn(async () => {
      this.#refuseTakenKeys(source.writeKeys, null)
      const created: Source = { ...source, id: newId('src'), createdAtMs: this.#parts.nowMs() }
      await this.#parts.writer.run<'putSource'>({ kind: 'putSource', source: created, create: true, ...this.#note(audit?.(created, null)) })
      this.#putSource(created)
      return created
    })
  }

  updateSource(id: string, change: Partial<NewSource>, audit?: Audit<Source>): Promise<Source | undefined> {
    return this.inTurn(async () => {
      const before = this.#configuration.sources.get(id)
      if (before === undefined) return undefined
      if (change.writeKeys) this.#refuseTakenKeys(change.writeKeys, id)
      const source: Source = { ...before, ...change }
      await this.#parts.writer.run<'putSource'>({ kind: 'putSource', source, create: false, ...this.#note(audit?.(source, before)) })
      this.#putSource(source)
      return source
    })
  }

  deleteSource(id: string, audit?: Audit<Source>): Promise<boolean> {
    return this.inTurn(async () => {
      const before = this.#configuration.sources.get(id)
      if (before === undefined) return false
      for (const destination of this.#configuration.destinations.values()) {
        if (!destination.sourceIds.includes(id)) continue
        const detached = { ...destination, sourceIds: destination.sourceIds.filter((sourceId) => sourceId !== id) }
        await this.#write(detached, false)
        this.#putDestination(detached)
      }
      if (!(await this.#parts.writer.run<'deleteSource'>({ kind: 'deleteSource', id, ...this.#note(audit?.(null, before)) }))) return false
      const sources = new Map(this.#configuration.sources)
      sources.delete(id)
      this.#change({ sources })
      return true
    })
  }

  createDestination(destination: NewDestination, audit?: Audit<Destination>): Promise<Destination> {
    return this.inTurn(async () => {
      const created: Destination = { ...destination, id: newId('dst'), createdAtMs: this.#parts.nowMs() }
      await this.#write(created, true, audit?.(created, null))
      this.#putDestination(created)
      return created
    })
  }

  updateDestination(id: string, change: Partial<NewDestination>, audit?: Audit<Destination>): Promise<Destination | undefined> {
    return this.inTurn(async () => {
      const before = this.#configuration.destinations.get(id)
      if (before === undefined) return undefined
      const destination: Destination = { ...before, ...change }
      await this.#write(destination, false, audit?.(destination, before))
      this.#putDestination(destination)
      return destination
    })
  }

  deleteDestination(id: string, audit?: Audit<Destination>): Promise<boolean> {
    return this.inTurn(async () => {
      const before = this.#configuration.destinations.get(id)
      if (before === undefined) return false
      const deleted = await this.#parts.writer.run<'deleteDestination'>({
        kind: 'deleteDestination',
        id,
        ...this.#note(audit?.(null, before)),
      })
      if (!deleted) return false
      const destinations = new Map(this.#configuration.destinations)
      destinations.delete(id)
      this.#change({ destinations })
      this.#parts.onDestinationDeleted(id)
      return true
    })
  }

  /** From the file, at the start and after a change that was made there alone. */
  async reload(): Promise<void> {
    const { sources, destinations, suppressions } = await this.#parts.reader.ask('configuration', 'all')
    const suppressed = new Map<string, Set<string>>()
    for (const { sourceId, userId } of suppressions) {
      const users = suppressed.get(sourceId) ?? new Set()
      suppressed.set(sourceId, users.add(userId))
    }
    this.#change({
      sources: new Map(sources.map((source) => [source.id, source])),
      destinations: new Map(destinations.map((destination) => [destination.id, this.#opened(destination)])),
      suppressions: suppressed,
    })
  }

  /** One change at a time. */
  inTurn<T>(change: () => Promise<T>): Promise<T> {
    const result = this.#lastChange.then(change)
    this.#lastChange = result.catch(() => {})
    return result
  }
  #lastChange: Promise<unknown> = Promise.resolve()

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

  async #write(destination: Destination, create: boolean, audit?: NewAuditEntry): Promise<void> {
    const { writer, nowMs } = this.#parts
    await writer.run<'putDestination'>({
      kind: 'putDestination',
      destination: this.#sealed(destination),
      create,
      ...auditNote(audit, nowMs()),
    })
  }

  #note(entry: NewAuditEntry | undefined): { audit?: AuditNote } {
    return auditNote(entry, this.#parts.nowMs())
  }

  #refuseTakenKeys(keys: readonly string[], exceptId: string | null): void {
    for (const source of this.#configuration.sources.values()) {
      if (source.id !== exceptId && source.writeKeys.some((key) => keys.includes(key))) throw new WriteKeyTaken()
    }
  }

  #sealed(destination: Destination): StoredDestination {
    const { sharedSecret, signingSecrets, id } = destination
    const { secretBox } = this.#parts
    return {
      ...destination,
      sharedSecret: sharedSecret === null ? null : secretBox.seal(sharedSecret, id),
      signingSecrets: signingSecrets.map((secret) => secretBox.seal(secret, id)),
    }
  }

  #opened(destination: StoredDestination): Destination {
    const { sharedSecret, signingSecrets, id } = destination
    const { secretBox } = this.#parts
    return {
      ...destination,
      // Destinations that were stored before there were filters have none.
      filter: (destination as Partial<StoredDestination>).filter ?? NO_FILTER,
      sharedSecret: sharedSecret === null ? null : secretBox.open(sharedSecret, id),
      signingSecrets: signingSecrets.map((secret) => secretBox.open(secret, id)),
    }
  }
}

export function newId(prefix: string): string {
  return `${prefix}_${randomBytes(9).toString('base64url').replaceAll(/[-_]/g, 'x')}`
}
