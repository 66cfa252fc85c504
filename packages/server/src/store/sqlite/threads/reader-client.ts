// The main thread's side of the reading thread. Each request has a number, and its response has the same number. When the thread has ended,
// requests are rejected with StoreUnavailable.

import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { InvalidCursor, StoreUnavailable } from '../../store.ts'
import type { Asked } from '../commands/protocol.ts'
import type { ReadRequest, ReadResponse, Reads } from './reader-thread.ts'

export class ReaderClient {
  readonly #worker: Worker
  readonly #asked = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>()
  #last = 0
  /** Why the thread has ended; null while it runs. */
  #ended: Error | null = null

  constructor(path: string) {
    this.#worker = new Worker(new URL('./reader-thread.ts', import.meta.url), { workerData: { path }, name: 'switchyard-reader' })
    this.#worker.on('message', (answer: ReadResponse) => {
      const asked = this.#asked.get(answer.id)
      this.#asked.delete(answer.id)
      if (answer.ok) asked?.resolve(answer.value as never)
      else asked?.reject(answer.invalidCursor ? new InvalidCursor() : new Error(answer.message))
    })
    this.#worker.on('error', (error) => this.#fail(error as Error))
    this.#worker.on('exit', () => this.#fail(new Error('the reading thread of the store has stopped unexpectedly')))
  }

  ask<T extends keyof Reads, K extends keyof Reads[T] & string>(
    topic: T,
    name: K,
    ...args: Reads[T][K] extends (...args: infer A) => unknown ? A : never
  ): Promise<Reads[T][K] extends (...args: never) => infer R ? Awaited<R> : never> {
    if (this.#ended) return Promise.reject(new StoreUnavailable(this.#ended.message, { cause: this.#ended }))
    const id = ++this.#last
    return new Promise((resolve, reject) => {
      this.#asked.set(id, { resolve, reject })
      this.#worker.postMessage({ id, topic, name, args } satisfies ReadRequest, [])
    })
  }

  /** Functions that call these methods of a topic in the reading thread. */
  methods<T extends keyof Reads, K extends keyof Reads[T] & string>(topic: T, ...names: K[]): Pick<Asked<Reads[T]>, K> {
    return Object.fromEntries(names.map((name) => [name, (...args: never) => this.ask(topic, name, ...args)])) as Pick<Asked<Reads[T]>, K>
  }

  /**
   * A topic of the port: a call of a method is a request to the reading thread, except for the methods of `own`. The result is a proxy that can be
   * called but not copied: Object.assign or a spread copies the methods of `own` and drops the others.
   */
  topic<T extends keyof Reads, Own extends object>(topic: T, own: Own): Own & Omit<Asked<Reads[T]>, keyof Own> {
    // Code that inspects objects also reads properties that are not methods of the topic: `then` when a promise is resolved with this object, symbols when it is logged.
    const isRequest = (name: string | symbol): boolean => typeof name === 'string' && name !== 'then' && !(name in own)
    const get = (target: Own, name: string | symbol): unknown =>
      isRequest(name) ? (...args: never) => this.ask(topic, name as never, ...args) : Reflect.get(target, name)
    return new Proxy(own, { get }) as Own & Asked<Reads[T]>
  }

  /** Ends the thread after it has answered all requests. */
  async close(): Promise<void> {
    if (this.#ended) return
    this.#ended = new Error('the store is closed')
    const exit = once(this.#worker, 'exit')
    this.#worker.postMessage('close', [])
    await exit
  }

  #fail(error: Error): void {
    this.#ended ??= error
    for (const { reject } of this.#asked.values()) reject(new StoreUnavailable(error.message, { cause: error }))
    this.#asked.clear()
  }
}
