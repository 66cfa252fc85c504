// Replay jobs, while nodes are killed: every node knows an acknowledged job, the job ends, and a cancelled job stays cancelled.

import { eventually } from '../../system/signals.ts'
import { attempt, type Directory, list } from './requests.ts'

interface Job {
  id: string
  state: string
  total: number
  done: number
  destinationId: string | null
  outcomes: { pending: number }
}

const END_MS = 120_000

export class Replays {
  readonly #directory: Directory
  /** `isCancelled` is undefined if the answer was lost. */
  readonly #created: { id: string; isCancelled: boolean | undefined }[] = []
  #lost = 0

  constructor(directory: Directory) {
    this.#directory = directory
  }

  async create(url: string, destination: string, ratePerSecond: number | null): Promise<void> {
    const body = { destinationId: this.#directory.id(destination), states: ['failed'], ratePerSecond }
    const { status, body: job } = await attempt(url, '/replays', { method: 'POST', body })
    if (status === null) this.#lost++
    if (status === 200) this.#created.push({ id: job['id'] as string, isCancelled: false })
  }

  /** Cancels the latest job. */
  async cancel(url: string): Promise<void> {
    const job = this.#created.at(-1)
    if (job === undefined) return
    const { status, body } = await attempt(url, `/replays/${job.id}`, { method: 'PATCH', body: { state: 'cancelled' } })
    if (status === 200) job.isCancelled = true
    if (status === null && job.isCancelled === false) job.isCancelled = undefined
    // Every node knows a job at once, because jobs are read from the store.
    if (status === 404) throw new Error(`the replay job ${job.id} was acknowledged, but another node answers ${JSON.stringify(body)}`)
  }

  async check(urls: readonly string[]): Promise<string[]> {
    const problems: string[] = []
    for (const url of urls) {
      const jobs = await eventually(
        () => list<Job>(url, '/replays'),
        (all) => all.every(({ state, outcomes }) => state !== 'running' && outcomes.pending === 0),
        { what: 'every replay job ends', deadlineMs: END_MS },
      )
      const byId = new Map(jobs.map((job) => [job.id, job]))
      if (jobs.length < this.#created.length || jobs.length > this.#created.length + this.#lost)
        problems.push(
          `there are ${jobs.length} replay jobs, but ${this.#created.length} were acknowledged and ${this.#lost} answers were lost`,
        )
      for (const { id, isCancelled } of this.#created) {
        const job = byId.get(id)
        if (job === undefined) problems.push(`the replay job ${id} was acknowledged but does not exist`)
        else if (isCancelled === undefined) continue
        else if (isCancelled !== (job.state === 'cancelled'))
          problems.push(`the replay job ${id} is ${job.state}, but it was ${isCancelled ? '' : 'not '}cancelled`)
        else if (!isCancelled && job.done !== job.total)
          problems.push(`the replay job ${id} ended after ${job.done} of ${job.total} messages`)
      }
    }
    for (const { id } of this.#created) {
      const entries = await list(urls[0] ?? '', `/audit?action=replay.create&subject=${id}`)
      if (entries.length !== 1) problems.push(`the replay job ${id} has ${entries.length} entries in the audit log`)
    }
    return problems
  }
}
