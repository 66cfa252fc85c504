// Looks after the tables of warehouses once a day: small files of past days are merged, days that are not kept are removed, and what killed processes left
// behind is cleaned up. The work is done in steps by a loader process; how far it is, is stored, so that another node continues where this one stopped.

import { randomUUID } from 'node:crypto'
import type { WarehouseDestination } from '../../../destinations/warehouse/settings.ts'
import { closeLoad, openLoads, schemaNames } from '../../../store/port/warehouse-tables.ts'
import { LEASE_MS, noteUpkeep, readUpkeep, takeUpkeep, type UpkeepRun, wantUpkeep } from '../../../store/port/warehouse-upkeep.ts'
import type { Destination, Nodes, Store } from '../../../store/store.ts'
import type { Clock } from '../../../timing/clock.ts'
import { backgroundTimer, type CancelTimer, type SetTimer } from '../../../timing/timers.ts'

/** What a step has done. */
export interface UpkeepStep {
  /** Where the next one continues; null: everything is done. */
  cursor: string | null
  changed: number
  problems: readonly { code: string; message: string }[]
}

export interface WarehouseUpkeepDeps {
  store: Pick<Store, 'documents' | 'configuration'> & { books: Pick<Store['books'], 'ledger'>; nodes?: Pick<Nodes, 'count'> }
  clock: Pick<Clock, 'wallMs' | 'scheduleMs'>
  /** Does a part of the work. Rejects if it could not be done. */
  step: (destination: WarehouseDestination, cursor: string | null) => Promise<UpkeepStep>
  setTimer?: SetTimer
  /** A step failed. It is repeated later. */
  onFailure: (destination: Destination, error: unknown) => void
  /** A run has ended, and found something. */
  onProblems: (destination: Destination, problems: UpkeepStep['problems']) => void
}

const DAY_MS = 86_400_000
/** After midnight UTC: by then most messages of the day before are loaded. */
const AFTER_MIDNIGHT_MS = 30 * 60_000
const CHECK_EVERY_MS = 60_000
const FIRST_RETRY_MS = 60_000
const MAX_RETRY_MS = 60 * 60_000
const MAX_PROBLEMS = 20

export class WarehouseUpkeep {
  readonly #deps: WarehouseUpkeepDeps
  readonly #setTimer: SetTimer
  readonly #holder = randomUUID()
  /** When a destination whose step failed is tried again, in schedule time. */
  readonly #retries = new Map<string, { atMs: number; waitMs: number }>()
  #stopped = true
  #working: Promise<void> | null = null
  #again = false
  #cancelTimer: CancelTimer | null = null

  constructor(deps: WarehouseUpkeepDeps) {
    this.#deps = deps
    this.#setTimer = deps.setTimer ?? backgroundTimer
  }

  start(): void {
    this.#stopped = false
    this.#wakeLater()
  }

  /** Resolves when it is noted that a run is wanted; it begins at once if no other node does it. */
  async want(destinationId: string): Promise<void> {
    const { store, clock } = this.#deps
    await wantUpkeep(store.documents, destinationId, clock.wallMs())
    this.#retries.delete(destinationId)
    if (this.#working === null) this.#work()
    else this.#again = true
  }

  /** Waits for the step in progress; the next start continues after it. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancelTimer?.()
    await this.idle()
  }

  /** Resolves when nothing is being done. */
  async idle(): Promise<void> {
    while (this.#working !== null) await this.#working
  }

  #wakeLater(): void {
    this.#cancelTimer?.()
    if (!this.#stopped) this.#cancelTimer = this.#setTimer(() => this.#work(), CHECK_EVERY_MS)
  }

  #work(): void {
    if (this.#stopped || this.#working !== null) return
    this.#working = this.#runAll().finally(() => {
      this.#working = null
      if (this.#again) {
        this.#again = false
        this.#work()
      } else this.#wakeLater()
    })
  }

  async #runAll(): Promise<void> {
    for (const destination of this.#deps.store.configuration().destinations.values()) {
      if (this.#stopped) return
      if (destination.type !== 'warehouse') continue
      try {
        await this.#run(destination)
        this.#retries.delete(destination.id)
      } catch (error) {
        const waitMs = Math.min(MAX_RETRY_MS, (this.#retries.get(destination.id)?.waitMs ?? FIRST_RETRY_MS / 2) * 2)
        this.#retries.set(destination.id, { atMs: this.#deps.clock.scheduleMs() + waitMs, waitMs })
        this.#deps.onFailure(destination, error)
      }
    }
  }

  async #run({ id }: WarehouseDestination): Promise<void> {
    const { store, clock } = this.#deps
    const { documents } = store
    const isDue = (run: UpkeepRun): boolean => this.#isDue(run)
    const known = await readUpkeep(documents, id)
    if (this.#current(id) === null || (this.#retries.get(id)?.atMs ?? 0) > clock.scheduleMs() || (known !== null && !isDue(known))) return
    // Before the first load there is nothing to do.
    if (known === null && (await schemaNames(documents, id)).length === 0) return
    const isAlone = (store.nodes?.count ?? 1) === 1
    const about = { holder: this.#holder, isAlone, nowMs: clock.wallMs(), scheduleMs: clock.scheduleMs(), isDue }
    let run = await takeUpkeep(documents, id, about)
    if (run === null) return
    await this.#closeSettledLoads(id)
    while (run !== null && !this.#stopped) {
      const destination = this.#current(id)
      run = destination === null ? null : await this.#step(destination, run)
    }
    // Another node, or this one after its next start, continues at once.
    await this.#note(id, (stored) => {
      // Somebody asked for another run meanwhile.
      if (stored.wantedAtMs !== null) this.#again = true
      return { ...stored, holder: null, leaseUntilMs: 0 }
    })
  }

  /** Returns the run if there is more to do. */
  async #step(destination: WarehouseDestination, run: UpkeepRun): Promise<UpkeepRun | null> {
    const { id } = destination
    let done: UpkeepStep
    try {
      done = await this.#deps.step(destination, run.cursor)
    } catch (error) {
      // The process of the step ends with the service. The next start continues.
      if (this.#stopped) return null
      const text = error instanceof Error ? error.message : String(error)
      await this.#note(id, (stored) => ({ ...stored, error: text, holder: null, leaseUntilMs: 0 }))
      throw error
    }
    const { clock, onProblems } = this.#deps
    let next: UpkeepRun = run
    const isOurs = await this.#note(id, (stored) => {
      next = {
        ...stored,
        cursor: done.cursor,
        changed: stored.changed + done.changed,
        problems: [...stored.problems, ...done.problems].slice(0, MAX_PROBLEMS),
        error: null,
        finishedAtMs: done.cursor === null ? clock.wallMs() : null,
        leaseUntilMs: clock.scheduleMs() + LEASE_MS,
      }
      return next
    })
    if (!isOurs) return null
    if (next.finishedAtMs === null) return next
    if (next.problems.length > 0) onProblems(destination, next.problems)
    return null
  }

  /** Null if it was removed, or nothing may be written to it for now. */
  #current(id: string): WarehouseDestination | null {
    const destination = this.#deps.store.configuration().destinations.get(id)
    return destination?.type === 'warehouse' && destination.enabled && !destination.paused ? destination : null
  }

  #note(id: string, change: (run: UpkeepRun) => UpkeepRun): Promise<boolean> {
    const { store, clock } = this.#deps
    return noteUpkeep(store.documents, id, { holder: this.#holder, nowMs: clock.wallMs() }, change)
  }

  #isDue({ startedAtMs, finishedAtMs, wantedAtMs }: UpkeepRun): boolean {
    const nowMs = this.#deps.clock.wallMs()
    const dueMs = Math.floor((nowMs - AFTER_MIDNIGHT_MS) / DAY_MS) * DAY_MS + AFTER_MIDNIGHT_MS
    return finishedAtMs === null || startedAtMs < dueMs || wantedAtMs !== null
  }

  /** A load is noted as open until its outcome is recorded. If the process ended just then, it stays noted, until nothing waits for the destination. */
  async #closeSettledLoads(id: string): Promise<void> {
    const { documents, books } = this.#deps.store
    const open = await openLoads(documents, id)
    if (open.length === 0) return
    const row = (await books.ledger()).find(({ destinationId }) => destinationId === id)
    if (row !== undefined && row.pending > 0) return
    for (const loadId of open) await closeLoad(documents, id, loadId)
  }
}
