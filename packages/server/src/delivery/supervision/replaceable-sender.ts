// One sender, which is opened when it has work. A sender that ends or no longer responds is replaced; the requests that it had in flight fail, because it
// is unknown whether they reached the receiver. They are retried like any failure, so a message that makes senders crash does not do so in a loop.

import type { Destination } from '../../store/store.ts'
import type { Link, OpenLink } from '../link/link.ts'
import { failure, type Outcome } from '../link/outcome.ts'
import type { Unsent } from '../link/protocol.ts'
import { dropLoaded, type Sendable, type Work } from '../link/work.ts'

export type LostReason = 'sender_lost' | 'integration_crashed' | 'loader_lost'

/** Throws if a report cannot be true, which ends the sender that made it. `left` is the number of messages that were not reported as unsent. */
export interface ReportCheck {
  outcome(work: Work, left: number, url: number, outcome: Outcome, waitedMs: number): void
  unsent(work: Work, left: number, unsent: readonly Unsent[], isOver: boolean): void
}

export interface ReplaceableOptions {
  name: string
  open: OpenLink
  /** Called when a sender was lost with this work in flight. Returns the reason why the work failed. */
  onLost: (error: Error, work: readonly Work[]) => LostReason
  /** Called when a unit of work has ended. `outcome`: null if none of its messages could be sent. */
  onEnd?: ((work: Work, outcome: Outcome | null) => void) | undefined
  /** Called for each outcome, before the work is told. `outcome`: null if none of the messages could be sent. `isLast`: no URL is still to answer. */
  onOutcome?: ((work: Work, outcome: Outcome | null, isLast: boolean) => void) | undefined
  /** For senders that run the code of others. */
  check?: ReportCheck | undefined
  /** A sender that has work and does not respond to this many checks in a row is replaced. Default: 5. */
  silentChecks?: number | undefined
  /** A sender that had no work for this long is closed until there is some. Default: never. */
  idleMs?: number | undefined
}

const SILENT_CHECKS = 5
/** How much longer a sender may be silent before its first answer: on a busy machine, starting a process takes longer than anything it does later. */
const START_FACTOR = 2
/** A sender that is lost sooner than this is opened again only after a pause, which doubles each time; otherwise at once. */
const STABLE_MS = 10_000
const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 5_000
/** How long a sender that is being replaced may take to finish its work. Longer than any delivery. */
const RETIREMENT_MS = 60_000

/** A unit of work in flight, and the URLs that have not answered. */
interface Unit {
  work: Work
  urls: number[]
  /** The number of messages that were not reported as unsent. */
  left: number
  /** Whether one URL has accepted it. The sender no longer counts it as in flight. */
  isDelivered: boolean
  /** Null while it waits for the end of a pause. */
  link: Link | null
}

export class ReplaceableSender {
  /** The number of destinations that belong to it. */
  destinations = 0
  readonly #options: ReplaceableOptions
  /** Null before the first use, while it is idle, and during the pause after it was lost. */
  #link: Link | null = null
  /** Those that finish their work before they end, each with its deadline. */
  readonly #retired = new Map<Link, number>()
  #openedAtMs = 0
  #busyAtMs = 0
  #pauseMs = 0
  #pausedUntilMs = 0
  #pause: NodeJS.Timeout | undefined
  #isClosed = false
  #silentChecks = 0
  /** Whether the current link has answered a ping. */
  #isUp = false
  #isPinged = false
  #lastNumber = 0
  readonly #units = new Map<number, Unit>()
  /** The destinations that the current link knows, by id. */
  readonly #defined = new Map<string, { destination: Destination; number: number }>()
  /** The limits of destinations that other senders have as well, by id. They replace the limit of the work. */
  readonly #limits = new Map<string, number>()

  constructor(options: ReplaceableOptions) {
    this.#options = options
  }

  start(work: Work): void {
    const number = ++this.#lastNumber
    const unit = { work, urls: [...work.urls], left: work.messages.length, isDelivered: false, link: null }
    this.#units.set(number, unit)
    if (this.#isClosed) queueMicrotask(() => this.#fail(number, 'aborted'))
    else this.#give(number, unit)
  }

  preload(destination: Destination, content: Sendable): void {
    const commands = this.#linked()?.commands
    if (commands !== undefined) this.#load(commands, this.#define(commands, destination), content)
  }

  tell(destinationId: string, command: 'recall' | 'resume'): void {
    const defined = this.#defined.get(destinationId)
    if (defined !== undefined) this.#link?.commands[command](defined.number)
    if (command === 'recall') this.#recallHeld(destinationId)
  }

  /** Sets how many units of a destination may be in flight here; null: as many as their work says. */
  setLimit(destinationId: string, limit: number | null): void {
    if (limit === null) this.#limits.delete(destinationId)
    else this.#limits.set(destinationId, limit)
    const defined = this.#defined.get(destinationId)
    if (limit !== null && defined !== undefined) this.#link?.commands.limit(defined.number, limit)
  }

  /** The work of a destination that is in flight or waits to be, without tests. */
  worksOf(destinationId: string): Work[] {
    const works: Work[] = []
    for (const { work, isDelivered } of this.#units.values()) {
      if (work.destination.id === destinationId && !isDelivered && work.limit !== Number.POSITIVE_INFINITY) works.push(work)
    }
    return works
  }

  /** Whether it has these messages in memory. */
  holds({ loaded }: Sendable): boolean {
    return loaded !== null && loaded.by === this.#link?.commands
  }

  /** See Link. */
  get utilization(): number {
    return this.#link?.utilization?.() ?? 0
  }

  forget(destinationId: string): void {
    this.destinations--
    this.#limits.delete(destinationId)
    this.#recallHeld(destinationId)
    const defined = this.#defined.get(destinationId)
    if (defined === undefined) return
    this.#defined.delete(destinationId)
    this.#link?.commands.forget(defined.number)
  }

  check(): void {
    const now = performance.now()
    for (const [link, untilMs] of this.#retired) {
      if (now > untilMs) link.health?.kill(new Error(`${this.#options.name} was replaced and did not finish its work`))
    }
    const link = this.#link
    const health = link?.health
    if (link === null || health === undefined) return
    const { name, silentChecks = SILENT_CHECKS, idleMs = Number.POSITIVE_INFINITY } = this.#options
    const isBusy = this.#units.size > 0
    if (isBusy) this.#busyAtMs = now
    this.#silentChecks = health.isHeard || !isBusy ? 0 : this.#silentChecks + 1
    this.#isUp ||= this.#isPinged && health.isHeard
    if (this.#silentChecks >= silentChecks * (this.#isUp ? 1 : START_FACTOR))
      health.kill(new Error(`${name} has work but does not respond`))
    else if (health.isSpent || now - this.#busyAtMs > idleMs) this.#retire(link)
    else {
      this.#isPinged = true
      health.ping()
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#pause)
    const links = [...(this.#link === null ? [] : [this.#link]), ...this.#retired.keys()]
    await Promise.all(links.map((link) => link.drain()))
    this.#link = null
    // A thread that had to be terminated has reported nothing.
    for (const unit of this.#units.keys()) this.#fail(unit, 'aborted')
  }

  #linked(): Link | null {
    if (this.#link !== null || this.#isClosed || performance.now() < this.#pausedUntilMs) return this.#link
    this.#openedAtMs = this.#busyAtMs = performance.now()
    this.#isUp = this.#isPinged = false
    const link: Link = this.#options.open(this.#options.name, {
      outcome: (unit, url, outcome, waitedMs) => this.#answered(unit, url, outcome, waitedMs),
      unsent: (unit, unsent, isOver) => this.#unsent(unit, unsent, isOver),
      bug: (unit, message) => this.#units.get(unit)?.work.bug(message),
      lost: (error) => this.#lost(link, error),
    })
    this.#link = link
    return link
  }

  #give(number: number, unit: Unit): void {
    const link = this.#linked()
    // During the pause it waits; if it failed, a lane would use up the attempts of its messages.
    if (link === null) return this.#waitForPause()
    unit.link = link
    const { commands } = link
    const { work } = unit
    const {
      isBatch,
      attempt,
      replay,
      startedAtMs,
      keepAnswer,
      urls,
      steps = null,
      isPreview = false,
      notAfterMs = null,
      isLate = false,
    } = work
    const destination = this.#define(commands, work.destination)
    const messages: number[] = []
    for (const { content, index } of work.messages) {
      const loaded = this.#load(commands, destination, content)
      loaded.left--
      messages.push(loaded.key, index)
    }
    commands.start({
      unit: number,
      destination,
      isBatch,
      attempt,
      replay,
      atMs: startedAtMs,
      keepAnswer,
      limit: this.#limits.size === 0 ? work.limit : this.#limitOf(work),
      urls,
      steps,
      isPreview,
      notAfterMs,
      isLate,
      messages,
    })
  }

  #limitOf({ destination, limit }: Work): number {
    return limit === Number.POSITIVE_INFINITY ? limit : (this.#limits.get(destination.id) ?? limit)
  }

  #waitForPause(): void {
    this.#pause ??= setTimeout(
      () => {
        const held = this.#held()
        this.#pause = undefined
        for (const [number, unit] of held) this.#give(number, unit)
      },
      // A timer may fire up to a millisecond early.
      Math.ceil(this.#pausedUntilMs - performance.now()) + 1,
    ).unref()
  }

  #held(): [number, Unit][] {
    return this.#pause === undefined ? [] : [...this.#units].filter(([, { link }]) => link === null)
  }

  #recallHeld(destinationId: string): void {
    for (const [number, { work }] of this.#held()) {
      if (work.destination.id === destinationId) queueMicrotask(() => this.#fail(number, 'aborted'))
    }
  }

  #lost(link: Link, error: Error): void {
    this.#retired.delete(link)
    if (link === this.#link) {
      const now = performance.now()
      const isStable = now - this.#openedAtMs >= STABLE_MS
      this.#pauseMs = isStable ? 0 : Math.min(Math.max(this.#pauseMs * 2, FIRST_PAUSE_MS), MAX_PAUSE_MS)
      this.#pausedUntilMs = now + this.#pauseMs
      this.#link = null
      this.#silentChecks = 0
      this.#defined.clear()
    }
    const lost = [...this.#units].filter(([, unit]) => unit.link === link)
    const reason = this.#options.onLost(
      error,
      lost.map(([, { work }]) => work),
    )
    // A lane may start new work at the new sender as soon as it gets an outcome.
    for (const [number] of lost) this.#fail(number, reason)
  }

  /** Lets it finish its work and end. New work goes to another one. */
  #retire(link: Link): void {
    this.#link = null
    this.#silentChecks = 0
    for (const { number } of this.#defined.values()) link.commands.recall(number)
    this.#defined.clear()
    this.#retired.set(link, performance.now() + RETIREMENT_MS)
    this.#drainIfDone(link)
  }

  #drainIfDone(link: Link): void {
    for (const unit of this.#units.values()) if (unit.link === link) return
    void link.drain().then(() => this.#retired.delete(link))
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
      // They were prepared for the destination as it was before a change; or another sender had them, which may have been lost.
      dropLoaded(content)
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
    this.#options.check?.outcome(unit.work, unit.left, url, outcome, waitedMs)
    const isLast = unit.urls.length === 1
    if (isLast) this.#ended(number, unit, outcome)
    else {
      unit.urls.splice(unit.urls.indexOf(url), 1)
      unit.isDelivered ||= outcome.verdict === 'success'
    }
    this.#options.onOutcome?.(unit.work, outcome, isLast)
    unit.work.answered(url, outcome, waitedMs)
  }

  #unsent(number: number, unsent: readonly Unsent[], isOver: boolean): void {
    const unit = this.#units.get(number)
    if (unit === undefined) return
    this.#options.check?.unsent(unit.work, unit.left, unsent, isOver)
    unit.left -= unsent.length
    for (const { position, why } of unsent) {
      const loaded = why === 'left_out' ? unit.work.messages[position]?.content.loaded : null
      if (loaded != null && loaded.by === unit.link?.commands) loaded.left++
    }
    if (isOver) {
      this.#ended(number, unit, null)
      this.#options.onOutcome?.(unit.work, null, true)
    }
    unit.work.unsent(unsent, isOver)
  }

  #ended(number: number, { work, link }: Unit, outcome: Outcome | null): void {
    this.#units.delete(number)
    if (this.#retired.size > 0 && link !== null && this.#retired.has(link)) this.#drainIfDone(link)
    this.#options.onEnd?.(work, outcome)
  }

  #fail(number: number, reason: 'aborted' | LostReason): void {
    const urls = this.#units.get(number)?.urls.slice() ?? []
    for (const url of urls) this.#answered(number, url, failure(reason), 0)
  }
}
