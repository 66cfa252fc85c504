// From an accepted message to its outcome: room in the queue, the spool, the sender, and then whoever waits. Keeps the
// count: every message begun ends exactly once, as delivered or failed. What a message is made of is not its business.

import { MAX_BATCH_BYTES } from '@switchyard/protocol'
import { platform } from '#platform'
import type { Callback } from './call/callback.ts'
import { Context } from './call/context.ts'
import { type AnalyticsEvent, revive } from './call/event.ts'
import type { FlushResult } from './call/params.ts'
import { AnalyticsError, messageOf } from './errors.ts'
import type { ExitTarget } from './platform/platform.ts'
import type { PluginRun } from './plugins/pipeline.ts'
import { FlushPeriods, type Period } from './queue/flush-periods.ts'
import { type Batch, type Piped, Queue, type Recalled, type Waiter } from './queue/queue.ts'
import { MessagesWithoutKey, type Spool, type SpoolLimits } from './queue/spool.ts'
import { customTransport } from './send/http-client.ts'
import { TokenSource } from './send/oauth.ts'
import { type BatchResult, type HttpRequestEvent, type HttpResponseEvent, Sender } from './send/sender.ts'
import type { Transport } from './send/transport.ts'
import type { RetryEvent } from './send/verdict.ts'
import type { CheckedSettings } from './settings.ts'

export interface FlushEvent {
  /** Messages in the batch. */
  messages: number
  delivered: number
  failed: number
  /** Requests it took. */
  attempts: number
}

export interface OutboxEvents {
  /** A message failed, or the client itself did. `heard`: a callback is told, too. */
  failed(error: AnalyticsError, heard: boolean): void
  /** Whether telling a failure with its message's context is worth making one. */
  wantsContexts(): boolean
  flushed(event: FlushEvent): void
  drained(): void
  onRequest(): ((event: HttpRequestEvent) => void) | undefined
  onResponse(): ((event: HttpResponseEvent) => void) | undefined
  retry(event: RetryEvent): void
  /** Runs after plugins, for a message that came through plugins. */
  finish(ctx: Context): PluginRun | undefined
}

/** Below 500 KB however a kilobyte is counted. */
const BATCH_BYTES = Math.min(MAX_BATCH_BYTES, 500_000)
const SHUT_DOWN_MS = 10_000
/** The public client waits this long at close for everything. */
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
      take: (places) => this.#queue.take(places),
      settle: (batch, result) => this.#settle(batch, result),
      onRequest: () => events.onRequest(),
      onResponse: () => events.onResponse(),
      onRetry: (event) => events.retry(event),
    })
    if (settings.disable) return
    this.#spool = settings.spool && this.#openSpool(settings.spool, settings)
    if (settings.handleSignals) this.#ignoreSignals = orRefuse('handleSignals', () => platform.handleSignals(this))
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  get unsafeMessages(): number {
    return this.#periods.pending - this.#onDisk
  }

  /** What a call returns. */
  belowMark(): boolean {
    return this.#queue.belowMark()
  }

  /** Counts a message as begun. */
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

  /** Queues a message that is begun and has its room. False if the spool has none. */
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

  /** Takes back messages that were called just now and bypassed the plugins. They keep their room in the queue and still count. */
  recall(): Recalled[] {
    const recalled = this.#queue.recall()
    const spooled = recalled.flatMap(({ spooledAs }) => (spooledAs === undefined ? [] : [{ from: spooledAs, to: spooledAs }]))
    this.#onDisk -= spooled.length
    // What is sent after a restart must be what the plugins made of the message.
    if (spooled.length > 0) this.#forget(spooled)
    return recalled
  }

  /**
   * Ends a message. After plugins run when destination plugins are done, and the callback is called after both.
   */
  conclude(
    period: Period,
    ctx: Context | undefined,
    callback: Callback | undefined,
    error: AnalyticsError | undefined,
    piped: Piped | undefined,
  ): void {
    // Busy before it is ended: a flush waits for plugins and callbacks, too.
    if (piped && ctx) this.#finish(period, ctx, callback, error, piped)
    else if (callback) this.tell(callback, error, ctx, period)
    this.#end(period, error ? 0 : 1, error ? 1 : 0)
    if (error) this.#events.failed(error, callback !== undefined)
  }

  /**
   * Registers a message that a plugin holds: `giveUp` is called if the plugin still holds it at close. Call the returned function when the
   * plugin is done; it returns false if the message was given up before.
   */
  heldByPlugin(giveUp: () => void): () => boolean {
    this.#heldByPlugins.add(giveUp)
    return () => this.#heldByPlugins.delete(giveUp)
  }

  /** Calls a callback, and keeps flushes of the period waiting for it; what it throws is an error of its own. */
  tell(callback: Callback, error: AnalyticsError | undefined, ctx: Context | undefined, period?: Period): void {
    const free = period && this.#periods.occupy(period)
    const failed = (thrown: unknown): void =>
      this.#events.failed(new AnalyticsError('listener_failed', `a callback threw: ${messageOf(thrown)}`, { reason: thrown, ctx }), false)
    // Never within the call itself, so that code behind a call always runs before its callback.
    queueMicrotask(() => {
      let result: unknown
      try {
        result = this.#run(callback, error, ctx)
      } catch (thrown) {
        failed(thrown)
      }
      // Most return nothing, and need neither a promise nor a timer.
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
    // Everything else that a close waits for has its own time limit.
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
    // What is still called meanwhile is sent, too.
    do await this.flush(Math.max(until - performance.now(), 0))
    while (this.#periods.pending > 0 && performance.now() < until)
    if (!stayOpen) await this.close(0)
  }

  /** Sends nothing while a plugin is loading. */
  hold(): void {
    this.#pluginsLoading++
    this.#sender.hold()
  }

  letGo(): void {
    this.#pluginsLoading--
    this.#sender.letGo()
  }

  #begin(period: Period): void {
    if (this.#periods.pending === 0) platform.keep(this)
    this.#periods.begin(period)
  }

  #end(period: Period, delivered: number, failed: number): void {
    this.#periods.end(period, delivered, failed)
    if (this.#periods.pending === 0) platform.letGo(this)
  }

  #finish(period: Period, ctx: Context, callback: Callback | undefined, error: AnalyticsError | undefined, piped: Piped): void {
    const tell = (): void => callback && this.tell(callback, error, ctx, period)
    let run = piped.destinations?.running.size ? piped.destinations : this.#events.finish(ctx)
    if (!run) return tell()
    const finished = run === piped.destinations ? run.done.then(() => (run = this.#events.finish(ctx))?.done) : run.done
    if (this.#isFinished) return tell()
    const leave = this.heldByPlugin(() => {
      const names = [...(run?.running ?? [])].join(', ')
      this.#events.failed(
        new AnalyticsError('plugin_failed', `the client was closed while the message was still being processed by plugin ${names}`, {
          ctx,
        }),
        false,
      )
      tell()
    })
    // A flush waits, but only for a limited time: it must not hang on other people's code.
    const free = this.#periods.occupy(period)
    this.#freeAfter(
      finished.then(() => {
        if (leave()) tell()
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
    // It holds the process: a flush that someone awaits must resolve before that ends.
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
    // A flush is waiting for this one: do not let it wait for the interval.
    if (this.#periods.isClosed(period) || this.#isFinished) this.#queue.sealSoon()
  }

  #settle(batch: Batch, result: BatchResult): void {
    // What was given up at close is not lost where it is on disk: the next start delivers it.
    const isKept = result.error?.code === 'close_timeout' && batch.spooled !== undefined
    for (const { from, to } of batch.spooled ?? []) this.#onDisk -= to - from + 1
    if (batch.spooled && !isKept) this.#forget(batch.spooled)
    this.release(batch.bytes)
    const rejected = new Map(
      result.rejected.filter(({ index }) => index >= 0 && index < batch.count).map(({ index, error }) => [index, error]),
    )
    const failed = result.error ? batch.count : rejected.size
    const delivered = batch.count - failed
    // Most batches are delivered whole, with nobody waiting: then there is nobody to look for.
    if (failed > 0 || batch.waiters) this.#tellEach(batch, result, rejected, isKept)
    else this.#end(batch.period, delivered, 0)
    this.#events.flushed({ messages: batch.count, delivered, failed, attempts: result.attempts })
    if (this.#periods.pending === 0) this.#events.drained()
  }

  #tellEach(batch: Batch, result: BatchResult, rejected: Map<number, AnalyticsError>, isKept: boolean): void {
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
      // Kept on disk it has not failed; but whoever waits for it waits no longer.
      if (isKept) {
        if (waiter?.callback) this.tell(waiter.callback, failure, ctx, batch.period)
        this.#periods.leave(batch.period)
      } else this.conclude(batch.period, ctx, waiter?.callback, failure, waiter?.piped)
    }
  }

  /** Gives up the messages that plugins still hold. */
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
    platform.letGo(this)
  }

  #openSpool(limits: SpoolLimits, { writeKey, url, historical }: CheckedSettings): Spool {
    // A historical client sends no sentAt, because the service would shift past times by it. So its messages are kept apart.
    const place = { ...limits, sender: JSON.stringify([writeKey, url, historical]) }
    const spool = orRefuse('spool.dir', () => platform.spool(place, (error) => this.#spoolFailed(error)))
    // What is found at the start belongs to the period of the start, so that the first flush waits for it.
    let period: Period | undefined = this.#periods.current
    const free = this.#periods.occupy(period)
    queueMicrotask(() => {
      void spool
        .recover((json, number) => this.#takeBack(json, number, period ?? this.#periods.current))
        .catch((error: unknown) => this.#spoolFailed(error))
        .finally(() => {
          period = undefined
          this.sendNow()
          free()
        })
    })
    return spool
  }

  /** Queues a message that is on disk already, as soon as there is room. */
  async #takeBack(json: string, number: number, period: Period): Promise<void> {
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

function eventsOf(batch: Batch): AnalyticsEvent[] {
  return JSON.parse(`[${batch.parts.map((part) => platform.decode(part)).join(',')}]`) as AnalyticsEvent[]
}

/** What the platform cannot do is a setting that cannot be used. */
function orRefuse<Result>(setting: string, open: () => Result): Result {
  try {
    return open()
  } catch (error) {
    throw new AnalyticsError('invalid_settings', `${setting} cannot be used: ${messageOf(error)}`, { reason: error, field: setting })
  }
}
