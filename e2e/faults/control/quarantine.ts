// The quarantine, while nodes are killed: a message stays there until it is released or deleted, and neither is done in part.

import type { Messages, Sent } from './messages.ts'
import type { State } from './model.ts'
import { attempt, type Directory, list } from './requests.ts'

interface Ending {
  source: string
  does: 'release' | 'delete'
  startMs: number
  endMs: number
  isDone: boolean
}

export class Quarantine {
  readonly #directory: Directory
  readonly #messages: Messages
  readonly #endings: Ending[] = []

  constructor(directory: Directory, messages: Messages) {
    this.#directory = directory
    this.#messages = messages
  }

  /** Releases or deletes everything that the source has in quarantine. */
  async end(url: string, source: string, does: 'release' | 'delete'): Promise<void> {
    const ending: Ending = { source, does, startMs: performance.now(), endMs: Number.POSITIVE_INFINITY, isDone: false }
    this.#endings.push(ending)
    const { status } = await attempt(url, `/quarantine/${does}`, { method: 'POST', body: { sourceId: this.#directory.id(source) } })
    if (status == null) return
    ending.endMs = performance.now()
    ending.isDone = status === 200
  }

  async #held(url: string, source: string): Promise<Set<string>> {
    const all = await list<{ messageId: string }>(url, `/quarantine?sourceId=${this.#directory.id(source)}`)
    return new Set(all.map(({ messageId }) => messageId))
  }

  /** Compares the quarantine of every source with what was done, then releases it. Returns what must arrive now, with its destinations. */
  async finish(url: string, final: State, isDeleted: (message: Sent) => boolean, problems: string[]): Promise<[Sent, string][]> {
    const released: [Sent, string][] = []
    for (const source of Object.keys(final.sources)) {
      const held = await this.#held(url, source)
      const endings = this.#endings.filter((ending) => ending.source === source)
      const own = this.#messages.sent.filter((message) => message.source === source && !isDeleted(message))
      for (const message of own) {
        const { id, startMs, endMs } = message
        const after = endings.filter((ending) => ending.endMs > startMs)
        if (this.#messages.wasHeld(message) && after.length === 0 && !held.has(id)) problems.push(`${id} is no longer in quarantine`)
        if (held.has(id) && after.some((ending) => ending.isDone && ending.startMs > endMs))
          problems.push(`${id} is still in quarantine after a ${after[0]?.does}`)
        const neverReleased = this.#messages.wasHeld(message) && after.every(({ does }) => does === 'delete')
        if (neverReleased && this.#messages.arrivedAnywhere(id)) problems.push(`${id} was sent, although it was not released`)
        if (held.has(id))
          for (const [name, { sources, enabled }] of Object.entries(final.destinations))
            if (enabled === true && sources?.includes(source)) released.push([message, name])
      }
      const { status, body } = await attempt(url, '/quarantine/release', { method: 'POST', body: { sourceId: this.#directory.id(source) } })
      if (status !== 200) problems.push(`the quarantine of ${source} could not be released: ${status} ${JSON.stringify(body)}`)
      else if (body['released'] !== held.size)
        problems.push(`${Number(body['released'])} messages of ${source} were released instead of ${held.size}`)
      const left = await this.#held(url, source)
      if (left.size > 0) problems.push(`${left.size} messages of ${source} are still in quarantine after the release of all`)
    }
    return released
  }
}
