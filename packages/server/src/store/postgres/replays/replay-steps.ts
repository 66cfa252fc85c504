// A step of a replay job: one transaction that looks at the next of the job's deliveries, owes again those that are not yet,
// counts the rest as skipped, and moves on, all or nothing. Killed anywhere, a job goes on where it stood, and what was owed is
// owed once.
//
// Steps of all nodes go one at a time: two jobs made for the same deliveries, on two nodes, would otherwise both find that a
// message is not pending. And one runner leads a job, from its first step until LEAD_MS of the server's clock after its last:
// the pace that it keeps in memory is then that of all nodes. A leader that dies is followed by another when its time is over,
// which is later than any second that it has released something in; so no rate is exceeded by that either.

import { LOOKS_PER_STEP, REPLAYED_PER_STEP, ReplayBudget } from '../../replays/replay-budget.ts'
import { progressOf, replayDoc, replayJobOf } from '../../replays/replay-job-row.ts'
import { LEAD_MS } from '../../replays/replay-states.ts'
import type { ReplayStep, ReplayStepResult } from '../../store.ts'
import { ADVISORY_LOCKS } from '../session/advisory-locks.ts'
import type { Ask } from '../session/database.ts'
import type { Parts } from '../session/parts.ts'
import { writeText } from '../session/texts.ts'
import { type ReplayCandidate, ReplayJudge } from './replay-judge.ts'
import { foldOutcomes } from './replay-outcomes.ts'
import { oweAgain } from './replay-owing.ts'
import type { JobRow } from './replay-rows.ts'
import { type Place, type Walk, walkOf } from './replay-walk.ts'

/** Destinations that one step asks for deliveries. The others have their turn in the next. */
const PARTS_PER_STEP = 16
/** Deliveries looked at beyond what may be owed, in the first page of a part. */
const MORE_LOOKS = 16

interface PartRow extends Place {
  destination: string
  waiting: number
  /** Whether the destination takes nothing now, though it is there. */
  held: boolean
  over: boolean
}

type Refusal = Extract<ReplayStepResult, { ok: false }>

export type StepReply = Refusal | (Extract<ReplayStepResult, { ok: true }> & { destinations: string[] })

export async function makeStep(parts: Parts, step: ReplayStep): Promise<StepReply> {
  // Asked without waiting for anybody: most who are refused are refused here.
  const refusal = await refusalOf((text, values) => parts.database.query(text, values), step)
  if (refusal !== undefined) return refusal
  return parts.database.transaction(async (ask) => {
    // Named statements are planned once, maybe when a day has no rows yet: the plan must be one for when it has many.
    await ask("SELECT pg_advisory_xact_lock($1), set_config('enable_seqscan', 'off', true)", [ADVISORY_LOCKS.replaySteps])
    const { rows } = await ask<JobRow>('SELECT * FROM replay_jobs WHERE id = $1 FOR UPDATE', [writeText(step.id)])
    // A statement of its own, so that its clock is that of after the wait.
    const late = await refusalOf(ask, step)
    if (late !== undefined) return late
    return new Step(parts, ask, rows[0] as JobRow).make(step)
  })
}

async function refusalOf(ask: Ask, { id, position, runner }: ReplayStep): Promise<Refusal | undefined> {
  const { rows } = await ask<{ state: string; position: number; led: boolean | null }>(
    'SELECT state, position, leader <> $2 AND leader_until > clock_timestamp() AS led FROM replay_jobs WHERE id = $1',
    [writeText(id), runner ?? null],
  )
  const [job] = rows
  if (job?.state !== 'running') return { ok: false, reason: 'not_running' }
  // Whoever is behind because another leads is told that.
  if (job.led === true) return { ok: false, reason: 'led' }
  return job.position === position ? undefined : { ok: false, reason: 'moved' }
}

class Step {
  readonly #parts: Parts
  readonly #ask: Ask
  readonly #job: JobRow
  readonly #judge: ReplayJudge

  constructor(parts: Parts, ask: Ask, job: JobRow) {
    this.#parts = parts
    this.#ask = ask
    this.#job = job
    this.#judge = new ReplayJudge(ask, job)
  }

  async make({ limit, maxWaiting, runner }: ReplayStep): Promise<StepReply> {
    const job = this.#job
    await foldOutcomes(this.#ask, job.num)
    const doc = replayDoc(job)
    const budget = new ReplayBudget(job, limit)
    const parts = await this.#partsLeft()
    const walked: { part: PartRow; owed: number }[] = []
    let isCut = false
    for (const part of parts) {
      if (budget.isSpent) break
      budget.room = part.destination === '0' ? REPLAYED_PER_STEP : maxWaiting - part.waiting
      if (budget.room <= 0 || part.held) continue
      if (walked.length === PARTS_PER_STEP) {
        isCut = true
        break
      }
      const before = budget.replayed
      await this.#walk(walkOf(this.#ask, job, doc, part.destination), part, budget)
      walked.push({ part, owed: part.destination === '0' ? 0 : budget.replayed - before })
    }
    const atMs = Math.floor(this.#parts.nowMs())
    const owed = [...budget.owed.values()].map((of) => Object.assign(of, { bytes: this.#judge.bytesOf(of.segment) }))
    await oweAgain(this.#ask, this.#parts.ids, owed, { job: job.num, atMs })
    const left = parts.length - walked.filter(({ part }) => part.over).length
    const hasMoved = budget.looks < LOOKS_PER_STEP || left < parts.length || left === 0
    if (walked.length > 0) await this.#saveParts(walked)
    const progress = hasMoved ? { ...progressOf(job, budget, left === 0), isOver: left === 0, atMs } : undefined
    return {
      ok: true,
      job: replayJobOf(await this.#save(progress, runner)),
      replayed: budget.replayed,
      blocked: left > 0 && !budget.isSpent && !isCut,
      destinations: [...new Set(owed.map(({ destination }) => destination))],
    }
  }

  async #partsLeft(): Promise<PartRow[]> {
    const { rows } = await this.#ask<
      Omit<Place, 'next'> & {
        destination: string | number
        next: string | number
        waiting: number
        deleted: boolean | null
        doc: string | null
      }
    >(
      `SELECT p.destination, p.state, p.next, p.place, p.waiting, d.deleted, d.doc
       FROM replay_parts p LEFT JOIN destinations d ON d.num = p.destination WHERE p.job = $1 AND NOT p.over ORDER BY p.turn, p.destination`,
      [this.#job.num],
    )
    return rows.map(({ destination, state, next, place, waiting, deleted, doc }) => ({
      destination: String(destination),
      state,
      next: String(next),
      place,
      waiting,
      // A disabled destination is owed nothing more; its part of the job waits until it is enabled. A paused one is owed as ever.
      held: deleted === false && doc !== null && !(JSON.parse(doc) as { enabled: boolean }).enabled,
      over: false,
    }))
  }

  /** Until the part is at its end or the step has done what it may. */
  async #walk(walk: Walk, part: PartRow, budget: ReplayBudget<string>): Promise<void> {
    for (let size = Math.min(budget.limit - budget.replayed, budget.room) + MORE_LOOKS; ; size *= 4) {
      const limit = Math.min(size, budget.looks)
      const { looks, after } = await walk.page(part, limit)
      // More than there is budget for: what one attempt has delivered.
      const some = looks.slice(0, budget.looks)
      const verdicts = await this.#judge.judge(some.flatMap(({ what }) => (typeof what === 'object' ? what : [])))
      let judged = 0
      for (const { what, bytes, after: next } of some) {
        if (budget.isSpent) return
        if (typeof what === 'string') budget.skip(what)
        if (typeof what === 'object') {
          const verdict = verdicts[judged++]
          if (verdict === undefined || !this.#consider(what, verdict.found, budget)) return
          budget.bytes -= verdict.bytes
        }
        budget.looks--
        budget.bytes -= bytes
        Object.assign(part, next)
      }
      if (some.length < looks.length) return
      if (after === null) {
        part.over = true
        return
      }
      Object.assign(part, after)
      if (budget.isSpent) return
    }
  }

  /** Owes it again or skips it. False: it would be owed again, and there is no room for it now. */
  #consider(candidate: ReplayCandidate, found: string | { newest: string }, budget: ReplayBudget<string>): boolean {
    if (typeof found === 'object' && !budget.hasQueued(candidate)) return budget.owe({ ...candidate, ...found })
    budget.skip(typeof found === 'object' ? 'already_replayed' : (found as Parameters<typeof budget.skip>[0]))
    return true
  }

  async #saveParts(walked: readonly { part: PartRow; owed: number }[]): Promise<void> {
    await this.#ask(SAVE_PARTS, [
      this.#job.num,
      this.#job.position + 1,
      walked.map(({ part }) => part.destination),
      walked.map(({ part }) => part.state),
      walked.map(({ part }) => part.next),
      walked.map(({ part }) => part.place),
      walked.map(({ part }) => part.over),
      walked.map(({ owed }) => owed),
    ])
  }

  /** Last, so that the leader's time begins with what was released. Nothing is written where nothing was done and nobody leads. */
  async #save(
    progress: (ReturnType<typeof progressOf> & { isOver: boolean; atMs: number }) | undefined,
    runner: string | undefined,
  ): Promise<JobRow> {
    const { num, state } = this.#job
    if (progress === undefined && runner === undefined) {
      const { rows } = await this.#ask<JobRow>('SELECT * FROM replay_jobs WHERE num = $1', [num])
      return rows[0] as JobRow
    }
    const { replayed, skipped, done, isOver = false, atMs } = progress ?? {}
    const { rows } = await this.#ask<JobRow>(SAVE, [
      num,
      progress === undefined ? 0 : 1,
      replayed ?? null,
      skipped ?? null,
      done ?? null,
      isOver ? 'finished' : state,
      isOver ? (atMs ?? null) : null,
      runner ?? null,
      LEAD_MS / 1_000,
    ])
    return rows[0] as JobRow
  }
}

// Rows that were not yet committed when the job's were counted are of its set as well: see replaying.ts. So the total may grow.
const SAVE = {
  name: 'replay_save',
  text: `
  UPDATE replay_jobs SET position = position + $2::integer, replayed = coalesce($3, replayed), skipped = coalesce($4, skipped),
    total = greatest(total, $5), state = $6, finished_at = $7, leader = coalesce($8, leader),
    leader_until = CASE WHEN $8::text IS NULL THEN leader_until ELSE clock_timestamp() + make_interval(secs => $9) END
  WHERE num = $1 RETURNING *`,
}

const SAVE_PARTS = {
  name: 'replay_save_parts',
  text: `
  UPDATE replay_parts p SET state = n.state, next = n.next, place = n.place, over = n.over, waiting = p.waiting + n.owed, turn = $2
  FROM unnest($3::bigint[], $4::integer[], $5::bigint[], $6::integer[], $7::boolean[], $8::integer[])
    AS n (destination, state, next, place, over, owed)
  WHERE p.job = $1 AND p.destination = n.destination`,
}
