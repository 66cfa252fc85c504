// A typed, chainable event emitter for any runtime. Unlike Node's, it does not throw if an `error` event has no listener, and
// an error thrown by a listener does not reach the code that emitted the event: analytics must not break the caller.

export type EventMap = Record<string, unknown[]>
export type Listener<Args extends unknown[]> = (...args: Args) => unknown

export class Emitter<Events extends EventMap> {
  readonly #listeners = new Map<keyof Events, Listener<never[]>[]>()

  /** Adds a listener. Returns the instance. */
  on<Type extends keyof Events>(type: Type, listener: Listener<Events[Type]>): this {
    // A new array each time, so that a listener added or removed during an emit does not disturb that emit.
    this.#listeners.set(type, [...(this.#listeners.get(type) ?? []), listener])
    return this
  }

  /** Adds a listener that is called at most once. Returns the instance. */
  once<Type extends keyof Events>(type: Type, listener: Listener<Events[Type]>): this {
    let fired = false
    const wrapped: Listener<Events[Type]> & { listener?: unknown } = (...args) => {
      // An emit inside this listener, or inside an earlier one, still iterates over a list that contains this listener.
      if (fired) return
      fired = true
      this.off(type, wrapped)
      return listener(...args)
    }
    wrapped.listener = listener
    return this.on(type, wrapped)
  }

  /** Removes a listener that was added with `on` or `once`. Returns the instance. */
  off<Type extends keyof Events>(type: Type, listener: Listener<Events[Type]>): this {
    const listeners = this.#listeners.get(type) ?? []
    const index = listeners.findIndex((item) => (item as unknown) === listener || (item as { listener?: unknown }).listener === listener)
    if (index < 0) return this
    if (listeners.length === 1) this.#listeners.delete(type)
    else
      this.#listeners.set(
        type,
        listeners.filter((_, at) => at !== index),
      )
    return this
  }

  emit<Type extends keyof Events>(type: Type, ...args: Events[Type]): this {
    for (const listener of this.#listeners.get(type) ?? []) {
      try {
        const result = (listener as unknown as Listener<Events[Type]>)(...args)
        if (result instanceof Promise) result.catch((error: unknown) => this.listenerFailed(type, error))
      } catch (error) {
        this.listenerFailed(type, error)
      }
    }
    return this
  }

  /** Whether the event has a listener. */
  listens(type: keyof Events): boolean {
    return this.#listeners.has(type)
  }

  /** Called when a listener throws or rejects; subclasses override it. */
  protected listenerFailed(_type: keyof Events, _error: unknown): void {}
}
