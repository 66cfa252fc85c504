// Replay jobs, while nodes die: an acknowledged job is there on every node and comes to its end, and a cancelled job stays cancelled.

import { eventually } from '../../signals.ts'
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
    // A running job on another node is known at once: jobs are read from the store.
    if (status === 404) throw new Error(`the job ${job.id} was acknowledged, and another node answers ${JSON.stringify(body)}`)
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
          `${this.#created.length} replay jobs were acknowledged, ${this.#lost} answers were lost, and there are ${jobs.length}`,
        )
      for (const { id, isCancelled } of this.#created) {
        const job = byId.get(id)
        if (job === undefined) problems.push(`the replay job ${id} was acknowledged and is not there`)
        else if (isCancelled === undefined) continue
        else if (isCancelled !== (job.state === 'cancelled'))
          problems.push(`the replay job ${id} is ${job.state}; cancelled: ${isCancelled}`)
        else if (!isCancelled && job.done !== job.total) problems.push(`the replay job ${id} has done ${job.done} of ${job.total}`)
      }
    }
    for (const { id } of this.#created) {
      const entries = await list(urls[0] ?? '', `/audit?action=replay.create&subject=${id}`)
      if (entries.length !== 1) problems.push(`the replay job ${id} has ${entries.length} entries in the audit log`)
    }
    return problems
  }
}
