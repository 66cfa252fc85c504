// The whole configuration in memory, for the hot paths, and the listeners that are called when it changes.

import type { Configuration } from '../../model/configuration.ts'
import { EMPTY_CONFIGURATION } from './resource-rows.ts'

type Listener = (configuration: Configuration) => void

export class InMemoryConfiguration {
  readonly #listeners: Listener[] = []
  /** Cancels the pending deliveries of the destination. */
  readonly #onDestinationDeleted: (id: string) => void
  #current: Configuration = EMPTY_CONFIGURATION

  constructor(onDestinationDeleted: (id: string) => void) {
    this.#onDestinationDeleted = onDestinationDeleted
  }

  /** As of the last commit that this process knows about. */
  get configuration(): Configuration {
    return this.#current
  }

  listen(listener: Listener): void {
    this.#listeners.push(listener)
  }

  replace(next: Configuration): void {
    const before = this.#current
    if (next === before) return
    this.#current = next
    for (const listener of this.#listeners) listener(next)
    for (const id of before.destinations.keys()) if (!next.destinations.has(id)) this.#onDestinationDeleted(id)
  }
}
