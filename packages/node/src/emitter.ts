// A typed emitter, chainable, for any runtime. Unlike Node's, an `error` nobody listens to does not throw, and a
// listener that throws cannot reach the code that emitted: analytics must not break the caller.

export type EventMap = Record<string, unknown[]>
export type Listener<Args extends unknown[]> = (...args: Args) => unknown

export class Emitter<Events extends EventMap> {
  readonly #listeners = new Map<keyof Events, Listener<never[]>[]>()

  on<Type extends keyof Events>(type: Type, listener: Listener<Events[Type]>): this {
    // A new array each time, so that a listener added or removed during an emit does not disturb that emit.
    this.#listeners.set(type, [...(this.#listeners.get(type) ?? []), listener])
    return this
  }

  once<Type extends keyof Events>(type: Type, listener: Listener<Events[Type]>): this {
    let fired = false
    const wrapped: Listener<Events[Type]> & { listener?: unknown } = (...args) => {
      // An emit within the listener, or within one before it, still sees the list with this one in it.
      if (fired) return
      fired = true
      this.off(type, wrapped)
      return listener(...args)
    }
    wrapped.listener = listener
    return this.on(type, wrapped)
  }

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

  listens(type: keyof Events): boolean {
    return this.#listeners.has(type)
  }

  /** What to do with a listener's own error; a subclass decides. */
  protected listenerFailed(_type: keyof Events, _error: unknown): void {}
}
