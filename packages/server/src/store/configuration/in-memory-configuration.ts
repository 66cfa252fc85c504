// The whole configuration in memory, for the hot paths, and the listeners that are called when it changes.

import type { Configuration } from '../port/model.ts'
import { NOTHING } from './resource-rows.ts'

type Listener = (configuration: Configuration) => void

export class KnownConfiguration {
  readonly #listeners: Listener[] = []
  /** Cancels what the destination is still owed. */
  readonly #onDestinationDeleted: (id: string) => void
  #now: Configuration = NOTHING

  constructor(onDestinationDeleted: (id: string) => void) {
    this.#onDestinationDeleted = onDestinationDeleted
  }

  get now(): Configuration {
    return this.#now
  }

  listen(listener: Listener): void {
    this.#listeners.push(listener)
  }

  become(next: Configuration): void {
    const before = this.#now
    if (next === before) return
    this.#now = next
    for (const listener of this.#listeners) listener(next)
    for (const id of before.destinations.keys()) if (!next.destinations.has(id)) this.#onDestinationDeleted(id)
  }
}
