// Takes requests to load everything that waits for a warehouse, and carries them out on the node that makes its loads. A request is stored first. Then the other
// nodes are told, and read what is stored. Because a notification may be lost, and another node may make the loads from now on, each also reads once a second.

import { askForLoad, endLoadRequest, type LoadRequest, loadRequests } from '../../../store/port/warehouse-tables.ts'
import { type Channel, type Nodes, type Store, StoreUnavailable } from '../../../store/store.ts'
import type { Clock } from '../../../timing/clock.ts'

export interface LoadRequestsDeps {
  store: Pick<Store, 'documents' | 'configuration'> & {
    nodes?: Pick<Nodes, 'count' | 'onChange'>
    channel?: Pick<Channel, 'publish' | 'onMessage'>
  }
  clock: Pick<Clock, 'wallMs'>
  /** Does nothing if another node makes the loads, or if the request is known. `onGathered`: called once, when all that waited is in loads. */
  loadNow: (destinationId: string, request: string, onGathered: () => void) => void
  onError: (error: unknown) => void
}

/** A message on the channel of all nodes. Nodes of earlier versions ignore it. */
const ASKED = JSON.stringify({ loadRequested: true })
const MAX_ENDED = 1_000

export class LoadRequests {
  readonly #deps: LoadRequestsDeps
  /** The ids of requests whose messages are in loads, and that may still be stored. */
  readonly #ended = new Set<string>()
  /** The ids of all requests that may still be stored, as far as this node knows. */
  readonly #open = new Set<string>()
  #nodeCount = 0
  #mustRead = true
  #reading: Promise<void> | null = null
  readonly #ending = new Set<Promise<void>>()
  #stopped = true

  constructor(deps: LoadRequestsDeps) {
    this.#deps = deps
  }

  start(): void {
    const { nodes, channel } = this.#deps.store
    this.#stopped = false
    channel?.onMessage((text) => {
      if (text === ASKED) this.#readSoon()
    })
    nodes?.onChange(() => {
      // Alone, this node has taken all requests since it last read. It has forgotten those that are open if its lease was not valid for a while.
      if (this.#mustRead || this.#open.size > 0 || nodes.count > 1 || nodes.count !== this.#nodeCount) this.#readSoon()
      this.#nodeCount = nodes.count
    })
    this.#readSoon()
  }

  /** Resolves when the request is stored. */
  async want(destinationId: string): Promise<void> {
    const { store, clock } = this.#deps
    this.#carryOut(await askForLoad(store.documents, destinationId, clock.wallMs()))
    store.channel?.publish(ASKED)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#reading
    await Promise.all(this.#ending)
  }

  #readSoon(): void {
    this.#mustRead = true
    if (this.#stopped || this.#reading !== null) return
    this.#reading = this.#read().finally(() => {
      this.#reading = null
    })
  }

  async #read(): Promise<void> {
    try {
      // Somebody may ask during a read.
      while (this.#mustRead && !this.#stopped) {
        this.#mustRead = false
        await this.#readOnce()
      }
    } catch (error) {
      // The next heartbeat reads.
      this.#mustRead = true
      this.#failed(error)
    }
  }

  async #readOnce(): Promise<void> {
    const { store } = this.#deps
    if (![...store.configuration().destinations.values()].some(({ type }) => type === 'warehouse')) return
    const stored = await loadRequests(store.documents)
    const ids = new Set(stored.map(({ id }) => id))
    for (const known of [this.#ended, this.#open]) for (const id of known) if (!ids.has(id)) known.delete(id)
    for (const request of stored) {
      if (this.#ended.has(request.id)) this.#end(request)
      else this.#carryOut(request)
    }
  }

  #carryOut(request: LoadRequest): void {
    if (this.#stopped) return
    this.#open.add(request.id)
    this.#deps.loadNow(request.destinationId, request.id, () => {
      this.#ended.add(request.id)
      // Without other nodes, what is stored is not read again, and a request that is no longer stored does no harm here.
      const [oldest] = this.#ended
      if (oldest !== undefined && this.#ended.size > MAX_ENDED) this.#ended.delete(oldest)
      this.#end(request)
    })
  }

  #end(request: LoadRequest): void {
    const ending = endLoadRequest(this.#deps.store.documents, request)
      .catch((error: unknown) => this.#failed(error))
      .finally(() => this.#ending.delete(ending))
    this.#ending.add(ending)
  }

  #failed(error: unknown): void {
    // The store reports by itself that it is unavailable.
    if (!(error instanceof StoreUnavailable)) this.#deps.onError(error)
  }
}
