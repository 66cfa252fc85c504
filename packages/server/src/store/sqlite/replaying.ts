// Replay jobs on the main thread: what a job is made for is counted by the reading thread before the job is written, up to
// a number that no later row comes before; so the set is fixed, and counting it keeps nobody from writing.

import { newReplayJob } from '../replays/replay-job-row.ts'
import { IS_REPLAY_OVER, LEAD_MS, REPLAY_TRANSITIONS } from '../replays/replay-states.ts'
import {
  type Audit,
  type Configuration,
  type NewReplayJob,
  type ReplayCount,
  type ReplayJob,
  type ReplayJobChange,
  type ReplayResult,
  type ReplaySelection,
  type ReplayStep,
  type ReplayStepResult,
  type ReplayStore,
} from '../store.ts'
import type { ReplayCountPage } from './rows/read-replays.ts'
import { rowRange } from './rows/replay-rows.ts'
import { auditNote } from './rows/write-audit.ts'
import type { GroupCommit } from './threads/group-commit.ts'
import type { ReadingThread } from './threads/reading-thread.ts'

export interface ReplayingParts {
  writer: GroupCommit
  reader: ReadingThread
  nowMs: () => number
  configuration: () => Configuration
  /** New work came to the store. */
  wake: (destinationId: string) => void
}

export class Replaying implements ReplayStore {
  readonly #parts: ReplayingParts
  /** Of each job, who leads it until when. There is no other process: what is in memory is known to all. */
  readonly #leaders = new Map<string, { runner: string; untilMs: number }>()

  constructor(parts: ReplayingParts) {
    this.#parts = parts
  }

  async replay(deliveryId: string, audit?: Audit<{ deliveryId: string }>): Promise<ReplayResult> {
    const { writer, nowMs, wake } = this.#parts
    const atMs = nowMs()
    const note = auditNote(audit?.({ deliveryId }, null), atMs)
    const { destinationId, ...result } = await writer.run('replay', { deliveryId, atMs, ...note })
    if (destinationId !== undefined) wake(destinationId)
    return result
  }

  async count(selection: ReplaySelection): Promise<ReplayCount> {
    return this.#count(selection, await this.#bound())
  }

  async create({ selection, ratePerSecond, createdBy }: NewReplayJob, audit?: Audit<ReplayJob>): Promise<ReplayJob> {
    const { writer, nowMs } = this.#parts
    const bound = await this.#bound()
    const { total, byDestination } = await this.#count(selection, bound)
    const job = newReplayJob({ selection, ratePerSecond, createdBy }, total, nowMs())
    await writer.run('createReplay', {
      id: job.id,
      doc: { selection, createdBy },
      ratePerSecond,
      bound,
      total,
      destinationIds: byDestination.filter((of) => of.total > 0).map(({ destinationId }) => destinationId),
      atMs: job.createdAtMs,
      ...auditNote(audit?.(job, null), job.createdAtMs),
    })
    return job
  }

  async update(
    id: string,
    change: ReplayJobChange,
    audit?: Audit<ReplayJob>,
  ): Promise<{ ok: true; job: ReplayJob } | { ok: false; reason: 'not_found' | 'over' }> {
    const { writer, nowMs } = this.#parts
    for (;;) {
      const before = await this.one(id)
      if (before === undefined) return { ok: false, reason: 'not_found' }
      const asked = change.state ?? before.state
      const state = change.state === undefined ? before.state : REPLAY_TRANSITIONS[before.state][change.state]
      const ratePerSecond = change.ratePerSecond === undefined ? before.ratePerSecond : change.ratePerSecond
      if (state === before.state && ratePerSecond === before.ratePerSecond) return { ok: true, job: before }
      if (state === null || asked === 'finished' || IS_REPLAY_OVER[before.state]) return { ok: false, reason: 'over' }
      const atMs = nowMs()
      const after: ReplayJob = { ...before, state, ratePerSecond, finishedAtMs: IS_REPLAY_OVER[state] ? atMs : null }
      const note = auditNote(audit?.(after, before), atMs)
      const { ok } = await writer.run('updateReplay', {
        id,
        from: { state: before.state, ratePerSecond: before.ratePerSecond },
        state: asked,
        ratePerSecond,
        atMs,
        ...note,
      })
      if (ok) return { ok: true, job: (await this.one(id)) ?? after }
      // A step, or another, has changed it meanwhile: it is looked at anew.
    }
  }

  list: ReplayStore['list'] = (filter, page) => this.#parts.reader.ask('replays', 'list', filter, page)

  one(id: string): Promise<ReplayJob | undefined> {
    return this.#parts.reader.ask('replays', 'one', id)
  }

  async step(step: ReplayStep): Promise<ReplayStepResult> {
    const { writer, nowMs, wake } = this.#parts
    if (!this.#leads(step)) return { ok: false, reason: 'led' }
    const reply = await writer.run('replayStep', { step, atMs: nowMs() })
    if (!reply.ok) {
      if (reply.reason === 'not_running') this.#leaders.delete(step.id)
      return reply
    }
    const { destinationIds, ...result } = reply
    if (result.job.state !== 'running') this.#leaders.delete(step.id)
    for (const destinationId of destinationIds) wake(destinationId)
    return result
  }

  #leads({ id, runner }: ReplayStep): boolean {
    if (runner === undefined) return true
    const atMs = performance.now()
    const leader = this.#leaders.get(id)
    if (leader !== undefined && leader.runner !== runner && leader.untilMs > atMs) return false
    this.#leaders.set(id, { runner, untilMs: atMs + LEAD_MS })
    return true
  }

  #bound(): Promise<number> {
    return this.#parts.writer.run('replayBound', {})
  }

  async #count(selection: ReplaySelection, bound: number): Promise<ReplayCount> {
    const { reader, configuration } = this.#parts
    if ('deliveryIds' in selection) return reader.ask('replays', 'countNamed', selection.deliveryIds)
    const { first, last } = rowRange(selection.fromMs, selection.toMs, bound)
    // Whether a later one is of the set can be told by its state alone only where nothing else decides.
    const instead = selection.reason === null && selection.toMs === null ? selection.states.filter((state) => state !== 'delivered') : []
    const counted: ReplayCount = { total: 0, alreadyReplayed: 0, byDestination: [] }
    for (const destinationId of selection.destinationId === null ? configuration().destinations.keys() : [selection.destinationId]) {
      const own = { destinationId, total: 0, alreadyReplayed: 0 }
      for (const state of selection.states) {
        for (let from: number | null = first; from !== null; ) {
          const page: ReplayCountPage = await reader.ask('replays', 'count', {
            destinationId,
            state,
            reason: selection.reason,
            instead,
            first: from,
            last,
          })
          own.total += page.total
          own.alreadyReplayed += page.alreadyReplayed
          from = page.next
        }
      }
      if (own.total === 0) continue
      counted.total += own.total
      counted.alreadyReplayed += own.alreadyReplayed
      counted.byDestination.push(own)
    }
    return counted
  }
}
