// Deletion requests and suppressions on the main thread: a request is written as a whole, and its purge goes on in steps that
// are taken up again at the next start. Users stand by pseudonym in what is kept for long; the key to those is here alone.

import { randomUUID } from 'node:crypto'
import { suppress, unsuppress } from '../configuration/suppressions.ts'
import type { DeletedUsers } from '../deletions/deleted-users.ts'
import type { DeletionQuestion } from '../deletions/deletion-question.ts'
import { newPseudonymKey, pseudonymOf } from '../deletions/pseudonyms.ts'
import { resolve } from '../port/from-stored.ts'
import type {
  Audit,
  DeletionDetail,
  DeletionFilter,
  DeletionStore,
  DeletionSummary,
  DeletionTarget,
  FromStored,
  NewDeletion,
  NewSuppressions,
  Page,
  PageRequest,
  SecretStore,
  Shipment,
  Suppression,
  SuppressionFilter,
  Taker,
} from '../store.ts'
import type { ConfigurationFile } from './configuration-file.ts'
import type { UnfinishedPurge } from './rows/read-configuration.ts'
import type { GroupCommit } from './threads/group-commit.ts'
import type { ReadingThread } from './threads/reading-thread.ts'

export interface DeletingParts {
  writer: GroupCommit
  reader: ReadingThread
  changes: ConfigurationFile
  secrets: SecretStore
  nowMs: () => number
  taker: () => Taker | null
  deleted: DeletedUsers
  /** Resolves when everything that was given to the store before is committed, or has failed. */
  release: (shipments: readonly Pick<Shipment, 'id' | 'claim' | 'destinationId'>[]) => Promise<unknown>
  isClosed: () => boolean
  /** Work that goes on after the answer. */
  run: (work: Promise<void>) => void
}

export class Deleting implements DeletionStore {
  readonly #parts: DeletingParts
  #pseudonymKey: Promise<string> | undefined

  constructor(parts: DeletingParts) {
    this.#parts = parts
  }

  async create(wanted: FromStored<NewDeletion>, audit?: Audit<NewDeletion & { id: string }>): Promise<DeletionDetail> {
    const { changes, reader, nowMs, taker, run, release } = this.#parts
    const id = `del_${randomUUID()}`
    const { deletion, targets, created } = await changes.change(async (change) => {
      const { sources, destinations } = change.configuration
      const asked = resolve(wanted, change.configuration)
      const deletion = { ...asked, userIds: [...new Set(asked.userIds)] }
      const sourceIds = [...new Set(deletion.sourceIds ?? sources.keys())]
      const targets = sourceIds.map((sourceId) => ({
        sourceId,
        destinationIds: [...destinations.values()]
          .filter(({ enabled, sourceIds: of }) => enabled && of.includes(sourceId))
          .map(({ id }) => id),
      }))
      const atMs = nowMs()
      if (deletion.suppress) await suppress(change, sourceIds, deletion.userIds, atMs)
      change.note(audit?.({ ...deletion, id }, null))
      return { deletion, targets, created: change.run('createDeletion', { id, deletion, atMs, targets }) }
    })
    const { num, end, held } = await created
    // A claim that shared the commit may have been answered just before, and whoever asked has it only at the end of this turn.
    await new Promise(setImmediate)
    run(this.purge({ ...deletion, num, end }))
    // Delivery knows of the deletion now, so the delete messages can be claimed. When this is answered, every message that was on its way to
    // the store has been stored, and will be purged, or has failed.
    await release(held)
    for (const id of new Set(targets.flatMap(({ destinationIds }) => destinationIds))) taker()?.wake(id)
    const detail = await reader.ask('deletions', 'one', id)
    if (detail === undefined) throw new Error(`deletion ${id} is not there`)
    return detail
  }

  async list(filter: DeletionFilter, page: PageRequest): Promise<Page<DeletionSummary>> {
    return this.#parts.reader.ask('deletions', 'list', await this.#named(filter), page)
  }

  one(id: string): Promise<DeletionDetail | undefined> {
    return this.#parts.reader.ask('deletions', 'one', id)
  }

  async targets(id: string, filter: DeletionFilter, page: PageRequest): Promise<Page<DeletionTarget>> {
    return this.#parts.reader.ask('deletions', 'targets', id, await this.#named(filter), page)
  }

  suppressions(filter: SuppressionFilter, page: PageRequest): Promise<Page<Suppression>> {
    return this.#parts.reader.ask('deletions', 'suppressions', filter, page)
  }

  suppress(wanted: FromStored<NewSuppressions>, audit?: Audit<NewSuppressions>): Promise<number> {
    return this.#parts.changes.change(async (change) => {
      const suppressions = resolve(wanted, change.configuration)
      const sourceIds = [...new Set(suppressions.sourceIds ?? change.configuration.sources.keys())]
      const added = await suppress(change, sourceIds, [...new Set(suppressions.userIds)], this.#parts.nowMs())
      if (added > 0) change.note(audit?.(suppressions, null))
      return added
    })
  }

  unsuppress(userId: string, sourceId: string | null, audit?: Audit<{ userId: string; sourceId: string | null }>): Promise<number> {
    return this.#parts.changes.change(async (change) => {
      const removed = await unsuppress(change, userId, sourceId)
      if (removed > 0) change.note(audit?.(null, { userId, sourceId }))
      return removed
    })
  }

  async pseudonym(userId: string): Promise<string> {
    return pseudonymOf(userId, await this.#key())
  }

  /** From this call on, no message that it will purge is sent any more. */
  async purge({ num, userIds, sourceIds, suppress, end }: UnfinishedPurge): Promise<void> {
    const { writer, deleted, isClosed } = this.#parts
    // With suppression, the first step sets the end of the purge: see write-deletions.ts.
    let before = suppress ? Number.POSITIVE_INFINITY : end
    deleted.add(num, {
      sourceIds: sourceIds === null ? null : new Set(sourceIds),
      userIds: new Set(userIds),
      covers: (segment) => (segment as number) < before,
    })
    let over = false
    while (!over && !isClosed()) {
      const step = await writer.run('purgeStep', { deletion: num }, { again: true })
      before = step.end
      over = step.over
    }
    // The thread answers in order: whatever was read before the last step has been handed out.
    if (over) deleted.remove(num)
  }

  /** Writes down which have ended, and puts pseudonyms in the place of users in those from before. */
  async end(beforeMs: number): Promise<void> {
    const { writer, reader, isClosed } = this.#parts
    if (!(await reader.ask('deletions', 'areNamed'))) return
    const pseudonymKey = await this.#key()
    let after: number | null = 0
    while (after !== null && !isClosed()) {
      after = await writer.run('endDeletion', { after, beforeMs, pseudonymKey })
    }
  }

  async #named({ userId, state }: DeletionFilter): Promise<DeletionQuestion> {
    return userId === undefined ? { state } : { state, user: { userId, pseudonym: await this.pseudonym(userId) } }
  }

  /** Made when it is first needed. */
  #key(): Promise<string> {
    this.#pseudonymKey ??= this.#parts.secrets.keep('pseudonym_key', newPseudonymKey()).catch((error: unknown) => {
      this.#pseudonymKey = undefined
      throw error
    })
    return this.#pseudonymKey
  }
}
