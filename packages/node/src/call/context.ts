// The context of one call, as plugins, listeners and callbacks see it. Most calls have none of those, so the event is
// parsed from its JSON only when it is read. Nothing here sends or queues.

import { platform } from '#platform'
import { type AnalyticsEvent, revive } from './event.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export interface LogMessage {
  level: LogLevel
  message: string
  time: Date
  extras?: Record<string, unknown> | undefined
}

export interface SerializedContext {
  id: string
  event: AnalyticsEvent
  logs: LogMessage[]
}

export interface CancelationOptions {
  retry?: boolean
  reason?: string
  type?: string
}

/** Thrown by `ctx.cancel()`, to cancel the message intentionally. */
export class ContextCancelation {
  readonly retry: boolean
  readonly type: string
  readonly reason: string | undefined

  constructor(options: CancelationOptions = {}) {
    this.retry = options.retry ?? false
    this.type = options.type ?? 'plugin Error'
    this.reason = options.reason
  }
}

const NO_STATS = {
  metrics: [] as unknown[],
  increment: (_metric: string, _by?: number, _tags?: string[]): void => {},
  gauge: (_metric: string, _value: number, _tags?: string[]): void => {},
  flush: (): void => {},
  serialize: (): unknown[] => [],
}

const FORBIDDEN_KEYS = new Set(['__proto__', 'constructor', 'prototype'])

export class Context {
  /** Number of times the message was sent; set when its outcome is known. */
  attempts = 0
  #id: string | undefined
  #event: AnalyticsEvent | undefined
  #json: string | undefined
  #logs: LogMessage[] | undefined
  #failure: { reason: unknown } | undefined

  /** Accepts a partial event, because tests of plugins create contexts from a few fields. */
  constructor(event: Pick<AnalyticsEvent, 'type'> & Partial<AnalyticsEvent>, id?: string) {
    this.#event = event as AnalyticsEvent
    this.#id = id
  }

  /** Creates a context from the JSON of an event. */
  static fromJson(json: string): Context {
    const ctx = new this(undefined as unknown as AnalyticsEvent)
    ctx.#json = json
    return ctx
  }

  /** Creates a context that belongs to no call, for a plugin's load() and unload(). */
  static system(): Context {
    return new this({ type: 'track', event: 'system', messageId: platform.newId(), timestamp: new Date(), context: {}, integrations: {} })
  }

  get event(): AnalyticsEvent {
    this.#event ??= revive(JSON.parse(this.#json as string) as AnalyticsEvent)
    return this.#event
  }

  set event(event: AnalyticsEvent) {
    this.#event = event
  }

  get id(): string {
    this.#id ??= platform.newId()
    return this.#id
  }

  isSame(other: Context): boolean {
    return other.id === this.id
  }

  /** Cancels this message: it is not sent, and its callback gets the error `plugin_cancelled`. */
  cancel(error?: Error | ContextCancelation): never {
    // oxlint-disable-next-line typescript/only-throw-error -- the public contract: plugins catch ContextCancelation
    throw error ?? new ContextCancelation({ reason: 'Context Cancel' })
  }

  log(level: LogLevel, message: string, extras?: Record<string, unknown>): void {
    this.#logs ??= []
    this.#logs.push(extras === undefined ? { level, message, time: new Date() } : { level, message, time: new Date(), extras })
  }

  logs(): LogMessage[] {
    return this.#logs ?? []
  }

  /** The log as an object, for plugins written for the public client. */
  get logger(): { log: Context['log']; logs: LogMessage[]; flush: () => void } {
    return { log: (level, message, extras) => this.log(level, message, extras), logs: this.logs(), flush: () => this.flush() }
  }

  /** Counters that record nothing, so that plugins written for the public client work. */
  get stats(): typeof NO_STATS {
    return NO_STATS
  }

  /** Sets a value by its path, such as `properties.plan.name`, and creates missing objects along the path. */
  updateEvent(path: string, value: unknown): AnalyticsEvent {
    const keys = path.split('.')
    const last = keys.pop() as string
    if (FORBIDDEN_KEYS.has(last) || keys.some((key) => FORBIDDEN_KEYS.has(key)))
      throw new TypeError(`updateEvent cannot set ${path}: the path must not contain __proto__, constructor or prototype`)
    let at = this.event as unknown as Record<string, unknown>
    for (const key of keys) {
      const next = at[key]
      if (typeof next === 'object' && next !== null) at = next as Record<string, unknown>
      else {
        const made: Record<string, unknown> = {}
        at[key] = made
        at = made
      }
    }
    at[last] = value
    return this.event
  }

  failedDelivery(): { reason: unknown } | undefined {
    return this.#failure
  }

  setFailedDelivery(failure: { reason: unknown }): void {
    this.#failure = failure
  }

  /** Drops the collected logs. */
  flush(): void {
    this.#logs = undefined
  }

  toJSON(): SerializedContext {
    return { id: this.id, event: this.event, logs: this.logs() }
  }
}
