// Deletion requests with suppression, while nodes are killed. Once a request is answered, no message of its users is stored or sent any more; those
// from before are purged; and each destination of the sources gets a delete message. A request whose answer was lost is there completely,
// with its suppressions, or not at all.

import { eventually } from '../../system/signals.ts'
import type { Messages, Sent } from './messages.ts'
import type { State } from './model.ts'
import { attempt, type Directory, list } from './requests.ts'

interface Request {
  user: string
  sources: readonly string[]
  suppress: boolean
  startMs: number
  endMs: number
  fromPeriod: number
  toPeriod: number
  outcome: 'done' | 'refused' | 'lost'
  /** Undefined if the request does not exist. */
  id?: string
  /** Whether the suppression was ended, or may have been. */
  isEnded: boolean
}

interface Deletion {
  id: string
  state: string
  targets: { sourceId: string; destinationId: string | null; state: string }[]
}

/** A request that was in flight when the deletion was answered can arrive a moment later. */
const IN_FLIGHT_MS = 5_000
const END_MS = 120_000

export class Users {
  readonly requests: Request[] = []
  readonly #messages: Messages
  readonly #directory: Directory
  #last = 0

  constructor(messages: Messages, directory: Directory) {
    this.#messages = messages
    this.#directory = directory
  }

  /** Users who are named in new messages: some recent ones, and those who are deleted. */
  named(): string[] {
    return [
      ...Array.from({ length: 4 }, (_, at) => `user-${Math.max(0, this.#last - at)}`),
      ...this.requests.slice(-4).map(({ user }) => user),
    ]
  }

  /** Adds a user, who sends messages from now on. */
  add(): void {
    this.#last++
  }

  /** A user who sent messages a while ago and is not deleted yet. */
  nextToDelete(): string | undefined {
    const user = `user-${this.#last - 2}`
    return this.#last >= 2 && !this.requests.some((request) => request.user === user) ? user : undefined
  }

  async delete(url: string, user: string, sources: readonly string[], suppress: boolean): Promise<void> {
    const sourceIds = sources.map((name) => this.#directory.id(name))
    const period = this.#messages.periods.length
    const request: Request = {
      user,
      sources,
      suppress,
      startMs: performance.now(),
      endMs: Number.POSITIVE_INFINITY,
      fromPeriod: period,
      toPeriod: period,
      outcome: 'lost',
      isEnded: false,
    }
    this.requests.push(request)
    const { status, body } = await attempt(url, '/deletions', { method: 'POST', body: { userIds: [user], sourceIds, suppress } })
    request.toPeriod = this.#messages.periods.length
    if (status === undefined) request.outcome = 'refused'
    if (status == null) return
    request.endMs = performance.now()
    request.outcome = status === 202 ? 'done' : 'refused'
    if (status === 202) request.id = body['id'] as string
    if (status >= 500) throw new Error(`a deletion request was answered with ${status} ${JSON.stringify(body)}`)
  }

  /** Ends the suppression of a user, for all sources. */
  async endSuppression(url: string, { user }: Request): Promise<void> {
    for (const request of this.requests) if (request.user === user) request.isEnded = true
    await attempt(url, `/suppressions?userId=${user}`, { method: 'DELETE' })
  }

  suppressed(): Request[] {
    return this.requests.filter(({ suppress, outcome, isEnded }) => suppress && outcome === 'done' && !isEnded)
  }

  /** How a deletion request changes what must become of a message. */
  fate(message: Sent): 'never' | 'unknown' | undefined {
    const request = this.requests.find(({ user, sources }) => user === message.user && sources.includes(message.source))
    if (request === undefined || request.id === undefined) return undefined
    if (message.startMs < request.endMs || request.isEnded) return 'unknown'
    return request.suppress ? 'never' : undefined
  }

  /** Learns which requests with lost answers exist, before fate() is asked. */
  async learn(url: string, problems: string[]): Promise<void> {
    for (const request of this.requests) {
      const found = await list<{ id: string }>(url, `/deletions?userId=${request.user}`)
      if (request.outcome === 'lost') request.id = found[0]?.id as string
      const wanted = request.id === undefined ? 0 : 1
      if (found.length !== wanted || found[0]?.id !== request.id)
        problems.push(`there are ${found.length} deletion requests for ${request.user} (${request.outcome}) instead of ${wanted}`)
    }
  }

  /** After everything was delivered. */
  async check(urls: readonly string[], final: State): Promise<string[]> {
    const problems: string[] = []
    const [url = ''] = urls
    for (const request of this.requests) {
      const { user, id } = request
      if (id === undefined) {
        const left = await list(url, `/suppressions?userId=${user}`)
        if (left.length > 0) problems.push(`${user} is suppressed, but the deletion request (${request.outcome}) does not exist`)
        continue
      }
      problems.push(...(await this.#targetProblems(request, url, final)))
      for (const source of request.sources) {
        if (final.sources[source] === undefined) continue
        problems.push(...(await this.#sourceProblems(request, source, urls)))
      }
      const entries = await list(url, `/audit?action=deletion.create&subject=${id}`)
      if (entries.length !== 1) problems.push(`the deletion of ${user} has ${entries.length} entries in the audit log`)
    }
    return problems
  }

  async #targetProblems({ user, id, sources, fromPeriod, toPeriod }: Request, url: string, final: State): Promise<string[]> {
    const problems: string[] = []
    const { body } = await eventually(
      () => attempt(url, `/deletions/${id}`),
      ({ body: { state } }) => state === 'finished' || state === 'failed',
      { what: `the deletion of ${user} ends`, deadlineMs: END_MS },
    )
    const { targets } = body as unknown as Deletion
    const nameOf = (destinationId: string | null): string => this.#directory.name(destinationId ?? '') ?? 'none'
    for (const { destinationId, state } of targets) {
      const name = nameOf(destinationId)
      if (final.destinations[name] === undefined) continue
      if (state !== 'finished') problems.push(`the delete message for ${user} is ${state} at ${name}`)
      const atMs = this.#messages.deleteArrived(name, user)
      if (atMs === undefined) problems.push(`${name} got no delete message for ${user}`)
      for (const { id: messageId, source } of this.#messages.sent.filter((message) => message.user === user)) {
        if (!sources.includes(source) || this.requests.find((request) => request.user === user)?.suppress !== true) continue
        const late = this.#messages.arrivals(name, messageId).filter((each) => each > (atMs ?? 0) + IN_FLIGHT_MS)
        if (late.length > 0 && !this.#wasEnded(user)) problems.push(`${name} got ${messageId} of ${user} after the delete message`)
      }
    }
    // Destinations to which the sources were attached all the time must be told, and others must not.
    const periods = this.#messages.periods.slice(fromPeriod, toPeriod + 1)
    for (const source of sources) {
      for (const destination of Object.keys(final.destinations)) {
        const facts = new Set(periods.map((period) => period.isRouted(source, destination)))
        const isTold = targets.some(
          (target) => target.sourceId === this.#directory.id(source) && nameOf(target.destinationId) === destination,
        )
        const [fact] = facts
        if (facts.size === 1 && fact !== undefined && fact !== isTold)
          problems.push(`the deletion of ${user} ${isTold ? 'has' : 'does not have'} the target ${source}, ${destination}`)
      }
    }
    return problems
  }

  #wasEnded(user: string): boolean {
    return this.requests.some((request) => request.user === user && request.isEnded)
  }

  async #sourceProblems({ user, suppress, isEnded, startMs }: Request, source: string, urls: readonly string[]): Promise<string[]> {
    const problems: string[] = []
    const sourceId = this.#directory.id(source)
    for (const url of urls) {
      const stored = await list<{ messageId: string }>(url, `/messages?sourceId=${sourceId}&userId=${user}&type=track`)
      const before = new Set(this.#messages.sent.filter(({ endMs }) => endMs < startMs).map(({ id }) => id))
      const wrong = stored.filter(({ messageId }) => (suppress && !isEnded) || before.has(messageId)).map(({ messageId }) => messageId)
      if (wrong.length > 0)
        problems.push(`messages of ${user}, who was deleted, are still stored for ${source}: ${wrong.slice(0, 5).join()}`)
      const suppressions = await list(url, `/suppressions?userId=${user}&sourceId=${sourceId}`)
      if (!isEnded && suppressions.length !== Number(suppress))
        problems.push(`${user} has ${suppressions.length} suppressions for ${source} instead of ${Number(suppress)}`)
    }
    return problems
  }
}
