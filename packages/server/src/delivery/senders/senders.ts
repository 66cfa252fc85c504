// All senders of this process. Every destination has one sender, so that its connections are reused. A sender that ends or no longer
// responds is replaced; the requests that it had in flight end as `sender_lost`, because it is unknown whether they reached the receiver. They are retried
// like any failure, so a message that makes senders crash does not do so in a loop.

import type { SegmentBody } from '../../store/port/stored-messages.ts'
import type { Destination, RowId } from '../../store/store.ts'
import { failure, type Outcome } from '../sending/outcome.ts'
import type { SenderLink, SenderReports, Unsent } from './protocol.ts'

/** Messages that can be given to a sender. */
export interface Sendable {
  origin: RowId
  body: Pick<SegmentBody, 'about' | 'bytes' | 'absent' | 'parsed'>
  /** Whether the bytes are the text to be sent and not a stored body. */
  isText?: boolean
  indexes: readonly number[]
  /** Set while a sender has these messages; `destination` is its number there, `left` the number of messages that were not started. */
  loaded: { by: Link['commands']; destination: number; key: number; left: number } | null
}

/** A request to some of a destination's URLs. */
export interface Work {
  destination: Destination
  isBatch: boolean
  /** From 1. */
  attempt: number
  replay: boolean
  /** In wall time. */
  startedAtMs: number
  keepAnswer: boolean
  /** The most requests of the destination that may be in flight. */
  limit: number
  /** Indexes in the list of the destination's URLs. */
  urls: readonly number[]
  /** For an integration: see Start. */
  steps?: readonly string[] | null
  isPreview?: boolean
  messages: readonly { content: Sendable; index: number }[]
  /** Called once for each URL, never while the work is being started. `waitedMs`: how long it waited in the sender because of the limit. */
  answered(url: number, outcome: Outcome, waitedMs: number): void
  /** Called if some messages cannot be sent, at most once and before `answered`. `isOver`: none is left, and `answered` is not called. */
  unsent(unsent: readonly Unsent[], isOver: boolean): void
  /** Called if a bug prevented the request; `answered` is called as well. */
  bug(message: string): void
}

/** A connection to a sender. If it is lost, another one can be opened. */
export interface Link {
  commands: Omit<SenderLink, 'drain'>
  drain(): Promise<void>
  /** Missing if the sender is part of this thread. */
  health?: {
    isHeard: boolean
    ping(): void
    kill(error: Error): void
  }
}

export type OpenLink = (name: string, events: SenderReports & { lost(error: Error): void }) => Link

export interface SendersOptions {
  count: number
  open: OpenLink
  /** See Senders.runAhead. Default: true. */
  runAhead?: boolean
  /** Called when a sender was lost. It is replaced. */
  onLost?: ((error: Error) => void) | undefined
  /** How often senders are checked. Default: every 2 s. */
  checkMs?: number | undefined
}

const CHECK_MS = 2_000
/** A sender that has work and does not respond to this many checks in a row is replaced. */
const SILENT_CHECKS = 5
/** A sender that is lost sooner than this is opened again only after a pause, which doubles each time; otherwise at once. */
const STABLE_MS = 10_000
const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 5_000

export class Senders {
  readonly #senders: ReplaceableSender[]
  readonly #byDestination = new Map<string, ReplaceableSender>()
  readonly #check: NodeJS.Timeout
  readonly #runAhead: boolean

  constructor({ count, open, runAhead = true, onLost = () => undefined, checkMs = CHECK_MS }: SendersOptions) {
    this.#senders = Array.from({ length: count }, (_, at) => new ReplaceableSender(`switchyard-sender-${at + 1}`, open, onLost))
    this.#runAhead = runAhead
    this.#check = setInterval(() => {
      for (const sender of this.#senders) sender.check()
    }, checkMs)
    this.#check.unref()
  }

  start(work: Work): void {
    this.#senderOf(work.destination.id).start(work)
  }

  /** Whether senders keep work that exceeds the limit, so that they can go on without waiting for this thread. */
  get runAhead(): boolean {
    return this.#runAhead
  }

  /** Gives messages that are parsed to a sender in this thread, which would parse them again later. A sender thread parses them itself. */
  preload(destination: Destination, contents: readonly Sendable[]): void {
    if (this.#runAhead) return
    const sender = this.#senderOf(destination.id)
    for (const content of contents) if (content.body.parsed !== null) sender.preload(destination, content)
  }

  /** Takes back the work of a destination that waits in its sender: it ends as `aborted`. */
  recall(destinationId: string): void {
    this.#byDestination.get(destinationId)?.tell(destinationId, 'recall')
  }

  /** Lets the work of a destination that waits in its sender go on. A sender stops it after a temporary failure. */
  resume(destinationId: string): void {
    this.#byDestination.get(destinationId)?.tell(destinationId, 'resume')
  }

  /** Makes senders forget messages that will not be started: the given ones, or all if `indexes` is missing. */
  drop(content: Sendable, indexes: readonly number[] | null = null): void {
    const { loaded } = content
    if (loaded === null || loaded.left === 0) return
    loaded.by.drop(loaded.key, indexes)
    loaded.left -= indexes?.length ?? loaded.left
  }

  /** Called when a destination was deleted. */
  forget(destinationId: string): void {
    const sender = this.#byDestination.get(destinationId)
    this.#byDestination.delete(destinationId)
    sender?.forget(destinationId)
  }

  /** Waits a moment for requests in flight; the others end as `aborted`. */
  async close(): Promise<void> {
    clearInterval(this.#check)
    await Promise.all(this.#senders.map((sender) => sender.close()))
  }

  #senderOf(destinationId: string): ReplaceableSender {
    let sender = this.#byDestination.get(destinationId)
    if (sender === undefined) {
      sender = this.#senders.reduce((best, each) => (each.destinations < best.destinations ? each : best))
      sender.destinations++
      this.#byDestination.set(destinationId, sender)
    }
    return sender
  }
}

/** A unit of work in flight, and the URLs that have not answered. */
interface Unit {
  work: Work
  urls: number[]
}

class ReplaceableSender {
  /** The number of destinations that belong to it. */
  destinations = 0
  readonly #name: string
  readonly #open: OpenLink
  readonly #onLost: (error: Error) => void
  /** Null before the first use, and during the pause after it was lost. */
  #link: Link | null = null
  #openedAtMs = 0
  #pauseMs = 0
  #pausedUntilMs = 0
  #isClosed = false
  #silentChecks = 0
  #lastNumber = 0
  readonly #units = new Map<number, Unit>()
  /** The destinations that the current link knows, by id. */
  readonly #defined = new Map<string, { destination: Destination; number: number }>()

  constructor(name: string, open: OpenLink, onLost: (error: Error) => void) {
    this.#name = name
    this.#open = open
    this.#onLost = onLost
  }

  start(work: Work): void {
    const commands = this.#linked()?.commands
    const { destination, isBatch, attempt, replay, startedAtMs, keepAnswer, limit, urls, steps = null, isPreview = false } = work
    const unit = ++this.#lastNumber
    this.#units.set(unit, { work, urls: [...urls] })
    if (commands === undefined) return this.#failLater(unit)
    const number = this.#define(commands, destination)
    const messages: number[] = []
    for (const { content, index } of work.messages) {
      const loaded = this.#load(commands, number, content)
      loaded.left--
      messages.push(loaded.key, index)
    }
    commands.start({
      unit,
      destination: number,
      isBatch,
      attempt,
      replay,
      atMs: startedAtMs,
      keepAnswer,
      limit,
      urls,
      steps,
      isPreview,
      messages,
    })
  }

  preload(destination: Destination, content: Sendable): void {
    const commands = this.#linked()?.commands
    if (commands !== undefined) this.#load(commands, this.#define(commands, destination), content)
  }

  tell(destinationId: string, command: 'recall' | 'resume'): void {
    const defined = this.#defined.get(destinationId)
    if (defined !== undefined) this.#link?.commands[command](defined.number)
  }

  forget(destinationId: string): void {
    this.destinations--
    const defined = this.#defined.get(destinationId)
    if (defined === undefined) return
    this.#defined.delete(destinationId)
    this.#link?.commands.forget(defined.number)
  }

  check(): void {
    const health = this.#link?.health
    if (health === undefined) return
    this.#silentChecks = health.isHeard || this.#units.size === 0 ? 0 : this.#silentChecks + 1
    if (this.#silentChecks < SILENT_CHECKS) health.ping()
    else health.kill(new Error(`${this.#name} has work but does not respond`))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const link = this.#link
    await link?.drain()
    this.#link = null
    // A thread that had to be terminated has reported nothing.
    for (const unit of this.#units.keys()) this.#fail(unit, 'aborted')
  }

  #linked(): Link | null {
    if (this.#link !== null || this.#isClosed || performance.now() < this.#pausedUntilMs) return this.#link
    this.#openedAtMs = performance.now()
    const link = this.#open(this.#name, {
      outcome: (unit, url, outcome, waitedMs) => this.#answered(unit, url, outcome, waitedMs),
      unsent: (unit, unsent, isOver) => this.#unsent(unit, unsent, isOver),
      bug: (unit, message) => this.#units.get(unit)?.work.bug(message),
      lost: (error) => this.#lost(error),
    })
    this.#link = link
    return link
  }

  #lost(error: Error): void {
    const now = performance.now()
    const isStable = now - this.#openedAtMs >= STABLE_MS
    this.#pauseMs = isStable ? 0 : Math.min(Math.max(this.#pauseMs * 2, FIRST_PAUSE_MS), MAX_PAUSE_MS)
    this.#pausedUntilMs = now + this.#pauseMs
    this.#link = null
    this.#silentChecks = 0
    this.#defined.clear()
    this.#onLost(error)
    // A lane may start new work at the new sender as soon as it gets an outcome.
    const lost = Array.from(this.#units.keys())
    for (const unit of lost) this.#fail(unit, 'sender_lost')
  }

  #define(commands: Link['commands'], destination: Destination): number {
    const known = this.#defined.get(destination.id)
    if (known?.destination === destination) return known.number
    if (known !== undefined) commands.forget(known.number)
    const number = ++this.#lastNumber
    commands.define(number, destination)
    this.#defined.set(destination.id, { destination, number })
    return number
  }

  #load(commands: Link['commands'], destination: number, content: Sendable): NonNullable<Sendable['loaded']> {
    let { loaded } = content
    if (loaded?.by !== commands || loaded.destination !== destination) {
      // The messages were prepared for the destination as it was before a change.
      if (loaded?.by === commands) commands.drop(loaded.key, null)
      const { origin, body, isText = false, indexes } = content
      const { about, bytes, parsed, absent } = body
      const key = ++this.#lastNumber
      commands.load({ key, destination, origin, about, body: bytes, isText, parsed, absent, indexes })
      loaded = { by: commands, destination, key, left: indexes.length }
      content.loaded = loaded
    }
    return loaded
  }

  #answered(number: number, url: number, outcome: Outcome, waitedMs: number): void {
    const unit = this.#units.get(number)
    if (unit === undefined) return
    if (unit.urls.length === 1) this.#units.delete(number)
    else unit.urls.splice(unit.urls.indexOf(url), 1)
    unit.work.answered(url, outcome, waitedMs)
  }

  #unsent(number: number, unsent: readonly Unsent[], isOver: boolean): void {
    const unit = this.#units.get(number)
    if (isOver) this.#units.delete(number)
    unit?.work.unsent(unsent, isOver)
  }

  /** Ends a unit that cannot be given to a sender. Waits for the end of the pause; otherwise a lane would use up an attempt of every message during the pause. */
  #failLater(number: number): void {
    if (this.#isClosed) return queueMicrotask(() => this.#fail(number, 'aborted'))
    // A timer may fire up to a millisecond early.
    setTimeout(() => this.#fail(number, 'sender_lost'), Math.ceil(this.#pausedUntilMs - performance.now()) + 1).unref()
  }

  #fail(number: number, reason: 'aborted' | 'sender_lost'): void {
    const urls = this.#units.get(number)?.urls.slice() ?? []
    for (const url of urls) this.#answered(number, url, failure(reason), 0)
  }
}
