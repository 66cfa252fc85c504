// Deletion requests of the SQLite store. A purge runs in steps; if the process ends before the last, the next start continues it.

import type { DeletedUsers } from '../deletions/deleted-users.ts'
import { type DeletionDraft, Deletions } from '../deletions/deletions.ts'
import type { HeldShipment } from '../delivery/common-delivery-store.ts'
import { type SecretStore, type Settlement, StoreUnavailable } from '../store.ts'
import type { Topics } from './commands/commands.ts'
import type { Change, ConfigurationFile, MainContext } from './configuration-file.ts'
import type { UnfinishedPurge } from './rows/read-configuration.ts'
import { SQLITE_ROW_ORDER } from './schema/row-ids.ts'

interface Tools {
  changes: ConfigurationFile
  secrets: SecretStore
  deleted: DeletedUsers
  /** Resolves when everything that was given to the store before is committed, or has failed. */
  release: (shipments: readonly HeldShipment[]) => Promise<unknown>
}

/** `reply` resolves after the commit. */
interface Written {
  reply: Promise<Awaited<ReturnType<Topics['deletions']['create']>>>
}

/** How long settlements are checked for the users of a finished purge. Longer than a settlement waits for the writing thread. */
const CHECKED_MS = 60_000
/** After this time, a request that is in the file and not known is loaded from it. */
const KNOWN_MS = 2_000

export class SqliteDeletions extends Deletions<Change, Written, number> {
  readonly #context: MainContext
  readonly #tools: Tools
  /** The last request that delivery knows of. */
  #known = 0

  constructor(context: MainContext, tools: Tools) {
    const { changes, secrets } = tools
    super(
      { ...context, secrets, change: (work) => changes.change(work), reads: context.reader.topic('deletions', {}) },
      SQLITE_ROW_ORDER.oldest,
    )
    this.#context = context
    this.#tools = tools
  }

  /** Settles it when delivery knows of all requests. The writing thread refuses a settlement that may contain data of a user of a later one. */
  async settle(settlement: Settlement, write: (settlement: Settlement, known: number) => Promise<number | null>): Promise<void> {
    for (;;) {
      const unknown = await write(this.#tools.deleted.withoutUsers(settlement), this.#known)
      if (unknown === null) return
      await this.#untilKnown(unknown)
    }
  }

  /** Usually a few turns of the event loop: the thread has answered the request before, see begin(). */
  async #untilKnown(request: number): Promise<void> {
    const { reader, isClosed } = this.#context
    const lastMs = performance.now() + KNOWN_MS
    while (this.#known < request) {
      if (isClosed()) throw new StoreUnavailable('the store is closed')
      if (performance.now() < lastMs) await new Promise(setImmediate)
      else {
        // Its commit was reported as failed, because of a disk error, but the request is in the file.
        const { lastDeletion, purging } = await reader.ask('configuration', 'unfinished')
        const known = this.#known
        this.start(
          lastDeletion,
          purging.filter(({ num }) => num > known),
        )
      }
    }
  }

  /** Requests up to this one are known: nothing from before them is in memory. */
  start(last: number, unfinished: readonly UnfinishedPurge[]): void {
    this.#known = last
    for (const purge of unfinished) this.#context.run(this.purge(purge))
  }

  protected write(change: Change, draft: DeletionDraft): Written {
    return { reply: change.call('deletions', 'create', draft) }
  }

  protected async begin({ reply }: Written, draft: DeletionDraft): Promise<void> {
    const { run } = this.#context
    const { num, end, held } = await reply
    // A claim that shared the commit may have been answered just before this reply. Its caller continues only at the end of this turn of the event loop.
    await new Promise(setImmediate)
    run(this.purge({ ...draft, num, end }))
    // Delivery knows about the deletion now, so the delete messages can be claimed. When this resolves, every message that was being
    // written when the request was made has been stored, so that it will be purged, or has failed.
    await this.#tools.release(held)
  }

  protected completeStep(after: number, beforeMs: number, pseudonymKey: string): Promise<number | null> {
    return this.#context.writer.call('deletions', 'completeStep', [after, beforeMs, pseudonymKey])
  }

  /** From this call on, no message that this purge covers is sent any more. */
  async purge({ num, userIds, sourceIds, suppress, end }: UnfinishedPurge): Promise<void> {
    const { writer, isClosed, nowMs, configuration, consumer } = this.#context
    const { deleted } = this.#tools
    // With suppression, the first step sets the end of the purge: see write-deletions.ts.
    let before = suppress ? Number.POSITIVE_INFINITY : end
    deleted.add(num, {
      sourceIds: sourceIds === null ? null : new Set(sourceIds),
      userIds: new Set(userIds),
      covers: (segment) => (segment as number) < before,
    })
    this.#known = Math.max(this.#known, num)
    let over = false
    while (!over && !isClosed()) {
      const step = await writer.call('deletions', 'purgeStep', [num, Math.floor(nowMs())], {}, { retry: true })
      before = step.end
      over = step.over
    }
    // The thread answers in order, so everything that was read before the last step has already been passed to delivery.
    if (!over) return
    deleted.purged(num)
    // Keys whose heads were purged go on.
    for (const { id, order } of configuration().destinations.values()) if (order != null) consumer()?.wake(id)
    setTimeout(() => deleted.remove(num), CHECKED_MS).unref()
  }
}
