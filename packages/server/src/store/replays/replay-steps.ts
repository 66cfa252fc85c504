// Replays deliveries, in one transaction: one delivery by its id, or a step of a job. A step looks at the next deliveries of the job, replays
// those that can be replayed, counts the others as skipped, and saves its position, all or nothing. If the process is killed, the job
// continues at its last position, and nothing is replayed twice.
//
// Steps are made one at a time, because two jobs for the same deliveries would otherwise both find that a message is not pending. One runner
// leads a job, from its first step until LEAD_MS after its last. The leader keeps the rate in memory, so the rate holds for all nodes. When a
// leader dies, another runner takes over after LEAD_MS. That is longer than the second in which a rate is counted, so the rate is not
// exceeded then either. The runner decides when to make a step of which job.

import { resolveDeliveryIds } from '../history/delivery-ids.ts'
import type { ReplaySkipReason, ReplayStep, RowId } from '../store.ts'
import { makeArchiveStep } from './archive-step.ts'
import { ENTRIES_PER_STEP, MESSAGES_PER_SHIPMENT, REPLAYED_PER_STEP, ReplayBudget } from './replay-budget.ts'
import { finalStatesOf, storedMessages } from './replay-final-states.ts'
import { progressOf, type ReplayJobRow, replayDoc, replayJobOf } from './replay-job-row.ts'
import { type ReplayCandidate, ReplayJudge } from './replay-judge.ts'
import type { JobStatus, OwedAgain, PartRow, ReplayReply, ReplayRows, StepRefusal, StepReply } from './replay-rows.ts'
import { type Walk, walkOf } from './replay-walk.ts'

/** The destinations that one step handles. The others are handled in the next steps. */
const PARTS_PER_STEP = 16
/** The first page of a part has this many more deliveries than may be replayed, because some are skipped. */
const MORE_LOOKS = 16

/**
 * Replays one delivery, even if it was replayed before, because the user asked for exactly that. `resume`: it holds a key of an ordered destination,
 * and becomes the head of that key again.
 */
export async function replayOne<Id extends RowId>(
  rows: ReplayRows<Id>,
  deliveryId: string,
  resume: boolean,
  atMs: number,
): Promise<ReplayReply> {
  const [delivery] = await resolveDeliveryIds(rows, [deliveryId])
  if (delivery === undefined) return { ok: false, reason: 'not_found' }
  const { origin, index, destination, segment } = delivery
  const [held] = await rows.segments([segment])
  const isStored = (await storedMessages(rows, [segment])).get(segment)?.has(index) ?? false
  const hasEnded = (await finalStatesOf(rows, [origin])).get(origin)?.states.has(index)
  if (!hasEnded) return { ok: false, reason: isStored ? 'still_pending' : 'not_found' }
  if (!isStored || held === undefined) return { ok: false, reason: 'message_gone' }
  const [to] = await rows.destinations([destination])
  if (to === undefined || to.deleted) return { ok: false, reason: 'destination_gone' }
  const resumed = resume ? await rows.heldKey(delivery) : undefined
  if (resume && resumed === undefined) return { ok: false, reason: 'holds_no_key' }
  const owed = { destination, segment, bytes: held.bytes, entries: [{ index, replayOf: `${origin}-${index}` }], resumed }
  const [id] = await rows.owe([owed], null, atMs)
  if (resumed !== undefined) await rows.resume(destination, { key: resumed, origin: id as Id, segment, index })
  return { ok: true, deliveryId: `${id}-${index}`, destinationId: to.id }
}

export function rejectionOf(job: JobStatus | undefined, { position }: ReplayStep): StepRefusal | undefined {
  if (job?.state !== 'running') return { ok: false, reason: 'not_running' }
  // Checked before the position, so that a runner whose position is outdated because another leads gets the reason `led`.
  if (job.led) return { ok: false, reason: 'led' }
  return job.position === position ? undefined : { ok: false, reason: 'moved' }
}

export async function makeStep<Id extends RowId>(rows: ReplayRows<Id>, step: ReplayStep, nowMs: () => number): Promise<StepReply> {
  const job = await rows.job(step)
  const rejection = rejectionOf(job, step)
  if (rejection === undefined && step.archive !== undefined)
    return makeArchiveStep(rows, job as ReplayJobRow<Id>, { ...step, archive: step.archive }, nowMs)
  return rejection ?? new Step(rows, job as ReplayJobRow<Id>, step).make(step, nowMs)
}

class Step<Id extends RowId> {
  readonly #rows: ReplayRows<Id>
  readonly #job: ReplayJobRow<Id>
  readonly #judge: ReplayJudge<Id>
  readonly #budget: ReplayBudget<Id>

  constructor(rows: ReplayRows<Id>, job: ReplayJobRow<Id>, { limit }: ReplayStep) {
    this.#rows = rows
    this.#job = job
    this.#judge = new ReplayJudge(rows, { ...job, includeReplayed: replayDoc(job).selection.includeReplayed === true })
    this.#budget = new ReplayBudget(limit)
  }

  async make({ maxWaiting, runner }: ReplayStep, nowMs: () => number): Promise<StepReply> {
    const job = this.#job
    const budget = this.#budget
    const parts = await this.#rows.parts(job.num)
    const walked: (PartRow<Id> & { owed: number })[] = []
    let isCut = false
    for (const part of parts) {
      if (budget.isSpent) break
      budget.room = part.destination === null ? REPLAYED_PER_STEP : maxWaiting - part.waiting
      if (budget.room <= 0 || part.held) continue
      if (walked.length === PARTS_PER_STEP) {
        isCut = true
        break
      }
      const before = budget.replayed
      const now = { ...part, over: false }
      await this.#walk(walkOf(this.#rows, job, part.destination), now)
      walked.push({ ...now, owed: part.destination === null ? 0 : budget.replayed - before })
    }
    const atMs = Math.floor(nowMs())
    const owed = [...budget.owed.values()]
    if (owed.length > 0)
      await this.#rows.owe(
        owed.flatMap((of) => this.#shipments(of)),
        job.num,
        atMs,
      )
    if (walked.length > 0) await this.#rows.saveParts(job, walked)
    const left = parts.length - walked.filter(({ over }) => over).length
    const hasMoved = budget.entries < ENTRIES_PER_STEP || left < parts.length || left === 0
    const saved = await this.#rows.saveJob(job, hasMoved ? progressOf(job, budget, left === 0, atMs) : undefined, runner)
    return {
      ok: true,
      job: replayJobOf(saved),
      replayed: budget.replayed,
      blocked: left > 0 && !budget.isSpent && !isCut,
      destinationIds: [...new Set(owed.map(({ destination }) => this.#judge.idOf(destination)))],
    }
  }

  #shipments({ destination, segment, entries }: Omit<OwedAgain<Id>, 'bytes'>): OwedAgain<Id>[] {
    const sorted = [...entries].sort((a, b) => a.index - b.index)
    const bytes = this.#judge.bytesOf(segment)
    const shipments: OwedAgain<Id>[] = []
    for (let at = 0; at < sorted.length; at += MESSAGES_PER_SHIPMENT) {
      shipments.push({ destination, segment, bytes, entries: sorted.slice(at, at + MESSAGES_PER_SHIPMENT) })
    }
    return shipments
  }

  /** Handles deliveries of a part until its end, or until the budget is spent. */
  async #walk(walk: Walk<Id>, part: PartRow<Id>): Promise<void> {
    const budget = this.#budget
    for (let size = Math.min(budget.limit - budget.replayed, budget.room) + MORE_LOOKS; ; size *= 4) {
      const { entries, after } = await walk(part, Math.min(size, budget.entries))
      const verdicts = await this.#judge.judge(entries.flatMap(({ what }) => (typeof what === 'object' ? what : [])))
      let judged = 0
      for (const { what, bytes, after: next } of entries) {
        if (budget.isSpent) return
        if (typeof what === 'string') budget.skip(what)
        if (typeof what === 'object') {
          const verdict = verdicts[judged++]
          // There was too much to read for one step. The step ends, and the next one begins here.
          if (verdict === undefined) budget.bytes = 0
          if (verdict === undefined || !this.#replayOrSkip(what, verdict.found)) return
          budget.bytes -= verdict.bytes
        }
        budget.entries--
        budget.bytes -= bytes
        Object.assign(part, next)
      }
      if (after === null) {
        part.over = true
        return
      }
      Object.assign(part, after)
      if (budget.isSpent) return
    }
  }

  /** Replays or skips a delivery. Returns false if there is no room to replay it now. */
  #replayOrSkip(candidate: ReplayCandidate<Id>, found: ReplaySkipReason | { newest: Id }): boolean {
    if (typeof found === 'object' && !this.#budget.hasQueued(candidate)) return this.#budget.owe({ ...candidate, ...found })
    this.#budget.skip(typeof found === 'object' ? 'already_replayed' : found)
    return true
  }
}
