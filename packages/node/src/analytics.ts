// The client: six calls and enqueue. Each message is composed, run through plugins, queued, sent and settled. These stages are in
// the folders call/, plugins/, queue/ and send/; this file and outbox.ts connect them. A call never throws and never blocks.

import { isObject, MESSAGE_TYPES, type MessageType, parseTime, refusal } from '@switchyard/protocol'
import { platform } from '#platform'
import type { Callback } from './call/callback.ts'
import { Context } from './call/context.ts'
import { AnalyticsError, CLIENT_ERRORS, messageOf } from './call/errors.ts'
import {
  type AnalyticsEvent,
  type ComposedMessage,
  compose,
  enqueuedEvent,
  eventOf,
  type RawParams,
  withoutEmptyIntegrations,
} from './call/event.ts'
import type {
  AliasParams,
  CloseAndFlushParams,
  EventCatalog,
  EventProperties,
  Flushed,
  FlushParams,
  GroupParams,
  IdentifyParams,
  PageParams,
  RawMessage,
  ScreenParams,
  TrackParams,
} from './call/params.ts'
import { Emitter } from './emitter.ts'
import { type FlushEvent, Outbox } from './outbox.ts'
import { Pipeline } from './plugins/pipeline.ts'
import type { PluginOf } from './plugins/plugin.ts'
import type { Piped } from './queue/batch.ts'
import type { Period } from './queue/flush-periods.ts'
import type { HttpRequestEvent, HttpResponseEvent } from './send/sender.ts'
import type { RetryEvent } from './send/verdict.ts'
import { type AnalyticsSettings, type CheckedSettings, checkSettings } from './settings.ts'
import { LIBRARY } from './version.ts'

export type AnalyticsEvents = {
  initialize: [settings: AnalyticsSettings]
  error: [error: AnalyticsError]
  identify: [ctx: Context]
  track: [ctx: Context]
  page: [ctx: Context]
  screen: [ctx: Context]
  group: [ctx: Context]
  alias: [ctx: Context]
  flush: [batch: FlushEvent]
  http_request: [request: HttpRequestEvent]
  http_response: [response: HttpResponseEvent]
  retry: [retry: RetryEvent]
  register: [pluginNames: string[]]
  deregister: [pluginNames: string[]]
  call_after_close: [event: AnalyticsEvent]
  drained: []
}

/** Methods that also work when detached from the instance: `const { track } = analytics`. */
const BOUND = [...MESSAGE_TYPES, 'enqueue', 'flush', 'closeAndFlush', 'register', 'deregister', 'on', 'once', 'off', 'emit'] as const

/** A plugin, to be passed to `analytics.register()`. */
// oxlint-disable-next-line typescript/no-explicit-any -- a plugin written for one event catalog works with all
export type Plugin = PluginOf<Analytics<any>>

/**
 * A client for one source. Calls queue a message and return immediately; the client sends the queue in batches. `Events` is an
 * optional map of event names to their properties, with which the compiler checks calls of `track`.
 */
export class Analytics<Events extends { [Event in keyof Events]: EventProperties } = EventCatalog> extends Emitter<AnalyticsEvents> {
  /** Resolves when all plugins registered so far have loaded or failed to load. */
  ready: Promise<void> = Promise.resolve()
  readonly #settings: CheckedSettings
  readonly #outbox: Outbox
  readonly #pipeline: Pipeline<Analytics<Events>>
  readonly #warned = new Set<string>()
  #isFailing = false

  /** Throws an AnalyticsError with the code `invalid_settings` if a setting is missing or invalid. */
  constructor(settings: AnalyticsSettings) {
    super()
    this.#settings = checkSettings(settings)
    this.#pipeline = new Pipeline((error) => this.#failed(error, false))
    this.#outbox = new Outbox(this.#settings, {
      failed: (error, hasCallback) => this.#failed(error, hasCallback),
      wantsContexts: () => this.listens('error'),
      flushed: (event) => void (this.listens('flush') && this.emit('flush', event)),
      drained: () => void (this.listens('drained') && this.emit('drained')),
      onRequest: () => (this.listens('http_request') ? (event) => this.emit('http_request', event) : undefined),
      onResponse: () => (this.listens('http_response') ? (event) => this.emit('http_response', event) : undefined),
      retry: (event) => void (this.listens('retry') && this.emit('retry', event)),
      finish: (ctx) => this.#pipeline.finish(ctx),
    })
    for (const name of BOUND) Object.defineProperty(this, name, { value: this[name].bind(this), writable: true, configurable: true })
    // Deferred, so that the caller can add listeners first.
    queueMicrotask(() => this.emit('initialize', settings))
  }

  /** Version of this library. */
  get VERSION(): string {
    return LIBRARY.version
  }

  /** Records who a user is, and their traits. Returns false if the queue is above its high-water mark: wait for `drained`. */
  identify(message: IdentifyParams, callback?: Callback): boolean {
    return this.#call('identify', message, callback)
  }

  /** Records something that a user did. Returns false if the queue is above its high-water mark: wait for `drained`. */
  track(message: TrackParams<Events>, callback?: Callback): boolean {
    return this.#call('track', message, callback)
  }

  /** Records a web page that a user viewed. Returns false if the queue is above its high-water mark: wait for `drained`. */
  page(message: PageParams, callback?: Callback): boolean {
    return this.#call('page', message, callback)
  }

  /** Records an app screen that a user viewed. Returns false if the queue is above its high-water mark: wait for `drained`. */
  screen(message: ScreenParams, callback?: Callback): boolean {
    return this.#call('screen', message, callback)
  }

  /** Records a group that a user belongs to, and the group's traits. Returns false if the queue is above its high-water mark: wait for `drained`. */
  group(message: GroupParams, callback?: Callback): boolean {
    return this.#call('group', message, callback)
  }

  /** Merges two IDs of the same user: `previousId` and the new `userId`. Returns false if the queue is above its high-water mark: wait for `drained`. */
  alias(message: AliasParams, callback?: Callback): boolean {
    return this.#call('alias', message, callback)
  }

  /** Sends a complete message from elsewhere, such as a line of an export. All fields are sent unchanged; the message includes its own `type`. */
  enqueue(message: RawMessage, callback?: Callback): boolean {
    try {
      if (isObject(message)) {
        const hasInvalidTimestamp = isInvalidTime(message['timestamp'])
        const event = enqueuedEvent(message, Date.now(), hasInvalidTimestamp, this.#settings.historical)
        return this.#accept(event, hasInvalidTimestamp, undefined, callback)
      }
      const { code, message: sentence } = refusal('invalid_request')
      return this.#reject(new AnalyticsError(code, sentence), callback)
    } catch (error) {
      return this.#reject(new AnalyticsError('not_serializable', messageOf(error), { reason: error }), callback)
    }
  }

  /** Sends all queued messages. Resolves when the service has stored each message of an earlier call or the message has failed, or at the timeout. */
  flush(options?: FlushParams): Flushed {
    const { timeout, close = false } = options ?? {}
    return (close ? this.#outbox.close(timeout) : this.#outbox.flush(timeout)) as Flushed
  }

  /** Closes the client to further calls, and flushes. Await it before the process exits. */
  closeAndFlush(options?: CloseAndFlushParams): Flushed {
    return this.flush({ timeout: options?.timeout, close: true })
  }

  /**
   * Adds plugins; resolves when all have loaded. Nothing is sent until then. The plugins also process calls made just before
   * `register()`, if there was no `await` in between.
   */
  register(...plugins: Plugin[]): Promise<void> {
    this.#outbox.hold()
    const recalled = this.#outbox.recall()
    const registered = this.#pipeline.register(plugins, this).then(() => {
      this.emit(
        'register',
        plugins.map((plugin) => plugin.name),
      )
    })
    for (const { json, bytes, period, waiter } of recalled) {
      this.#pipe({ ok: true, json, bytes }, period, waiter?.ctx ?? Context.fromJson(json), waiter?.callback)
    }
    const before = this.ready
    this.ready = Promise.allSettled([before, registered]).then(() => {})
    // The plugins get earlier calls after the code that awaits this promise has run, as in the public client, or when that code makes
    // the next call. A failure is emitted as an error event, so an ignored promise must not cause an unhandled rejection.
    const finish = (): void => {
      this.#pipeline.finishRegister()
      queueMicrotask(() => {
        this.#pipeline.release()
        this.#outbox.resume()
      })
    }
    registered.then(finish, finish)
    return registered
  }

  /** Removes plugins by name, after calling their `unload()`. */
  async deregister(...names: string[]): Promise<void> {
    const removed = await this.#pipeline.deregister(names, this)
    if (removed.length > 0) this.emit('deregister', removed)
  }

  /** Returns false if the queue is above its high-water mark. */
  #call(type: MessageType, params: unknown, callback: Callback | undefined): boolean {
    try {
      const given = (params ?? {}) as RawParams
      return this.#accept(eventOf(type, given, Date.now()), isInvalidTime(given['timestamp']), type, callback)
    } catch (error) {
      // Only the caller's own objects throw here: getters and proxies.
      return this.#reject(new AnalyticsError('not_serializable', `${type} was rejected: ${messageOf(error)}`, { reason: error }), callback)
    }
  }

  /** `call` is undefined for an enqueued message; error messages then do not name the call. */
  #accept(event: AnalyticsEvent, hasInvalidTimestamp: boolean, call: MessageType | undefined, callback: Callback | undefined): boolean {
    if (this.#outbox.isClosed) return this.#rejectAfterClose(event, callback)
    const composed = compose(event)
    if (!composed.ok) {
      const { code, message, field, reason } = composed
      const sentence = call === undefined ? message : `${call} was rejected: ${message}`
      return this.#reject(new AnalyticsError(code, sentence, { reason, field, ctx: new Context(event) }), callback)
    }
    const { type } = event
    if (hasInvalidTimestamp) {
      // A past event must not get the current time. Other messages are better sent with the time of the call than lost.
      if (this.#settings.historical) return this.#reject(invalidTimestamp(event, 'The message was rejected.'), callback)
      this.#failed(invalidTimestamp(event, 'The message is sent with the time of the call instead.'), false)
    }
    if (this.#settings.disable) return this.#acceptDisabled(type, composed, callback)
    if (!this.#outbox.reserve(composed.bytes)) return this.#reject(queueFull(Context.fromJson(composed.json)), callback)
    this.#pipeline.release()
    const direct = this.#pipeline.isIdle(type)
    const ctx = callback || !direct || this.listens(type) ? Context.fromJson(composed.json) : undefined
    const period = this.#outbox.begin()
    if (ctx && this.listens(type)) this.emit(type, ctx)
    if (direct) this.#put(composed, period, ctx, callback, undefined)
    else this.#pipe(composed, period, ctx as Context, callback)
    return this.#outbox.isBelowMark()
  }

  /** Runs the plugins, which may take long. Meanwhile the message keeps its room in the queue and counts as pending. */
  #pipe(message: ComposedMessage, period: Period, ctx: Context, callback: Callback | undefined): void {
    let current = ctx
    const hold = { isAbandoned: false, where: 'waited for a plugin to load' }
    const unregister = this.#outbox.heldByPlugin(() => {
      hold.isAbandoned = true
      const sentence = `the client was closed while the message ${hold.where}`
      this.#abandon(message.bytes, period, current, callback, new AnalyticsError('close_timeout', sentence, { ctx: current }))
    })
    const run = async (): Promise<void> => {
      try {
        if (hold.isAbandoned) return
        const result = this.#pipeline.enrich(ctx, (plugin) => {
          hold.where = `was still being processed by plugin ${plugin}`
        })
        current = result instanceof Context ? result : await result
        if (hold.isAbandoned) return
        const { event } = current
        event.messageId ??= platform.newId()
        // A plugin may have changed the message to one that the service would reject.
        const composed = compose(withoutEmptyIntegrations(event))
        if (!composed.ok) {
          const { code, field, reason } = composed
          throw new AnalyticsError(code, `the message is invalid after its plugins ran: ${composed.message}`, {
            reason,
            field,
            ctx: current,
          })
        }
        this.#outbox.release(message.bytes)
        message.bytes = 0
        if (!this.#outbox.reserve(composed.bytes)) throw queueFull(current)
        message.bytes = composed.bytes
        const piped: Piped = { destinations: undefined }
        // Queued first, so that destination plugins do not get a message that does not fit into the spool.
        if (this.#put(composed, period, current, callback, piped)) piped.destinations = this.#pipeline.deliver(current)
      } catch (error) {
        if (hold.isAbandoned) return
        const failure =
          error instanceof AnalyticsError ? error : new AnalyticsError('plugin_failed', messageOf(error), { reason: error, ctx: current })
        this.#abandon(message.bytes, period, current, callback, failure)
      } finally {
        unregister()
      }
    }
    if (this.#pipeline.isWaiting) this.#pipeline.wait(() => void run())
    else void run()
  }

  #put(
    message: ComposedMessage,
    period: Period,
    ctx: Context | undefined,
    callback: Callback | undefined,
    piped: Piped | undefined,
  ): boolean {
    const waiter = ctx && (callback || piped) ? { ctx, callback, piped } : undefined
    if (this.#outbox.put(message.json, message.bytes, period, waiter)) return true
    this.#abandon(message.bytes, period, ctx, callback, queueFull(ctx ?? Context.fromJson(message.json)))
    return false
  }

  /** Fails a message for which room was reserved, before it is queued. */
  #abandon(bytes: number, period: Period, ctx: Context | undefined, callback: Callback | undefined, error: AnalyticsError): void {
    this.#outbox.release(bytes)
    ctx?.setFailedDelivery({ reason: error.reason })
    this.#outbox.conclude(period, ctx, callback, error, undefined)
  }

  #reject(error: AnalyticsError, callback: Callback | undefined): boolean {
    const period = this.#outbox.begin()
    error.ctx?.setFailedDelivery({ reason: error.reason })
    this.#outbox.conclude(period, error.ctx, callback, error, undefined)
    return this.#outbox.isBelowMark()
  }

  #rejectAfterClose(event: AnalyticsEvent, callback: Callback | undefined): boolean {
    this.emit('call_after_close', event)
    if (callback) {
      const error = new AnalyticsError('call_after_close', CLIENT_ERRORS.call_after_close, { ctx: new Context(event) })
      this.#outbox.callBack(callback, error, error.ctx)
    }
    return true
  }

  #acceptDisabled(type: MessageType, message: ComposedMessage, callback: Callback | undefined): boolean {
    const ctx = Context.fromJson(message.json)
    if (this.listens(type)) this.emit(type, ctx)
    if (callback) this.#outbox.callBack(callback, undefined, ctx)
    return true
  }

  #failed(error: AnalyticsError, hasCallback: boolean): void {
    // An error inside an error listener is not emitted again: that would never end.
    if (this.listens('error') && !this.#isFailing) {
      this.#isFailing = true
      this.emit('error', error)
      this.#isFailing = false
    } else if (!hasCallback) this.#warnOnce(error)
  }

  /** Prints errors that have no listener, once for each code. Otherwise data could be lost unnoticed for months. */
  #warnOnce(error: AnalyticsError): void {
    if (this.#warned.has(error.code)) return
    this.#warned.add(error.code)
    platform.warn(
      `${error.code}: ${error.message} (Only the first error with this code is printed. To see all, use analytics.on('error', …).)`,
    )
  }

  protected override listenerFailed(type: keyof AnalyticsEvents, thrown: unknown): void {
    const error = new AnalyticsError('listener_failed', `a listener for the event ${type} threw: ${messageOf(thrown)}`, { reason: thrown })
    if (type === 'error') this.#warnOnce(error)
    else this.#failed(error, false)
  }
}

/** If the message is sent anyway, it has not failed and its callback gets no error; the error event still reports the timestamp. */
function invalidTimestamp(event: AnalyticsEvent, consequence: string): AnalyticsError {
  const message = `${event.type}: timestamp is not a Date, an ISO 8601 string or epoch milliseconds. ${consequence}`
  return new AnalyticsError('timestamp_invalid', message, { field: 'timestamp', ctx: new Context(event) })
}

function isInvalidTime(timestamp: unknown): boolean {
  return timestamp != null && parseTime(timestamp) === undefined
}

function queueFull(ctx: Context): AnalyticsError {
  return new AnalyticsError('queue_full', `${ctx.event.type} was rejected: ${CLIENT_ERRORS.queue_full}`, { ctx })
}
