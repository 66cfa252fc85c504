// Takes an accepted message to its outcome: through the queue, the spool and the sender, and then to callbacks, plugins and
// events. Counts messages: each ends exactly once, as delivered or failed. Does not look into messages.

import { MAX_BATCH_BYTES } from '@switchyard/protocol'
import { platform } from '#platform'
import type { Callback } from './call/callback.ts'
import { Context } from './call/context.ts'
import { AnalyticsError, messageOf } from './call/errors.ts'
import { type AnalyticsEvent, revive } from './call/event.ts'
import type { FlushResult } from './call/params.ts'
import { customTransport } from './http/http-client.ts'
import type { Transport } from './http/transport.ts'
import type { ExitTarget } from './platform/platform.ts'
import type { PluginRun } from './plugins/pipeline.ts'
import { type Batch, eventsOf, free, type Piped, type Waiter } from './queue/batch.ts'
import { FlushPeriods, type Period, withFormerName } from './queue/flush-periods.ts'
import { Queue, type Recalled } from './queue/queue.ts'
import { TokenSource } from './send/oauth.ts'
import { type BatchResult, type HttpRequestEvent, type HttpResponseEvent, Sender } from './send/sender.ts'
import type { RetryEvent } from './send/verdict.ts'
import type { CheckedSettings } from './settings.ts'
import { MessagesWithoutKey, type Spool, type SpoolLimits } from './spool.ts'

/** Emitted as `flush` when a batch was stored by the service or failed. */
export interface FlushEvent {
  /** Number of messages in the batch. */
  messages: number
  /** Messages that the service has stored. */
  stored: number
  failed: number
  /** Number of requests made for the batch. */
  attempts: number
  /** @deprecated The same number as `stored`. The property is not enumerable. */
  readonly delivered: number
}

export interface OutboxEvents {
  /** A message or the client failed. `hasCallback`: a callback gets the error, too. */
  failed(error: AnalyticsError, hasCallback: boolean): void
  /** Whether errors need the context of their message, because someone listens to them. */
  wantsContexts(): boolean
  flushed(event: FlushEvent): void
  drained(): void
  onRequest(): ((event: HttpRequestEvent) => void) | undefined
  onResponse(): ((event: HttpResponseEvent) => void) | undefined
  retry(event: RetryEvent): void
  /** Runs the after plugins of a message that plugins processed. */
  finish(ctx: Context): PluginRun | undefined
}

/** At most 500 KB, whether a kilobyte is 1,000 or 1,024 bytes. */
const BATCH_BYTES = Math.min(MAX_BATCH_BYTES, 500_000)
const SHUT_DOWN_MS = 10_000
/** The public client waits this long for everything at close. */
const PLUGINS_AT_CLOSE_MS = 75_000

export class Outbox implements ExitTarget {
  readonly #events: OutboxEvents
  readonly #periods = new FlushPeriods()
  readonly #queue: Queue
  readonly #sender: Sender
  readonly #transports: Transport[]
  readonly #spool: Spool | undefined
  readonly #callbackLimitMs: number
  #roomWaiters: (() => void)[] = []
  #heldByPlugins = new Set<() => void>()
  #pluginsLoading = 0
  #onDisk = 0
  #callbacksRunning = 0
  #isClosed = false
  #isFinished = false
  #ignoreSignals: (() => void) | undefined

  constructor(settings: CheckedSettings, events: OutboxEvents) {
    this.#events = events
    this.#callbackLimitMs = settings.requestTimeoutMs
    const { oauth, httpClient } = settings
    const transport = httpClient ? customTransport(httpClient) : platform.transport(settings.maxInFlight)
    const authTransport = oauth?.httpClient ? customTransport(oauth.httpClient) : transport
    this.#transports = [transport, authTransport]
    this.#queue = new Queue({
      flushAt: settings.flushAt,
      flushIntervalMs: settings.flushIntervalMs,
      maxBatchBytes: BATCH_BYTES - Sender.envelopeBytes(settings.writeKey),
      maxBytes: settings.maxQueueBytes,
      highWaterBytes: settings.highWaterBytes,
      onReady: () => (this.#isFinished ? this.#sender.stop() : this.#sender.wake()),
      onDrained: () => events.drained(),
    })
    this.#sender = new Sender({
      settings,
      transport,
      token:
        oauth &&
        new TokenSource({
          oauth,
          authServer: oauth.authServer,
          transport: authTransport,
          maxRetries: oauth.maxRetries ?? settings.maxRetries,
          maxRateLimitMs: settings.maxRateLimitMs,
          timeoutMs: settings.requestTimeoutMs,
          pause: (ms) => this.#sender.pause(ms),
          onRetry: (event) => events.retry(event),
        }),
      take: (freeSlots) => this.#queue.take(freeSlots),
      settle: (batch, result) => this.#settle(batch, result),
      onRequest: () => events.onRequest(),
      onResponse: () => events.onResponse(),
      onRetry: (event) => events.retry(event),
    })
    if (settings.disable) return
    this.#spool = settings.spool && this.#openSpool(settings.spool, settings)
    if (settings.handleSignals) this.#ignoreSignals = orInvalidSetting('handleSignals', () => platform.handleSignals(this))
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  get unsafeMessages(): number {
    return this.#periods.pending - this.#onDisk
  }

  /** The return value of a call. */
  isBelowMark(): boolean {
    return this.#queue.isBelowMark()
  }

  /** Counts a new message as pending. */
  begin(): Period {
    const period = this.#periods.current
    this.#begin(period)
    return period
  }

  reserve(bytes: number): boolean {
    return this.#queue.reserve(bytes)
  }

  release(bytes: number): void {
    this.#queue.release(bytes)
    for (const retry of this.#roomWaiters.splice(0)) retry()
  }

  /** Queues a message that is counted and for which room is reserved. Returns false if it does not fit into the spool. */
  put(json: string, bytes: number, period: Period, waiter?: Omit<Waiter, 'index'>): boolean {
    let spooledAs: number | undefined
    if (this.#spool && !this.#isFinished) {
      try {
        spooledAs = this.#spool.keep(json)
        if (spooledAs === undefined) return false
      } catch (error) {
        this.#spoolFailed(error)
      }
    }
    this.#enqueue(json, bytes, period, waiter, spooledAs, waiter?.piped === undefined)
    return true
  }

  /** Removes messages from the queue whose calls were made just now, before the plugins. They keep their room in the queue and count as pending. */
  recall(): Recalled[] {
    const recalled = this.#queue.recall()
    const spooled = recalled.flatMap(({ spooledAs }) => (spooledAs === undefined ? [] : [{ from: spooledAs, to: spooledAs }]))
    this.#onDisk -= spooled.length
    // After a restart, only the messages as changed by the plugins may be sent.
    if (spooled.length > 0) this.#forget(spooled)
    return recalled
  }

  /** Ends a message. The after plugins run when the destination plugins have finished, and then the callback is called. */
  conclude(
    period: Period,
    ctx: Context | undefined,
    callback: Callback | undefined,
    error: AnalyticsError | undefined,
    piped: Piped | undefined,
  ): void {
    // Before the message ends, because a flush waits for plugins and callbacks, too.
    if (piped && ctx) this.#finish(period, ctx, callback, error, piped)
    else if (callback) this.callBack(callback, error, ctx, period)
    this.#end(period, error ? 0 : 1, error ? 1 : 0)
    if (error) this.#events.failed(error, callback !== undefined)
  }

  /**
   * Registers a message that a plugin is processing. `giveUp` is called if the plugin has not finished at close. Call the returned function
   * when the plugin has finished; it returns false if the message was given up before.
   */
  heldByPlugin(giveUp: () => void): () => boolean {
    this.#heldByPlugins.add(giveUp)
    return () => this.#heldByPlugins.delete(giveUp)
  }

  /** Calls a callback, and makes flushes of the period wait for it. If it throws, that is reported as listener_failed. */
  callBack(callback: Callback, error: AnalyticsError | undefined, ctx: Context | undefined, period?: Period): void {
    const free = period && this.#periods.occupy(period)
    const failed = (thrown: unknown): void =>
      this.#events.failed(new AnalyticsError('listener_failed', `a callback threw: ${messageOf(thrown)}`, { reason: thrown, ctx }), false)
    // Deferred, so that the code after a call always runs before its callback.
    queueMicrotask(() => {
      let result: unknown
      try {
        result = this.#run(callback, error, ctx)
      } catch (thrown) {
        failed(thrown)
      }
      // Most callbacks return nothing, and need neither a promise nor a timer.
      if (result === undefined) return free?.()
      const settled = Promise.resolve(result).catch(failed)
      if (free) this.#freeAfter(settled, free)
    })
  }

  #run(callback: Callback, error: AnalyticsError | undefined, ctx: Context | undefined): unknown {
    this.#callbacksRunning++
    try {
      return callback(error, ctx)
    } finally {
      this.#callbacksRunning--
    }
  }

  flush(timeoutMs: number | undefined): Promise<FlushResult> {
    const result = this.#periods.close(timeoutMs, this.#callbacksRunning === 0)
    this.sendNow()
    return result
  }

  async close(timeoutMs: number | undefined): Promise<FlushResult> {
    this.#isClosed = true
    this.#sender.closing()
    // Everything else that close waits for has a time limit of its own.
    const isUnlimited = timeoutMs === undefined || Number.isNaN(timeoutMs)
    const timer = isUnlimited ? setTimeout(() => this.#giveUpPlugins(), PLUGINS_AT_CLOSE_MS) : undefined
    const result = await this.flush(timeoutMs)
    clearTimeout(timer)
    this.#shut()
    return result
  }

  sendNow(): void {
    this.#queue.seal()
    this.#sender.wake()
  }

  async shutDown(stayOpen: boolean): Promise<void> {
    const until = performance.now() + SHUT_DOWN_MS
    // Calls made meanwhile are sent, too.
    do await this.flush(Math.max(until - performance.now(), 0))
    while (this.#periods.pending > 0 && performance.now() < until)
    if (!stayOpen) await this.close(0)
  }

  /** Sends nothing while a plugin is loading. */
  hold(): void {
    this.#pluginsLoading++
    this.#sender.hold()
  }

  resume(): void {
    this.#pluginsLoading--
    this.#sender.resume()
  }

  #begin(period: Period): void {
    if (this.#periods.pending === 0) platform.watchExit(this)
    this.#periods.begin(period)
  }

  #end(period: Period, delivered: number, failed: number): void {
    this.#periods.end(period, delivered, failed)
    if (this.#periods.pending === 0) platform.unwatchExit(this)
  }

  #finish(period: Period, ctx: Context, callback: Callback | undefined, error: AnalyticsError | undefined, piped: Piped): void {
    const callBack = (): void => callback && this.callBack(callback, error, ctx, period)
    let run = piped.destinations?.running.size ? piped.destinations : this.#events.finish(ctx)
    if (!run) return callBack()
    const finished = run === piped.destinations ? run.done.then(() => (run = this.#events.finish(ctx))?.done) : run.done
    if (this.#isFinished) return callBack()
    const leave = this.heldByPlugin(() => {
      const names = [...(run?.running ?? [])].join(', ')
      this.#events.failed(
        new AnalyticsError('plugin_failed', `the client was closed while the message was still being processed by plugin ${names}`, {
          ctx,
        }),
        false,
      )
      callBack()
    })
    // A flush waits for plugins only for a limited time, so that a plugin cannot block it.
    const free = this.#periods.occupy(period)
    this.#freeAfter(
      finished.then(() => {
        if (leave()) callBack()
      }),
      free,
    )
  }

  #freeAfter(promise: Promise<unknown>, free: () => void): void {
    let isFree = false
    const once = (): void => {
      if (isFree) return
      isFree = true
      clearTimeout(timer)
      free()
    }
    // This timer keeps the process alive, because an awaited flush must resolve before the process ends.
    const timer = setTimeout(once, this.#callbackLimitMs)
    void promise.then(once, once)
  }

  #enqueue(
    json: string,
    bytes: number,
    period: Period,
    waiter: Omit<Waiter, 'index'> | undefined,
    spooledAs: number | undefined,
    isFresh: boolean,
  ): void {
    if (spooledAs !== undefined) this.#onDisk++
    this.#queue.add(json, bytes, period, waiter, spooledAs, isFresh)
    // A flush is waiting for this message, so it must not wait for the flush interval.
    if (this.#periods.isClosed(period) || this.#isFinished) this.#queue.sealSoon()
  }

  #settle(batch: Batch, result: BatchResult): void {
    // Messages given up at close are not lost if they are on disk: the next start delivers them.
    const isKept = result.error?.code === 'close_timeout' && batch.spooled !== undefined
    for (const { from, to } of batch.spooled ?? []) this.#onDisk -= to - from + 1
    if (batch.spooled && !isKept) this.#forget(batch.spooled)
    this.release(batch.bytes)
    const rejected = new Map(
      result.rejected.filter(({ index }) => index >= 0 && index < batch.count).map(({ index, error }) => [index, error]),
    )
    const failed = result.error ? batch.count : rejected.size
    const stored = batch.count - failed
    // Most batches are delivered completely and have no callbacks or plugins, so nothing has to be done for each message.
    if (failed > 0 || batch.waiters) this.#concludeEach(batch, result, rejected, isKept)
    else this.#end(batch.period, stored, 0)
    free(batch)
    this.#events.flushed(withFormerName({ messages: batch.count, stored, failed, attempts: result.attempts }))
    if (this.#periods.pending === 0) this.#events.drained()
  }

  #concludeEach(batch: Batch, result: BatchResult, rejected: Map<number, AnalyticsError>, isKept: boolean): void {
    const waiters = new Map(batch.waiters?.map((waiter) => [waiter.index, waiter]))
    const anyFailed = (result.error !== undefined || rejected.size > 0) && !isKept
    const events = anyFailed && this.#events.wantsContexts() ? eventsOf(batch) : undefined
    for (let index = 0; index < batch.count; index++) {
      const waiter = waiters.get(index)
      const error = rejected.get(index) ?? result.error
      const ctx = waiter?.ctx ?? (error && events && new Context(revive(events[index] as AnalyticsEvent)))
      if (ctx) ctx.attempts = result.attempts
      const failure = error && (ctx ? error.about(ctx) : error)
      if (failure) ctx?.setFailedDelivery({ reason: failure.reason })
      // A message that is kept on disk has not failed, but its callback is called now, with close_timeout.
      if (isKept) {
        if (waiter?.callback) this.callBack(waiter.callback, failure, ctx, batch.period)
        this.#periods.leave(batch.period)
      } else this.conclude(batch.period, ctx, waiter?.callback, failure, waiter?.piped)
    }
  }

  /** Gives up the messages that plugins are still processing. */
  #giveUpPlugins(): void {
    const held = [...this.#heldByPlugins]
    this.#heldByPlugins.clear()
    for (const giveUp of held) giveUp()
    if (this.#pluginsLoading > 0) this.#sender.stop()
  }

  #shut(): void {
    if (this.#isFinished) return
    this.#isFinished = true
    this.#giveUpPlugins()
    this.#queue.seal()
    this.#queue.close()
    this.#sender.stop()
    for (const transport of this.#transports) transport.close()
    this.#spool?.close()
    this.#ignoreSignals?.()
    platform.unwatchExit(this)
  }

  #openSpool(limits: SpoolLimits, { writeKey, url, historical }: CheckedSettings): Spool {
    // A historical client sends no sentAt, with which the service would correct past times. So its messages are kept apart.
    const place = { ...limits, sender: JSON.stringify([writeKey, url, historical]) }
    const spool = orInvalidSetting('spool.dir', () => platform.spool(place, (error) => this.#spoolFailed(error)))
    // Messages found at the start belong to the first period, so that the first flush waits for them.
    let period: Period | undefined = this.#periods.current
    const free = this.#periods.occupy(period)
    queueMicrotask(() => {
      void spool
        .recover((json, number) => this.#requeue(json, number, period ?? this.#periods.current))
        .catch((error: unknown) => this.#spoolFailed(error))
        .finally(() => {
          period = undefined
          this.sendNow()
          free()
        })
    })
    return spool
  }

  /** Queues a message that is already on disk, as soon as there is room. */
  async #requeue(json: string, number: number, period: Period): Promise<void> {
    const bytes = platform.byteLength(json)
    while (!this.#isFinished && !this.#queue.admit(bytes)) await new Promise<void>((resolve) => this.#roomWaiters.push(resolve))
    if (this.#isFinished) return
    this.#begin(period)
    this.#enqueue(json, bytes, period, undefined, number, false)
  }

  #forget(ranges: NonNullable<Batch['spooled']>): void {
    try {
      this.#spool?.forget(ranges)
    } catch (error) {
      this.#spoolFailed(error)
    }
  }

  #spoolFailed(error: unknown): void {
    const failure =
      error instanceof MessagesWithoutKey
        ? new AnalyticsError('spool_without_key', error.message)
        : new AnalyticsError('spool_failed', `the spool failed: ${messageOf(error)}`, { reason: error })
    this.#events.failed(failure, false)
  }
}

/** Throws invalid_settings if the platform does not support a setting. */
function orInvalidSetting<Result>(setting: string, open: () => Result): Result {
  try {
    return open()
  } catch (error) {
    throw new AnalyticsError('invalid_settings', `${setting} cannot be used: ${messageOf(error)}`, { reason: error, field: setting })
  }
}
