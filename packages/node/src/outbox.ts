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
import { FlushPeriods, type Period } from './queue/flush-periods.ts'
import { type Batch, Queue, type Waiter } from './queue/queue.ts'
import type { Spool } from './queue/spool.ts'
import { customTransport } from './send/http-client.ts'
import { TokenSource } from './send/oauth.ts'
import { type BatchResult, type HttpRequestEvent, type HttpResponseEvent, Sender } from './send/sender.ts'
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
  /** A message failed, or the client itself did. `heard`: a callback has been told already. */
  failed(error: AnalyticsError, heard: boolean): void
  /** Whether telling a failure with its message's context is worth making one. */
  wantsContexts(): boolean
  flushed(event: FlushEvent): void
  drained(): void
  onRequest(): ((event: HttpRequestEvent) => void) | undefined
  onResponse(): ((event: HttpResponseEvent) => void) | undefined
  /** After plugins, for a message that came through plugins. */
  finish(ctx: Context): Promise<void> | undefined
}

/** Below 500 KB however a kilobyte is counted. */
const BATCH_BYTES = Math.min(MAX_BATCH_BYTES, 500_000)
const SHUT_DOWN_MS = 10_000

export class Outbox implements ExitTarget {
  readonly #events: OutboxEvents
  readonly #periods = new FlushPeriods()
  readonly #queue: Queue
  readonly #sender: Sender
  readonly #spool: Spool | undefined
  readonly #closeTransports: () => void
  #roomWaiters: (() => void)[] = []
  #sealing = false
  #stopped = false
  #finished = false
  #ignoreSignals: (() => void) | undefined

  constructor(settings: CheckedSettings, events: OutboxEvents) {
    this.#events = events
    const transport = settings.httpClient ? customTransport(settings.httpClient) : platform.transport(settings.maxInFlight)
    const { oauth } = settings
    const authTransport = oauth?.httpClient ? customTransport(oauth.httpClient) : transport
    this.#closeTransports = () => transport.close()
    const token = oauth
      ? new TokenSource({
          oauth,
          authServer: oauth.authServer,
          transport: authTransport,
          maxRetries: oauth.maxRetries ?? settings.maxRetries,
          timeoutMs: settings.requestTimeoutMs,
          pause: (ms) => this.#sender.pause(ms),
        })
      : undefined
    this.#queue = new Queue({
      flushAt: settings.flushAt,
      flushIntervalMs: settings.flushIntervalMs,
      maxBatchBytes: BATCH_BYTES - Sender.envelopeBytes(settings.writeKey),
      maxBytes: settings.maxQueueBytes,
      highWaterBytes: settings.highWaterBytes,
      onReady: () => this.#sender.wake(),
      onDrained: () => this.#drained(),
    })
    this.#sender = new Sender({
      settings,
      transport,
      token,
      take: (places) => this.#queue.take(places),
      settle: (batch, result) => this.#settle(batch, result),
      onRequest: () => events.onRequest(),
      onResponse: () => events.onResponse(),
    })
    this.#spool = settings.spool && this.#openSpool(settings.spool)
    if (settings.handleSignals) this.#ignoreSignals = orRefuse('handleSignals', () => platform.handleSignals(this))
  }

  get pendingMessages(): number {
    return this.#periods.pending
  }

  get spooled(): boolean {
    return this.#spool !== undefined
  }

  /** What a call returns. */
  belowMark(): boolean {
    return this.#queue.belowMark()
  }

  /** Counts a message as begun. */
  begin(): Period {
    if (this.#periods.pending === 0) platform.keep(this)
    const period = this.#periods.current
    this.#periods.begin(period)
    return period
  }

  reserve(bytes: number): boolean {
    return this.#queue.reserve(bytes)
  }

  release(bytes: number): void {
    this.#queue.release(bytes)
  }

  /** Queues a message that is begun and has its room. False if the spool has none. */
  put(json: string, bytes: number, period: Period, waiter?: Omit<Waiter, 'index'>): boolean {
    let spooledAs: number | undefined
    if (this.#spool) {
      try {
        spooledAs = this.#spool.keep(json)
        if (spooledAs === undefined) return false
      } catch (error) {
        this.#spoolFailed(error)
      }
    }
    this.#queue.add(json, bytes, period, waiter, spooledAs)
    // A flush is waiting for this one: do not let it wait for the interval.
    if (this.#periods.isClosed(period) || this.#stopped) this.#sealSoon()
    return true
  }

  /** Tells whoever waits for a message, and counts it as ended when their promises are. */
  conclude(
    period: Period,
    ctx: Context | undefined,
    callback: Callback | undefined,
    error: AnalyticsError | undefined,
    piped: boolean,
  ): void {
    if (error) this.#events.failed(error, callback !== undefined)
    const promises: Promise<unknown>[] = []
    if (callback) promises.push(this.#call(callback, error, ctx))
    if (piped && ctx) {
      const after = this.#events.finish(ctx)
      if (after) promises.push(after)
    }
    const end = (): void => this.#end(period, error ? 0 : 1, error ? 1 : 0)
    if (promises.length === 0) end()
    else void Promise.all(promises).then(end)
  }

  flush(timeoutMs: number | undefined): Promise<FlushResult> {
    const result = this.#periods.close(timeoutMs)
    this.sendNow()
    return result
  }

  async close(timeoutMs: number | undefined): Promise<FlushResult> {
    this.#sender.closing()
    const result = await this.flush(timeoutMs)
    this.#finish()
    return result
  }

  sendNow(): boolean {
    this.#queue.seal()
    this.#sender.wake()
    return this.#queue.hasReady
  }

  shutDown(): Promise<FlushResult> {
    return this.close(SHUT_DOWN_MS)
  }

  hold(): void {
    this.#sender.hold()
  }

  letGo(): void {
    this.#sender.letGo()
  }

  #finish(): void {
    if (this.#finished) return
    this.#finished = true
    this.#stopped = true
    this.#queue.seal()
    if (this.#periods.pending > 0) this.#sender.stop()
    this.#closeTransports()
    this.#queue.close()
    this.#spool?.close()
    this.#ignoreSignals?.()
    platform.letGo(this)
  }

  #settle(batch: Batch, result: BatchResult): void {
    // What was given up at close is not lost where it is on disk: the next start delivers it.
    const kept = result.error?.code === 'close_timeout' && batch.spooled !== undefined
    if (batch.spooled && !kept) this.#forget(batch.spooled)
    this.#queue.release(batch.queueBytes)
    const rejected = new Map(
      result.rejected.filter(({ index }) => index >= 0 && index < batch.count).map(({ index, error }) => [index, error]),
    )
    const failed = result.error ? batch.count : rejected.size
    const delivered = batch.count - failed
    if (kept) return this.#end(batch.period, 0, failed)
    const waiters = new Map(batch.waiters?.map((waiter) => [waiter.index, waiter]))
    // Most batches are delivered whole, with nobody waiting: then there is nobody to look for.
    if (failed > 0 || waiters.size > 0) this.#tell(batch, result, rejected, waiters)
    let [endDelivered, endFailed] = [delivered, failed]
    for (const { index } of waiters.values()) {
      if (result.error ?? rejected.get(index)) endFailed--
      else endDelivered--
    }
    this.#events.flushed({ messages: batch.count, delivered, failed, attempts: result.attempts })
    if (endDelivered + endFailed > 0) this.#end(batch.period, endDelivered, endFailed)
  }

  #tell(batch: Batch, result: BatchResult, rejected: Map<number, AnalyticsError>, waiters: Map<number, Waiter>): void {
    const anyFailed = result.error !== undefined || rejected.size > 0
    const events =
      anyFailed && this.#events.wantsContexts()
        ? (JSON.parse(`[${batch.parts.map((part) => platform.decode(part)).join(',')}]`) as AnalyticsEvent[])
        : undefined
    for (let index = 0; index < batch.count; index++) {
      const waiter = waiters.get(index)
      const error = rejected.get(index) ?? result.error
      if (!waiter && !error) continue
      const ctx = waiter?.ctx ?? (events && new Context(revive(events[index] as AnalyticsEvent)))
      if (ctx) ctx.attempts = result.attempts
      const failure = error && (ctx ? error.about(ctx) : error)
      if (failure) ctx?.setFailedDelivery({ reason: failure.reason })
      if (waiter) this.conclude(batch.period, ctx, waiter.callback, failure, waiter.piped)
      else if (failure) this.#events.failed(failure, false)
    }
  }

  async #call(callback: Callback, error: AnalyticsError | undefined, ctx: Context | undefined): Promise<void> {
    // Never within the call itself, so that code behind a call always runs before its callback.
    await Promise.resolve()
    try {
      await callback(error, ctx)
    } catch (thrown) {
      this.#events.failed(new AnalyticsError('listener_failed', `a callback threw: ${messageOf(thrown)}`, { reason: thrown, ctx }), false)
    }
  }

  #end(period: Period, delivered: number, failed: number): void {
    this.#periods.end(period, delivered, failed)
    if (this.#periods.pending > 0) return
    platform.letGo(this)
    this.#events.drained()
  }

  #sealSoon(): void {
    if (this.#sealing) return
    this.#sealing = true
    // A turn of the loop later, so that what comes together out of plugins or the spool goes together.
    setTimeout(() => {
      this.#sealing = false
      this.#queue.seal()
      if (this.#finished) this.#sender.stop()
    }, 0)
  }

  #drained(): void {
    for (const resolve of this.#roomWaiters.splice(0)) resolve()
    this.#events.drained()
  }

  #openSpool(options: NonNullable<CheckedSettings['spool']>): Spool {
    const spool = orRefuse('spool.dir', () => platform.spool(options, (error) => this.#spoolFailed(error)))
    // Recovery counts as one message on the way until it is over, so that a flush waits for what it finds.
    const period = this.begin()
    queueMicrotask(() => {
      void spool
        .recover((json) => this.#takeBack(json, period))
        .catch((error: unknown) => this.#spoolFailed(error))
        .finally(() => {
          this.#periods.drop(period)
          this.sendNow()
          this.#end(period, 0, 0)
        })
    })
    return spool
  }

  async #takeBack(json: string, period: Period): Promise<void> {
    const bytes = platform.byteLength(json)
    while (!this.#queue.belowMark() || !this.#queue.reserve(bytes)) await new Promise<void>((resolve) => this.#roomWaiters.push(resolve))
    this.#periods.begin(period)
    if (!this.put(json, bytes, period)) throw new Error('the spool is full of messages of this process')
  }

  #forget(ranges: NonNullable<Batch['spooled']>): void {
    try {
      this.#spool?.forget(ranges)
    } catch (error) {
      this.#spoolFailed(error)
    }
  }

  #spoolFailed(error: unknown): void {
    this.#events.failed(new AnalyticsError('spool_failed', `the spool failed: ${messageOf(error)}`, { reason: error }), false)
  }
}

/** What the platform cannot do is a setting that cannot be used. */
function orRefuse<Result>(setting: string, open: () => Result): Result {
  try {
    return open()
  } catch (error) {
    throw new AnalyticsError('invalid_settings', `${setting} cannot be used: ${messageOf(error)}`, { reason: error, field: setting })
  }
}
