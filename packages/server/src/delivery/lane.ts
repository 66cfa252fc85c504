// One destination's way out: what waits for it in memory, what is in flight, its breaker, its retries. It holds no more
// than its share of memory; what does not fit stays in the store and is claimed when there is room. Nothing here waits on
// another lane. Invariants: never more in flight than the destination, its breaker and the slots allow; what was claimed is
// settled or released; a lane with an open breaker holds nothing but its probe.

import type { Clock } from '../clock.ts'
import type { ClaimedShipment, Destination, DeliveryStore, RowId, Settlement, Shipment } from '../store/store.ts'
import type { Sender } from './attempt.ts'
import { Breaker, type BreakerState } from './breaker.ts'
import { Health } from './health.ts'
import type { Outcome } from './outcome.ts'
import { webhookRequest } from './request.ts'
import type { Slots, SlotUser } from './slots.ts'
import { expiry, jsonOf, type Member, type Unit, type UnitOutcome, Work } from './work.ts'

/** What all lanes share. */
export interface LaneDeps {
  store: DeliveryStore
  sender: Sender
  slots: Slots
  memory: Memory
  clock: Clock
  random: () => number
  events: DeliveryEvents
}

export interface AttemptEvent {
  destination: Destination
  deliveryId: string
  messageId: string | null
  count: number
  attempt: number
  url: string
  outcome: Outcome
}

/** What others may want to know: for the log, metrics, the live view. */
export interface DeliveryEvents {
  attempted(event: AttemptEvent): void
  breaker(destination: Destination, state: BreakerState): void
  /** A bug, or a store that refuses what it was told. */
  trouble(destination: Destination, error: unknown): void
}

/** Bytes of segments that all lanes hold together. */
export class Memory {
  readonly #limit: number
  #held = 0

  constructor(limitBytes: number) {
    this.#limit = limitBytes
  }

  take(bytes: number): boolean {
    if (this.#held + bytes > this.#limit) return false
    this.#held += bytes
    return true
  }

  /** For what has been claimed already and must be held. */
  add(bytes: number): void {
    this.#held += bytes
  }

  give(bytes: number): void {
    this.#held -= bytes
  }
}

const LANE_BYTES = 8 * 1024 * 1024
const CLAIM_FRESH = 256
const CLAIM_RETRIES = 64
const OVERDUE_EVERY_MS = 30_000
const OVERDUE_AT_ONCE = 200
/** A timer may not be set further ahead, and a claim finds out what is due anyway. */
const MAX_TIMER_MS = 60_000

export class Lane implements SlotUser {
  destination: Destination
  readonly health = new Health()
  readonly #deps: LaneDeps
  readonly #breaker: Breaker
  /** New shipments that wait to be put in a batch. */
  #gathering: ClaimedShipment[] = []
  #gatheredCount = 0
  #linger: NodeJS.Timeout | undefined
  #fresh: Work[] = []
  #retries: Work[] = []
  readonly #underWay = new Set<Work>()
  #heldBytes = 0
  #inFlight = 0
  #inFlightRetries = 0
  readonly #inFlightByUrl = new Map<string, number>()
  /** There may be work in the store that nobody holds. */
  #backlog = true
  #claiming = false
  #nextRetryAtMs: number | null = null
  #pausedUntilMs = 0
  #timer: NodeJS.Timeout | undefined
  #timerAtMs = Number.POSITIVE_INFINITY
  #overdueAtMs = 0
  #stopped = false
  #idle: (() => void)[] = []
  #settling = 0

  constructor(destination: Destination, deps: LaneDeps) {
    this.destination = destination
    this.#deps = deps
    this.#breaker = new Breaker(deps.random)
  }

  // ── New work ──

  wants(bytes: number): boolean {
    if (this.#isHeld || this.#backlog || this.#breaker.state !== 'closed') {
      this.#backlog = true
      return false
    }
    if (this.#heldBytes + bytes > LANE_BYTES || !this.#deps.memory.take(bytes)) {
      this.#backlog = true
      return false
    }
    this.#heldBytes += bytes
    return true
  }

  lost(bytes: number): void {
    this.#heldBytes -= bytes
    this.#deps.memory.give(bytes)
  }

  take(claimed: ClaimedShipment): void {
    this.#add(claimed)
    if (this.#isHeld || this.#breaker.state !== 'closed') this.#letGo()
    this.pump()
  }

  /** There is work in the store that this lane was not handed. */
  wake(): void {
    this.#backlog = true
    this.pump()
  }

  purged(segment: RowId, indexes: readonly number[]): void {
    for (const claimed of this.#gathering) {
      // The gathered become a work now, so that there is one place that knows how to leave a message out.
      if (claimed.contents.has(segment)) {
        this.#closeBatch()
        break
      }
    }
    for (const work of [...this.#fresh, ...this.#retries, ...this.#underWay]) {
      work.purge(segment, indexes)
      this.#finishIfOver(work)
    }
  }

  // ── Changes ──

  update(destination: Destination): void {
    const before = this.destination
    this.destination = destination
    this.health.keep(destination.urls)
    if (before.urls.join(' ') !== destination.urls.join(' ')) {
      this.#breaker.reset()
      this.#pausedUntilMs = 0
    }
    if (!destination.enabled) this.#letGo()
    else this.#backlog = true
    this.pump()
  }

  /** Starts nothing more and gives back what has not been started. Resolves when nothing is in flight or being settled. */
  stop(): Promise<void> {
    this.#stopped = true
    this.#deps.slots.leave(this)
    clearTimeout(this.#timer)
    this.#letGo()
    if (this.#underWay.size === 0 && this.#settling === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  get state(): { breaker: BreakerState; inFlight: number; nextAttemptAtMs: number | null } {
    const now = this.#deps.clock.scheduleMs()
    const waits = [this.#breaker.probeAtMs, this.#pausedUntilMs > now ? this.#pausedUntilMs : null, this.#nextRetryAtMs]
    const next = waits.filter((at): at is number => at !== null)
    return {
      breaker: this.#breaker.state,
      inFlight: this.#inFlight,
      nextAttemptAtMs: next.length === 0 ? null : this.#breaker.state === 'closed' ? Math.max(...next) : Math.max(next[0] as number, now),
    }
  }

  inFlightAt(url: string): number {
    return this.#inFlightByUrl.get(url) ?? 0
  }

  // ── Sending ──

  useSlot(): void {
    this.pump()
  }

  pump(): void {
    if (this.#isHeld) return
    const now = this.#deps.clock.scheduleMs()
    const allowed = now < this.#pausedUntilMs ? 0 : this.#breaker.allowance(now, this.destination.maxInFlight)
    while (this.#inFlight < allowed) {
      const work = this.#nextWork(allowed)
      if (work === undefined || !this.#deps.slots.take(this)) break
      this.#startUnit(work, now)
    }
    if (allowed > this.#inFlight) this.#claimIfNeeded(now)
    this.#setTimer(now)
  }

  /** First attempts and retries take turns when both wait, so that neither can starve the other. */
  #nextWork(allowed: number): Work | undefined {
    const [fresh] = this.#fresh
    const [retry] = this.#retries
    if (fresh === undefined || retry === undefined) return fresh ?? retry
    return this.#inFlightRetries < Math.max(1, Math.floor(allowed / 2)) ? retry : fresh
  }

  #startUnit(work: Work, now: number): void {
    const unit = work.start(now)
    this.#underWay.add(work)
    if (work.units.length === 0) {
      const queue = work.retry ? this.#retries : this.#fresh
      if (queue[0] === work) queue.shift()
    }
    if (unit === undefined) {
      this.#deps.slots.give()
      this.#finishIfOver(work)
      return
    }
    this.#inFlight++
    if (work.retry) this.#inFlightRetries++
    this.#breaker.started()
    void this.#send(unit).then(
      (results) => this.#came(work, unit, results),
      (error: unknown) => {
        // Building the request failed, which is a bug: nothing was sent, and it must not be lost or tried in a loop.
        this.#deps.events.trouble(this.destination, error)
        this.#came(work, unit, [])
      },
    )
  }

  async #send(unit: Unit): Promise<UnitOutcome[]> {
    const { destination } = this
    const { sender, clock } = this.#deps
    const { shipment, part: _ } = unit.members[0] as Member
    const startedAtMs = clock.wallMs()
    const batch = destination.batch.size > 1 || shipment.unit
    const about = { id: deliveryIdOf(unit), attempt: shipment.attempt + 1, replay: shipment.replay, atMs: startedAtMs }
    const { headers, body } = webhookRequest(destination, unit.members.map(jsonOf), batch, about)
    const urls = urlsFor(destination, shipment)
    const { timeoutMs } = destination
    if (urls.length === 1) {
      const url = urls[0] as string
      return [{ url, startedAtMs, outcome: await this.#attempt({ url, headers, body, timeoutMs }, sender) }]
    }
    return Promise.all(
      urls.map(async (url) => ({ url, startedAtMs, outcome: await this.#attempt({ url, headers, body, timeoutMs }, sender) })),
    )
  }

  async #attempt(request: Parameters<Sender['send']>[0], sender: Sender): Promise<Outcome> {
    const { url } = request
    this.#inFlightByUrl.set(url, this.inFlightAt(url) + 1)
    const outcome = await sender.send(request)
    this.#inFlightByUrl.set(url, this.inFlightAt(url) - 1)
    return outcome
  }

  #came(work: Work, unit: Unit, results: readonly UnitOutcome[]): void {
    this.#inFlight--
    if (work.retry) this.#inFlightRetries--
    const aborted = results.length === 0 || results.every(({ outcome }) => outcome.reason === 'aborted')
    if (aborted) {
      this.#breaker.withdrawn()
      work.withdraw(unit)
      if (results.length === 0) work.stop()
    } else {
      work.finish(unit, results)
      this.#judge(unit, results)
    }
    this.#finishIfOver(work)
    this.#deps.slots.give()
    this.pump()
  }

  /** What the outcome says about the destination, beyond this one delivery. */
  #judge(unit: Unit, results: readonly UnitOutcome[]): void {
    const { clock, events } = this.#deps
    const { shipment, content, index } = unit.members[0] as Member
    const messageId = content.items[index]?.['messageId']
    for (const { url, outcome } of results) {
      this.health.attempted(url, outcome.verdict === 'success', outcome.timings.totalMs)
      events.attempted({
        destination: this.destination,
        deliveryId: deliveryIdOf(unit),
        messageId: typeof messageId === 'string' ? messageId : null,
        count: unit.members.length,
        attempt: shipment.attempt + 1,
        url,
        outcome,
      })
    }
    const now = clock.scheduleMs()
    const before = this.#breaker.state
    if (results.some(({ outcome }) => outcome.verdict === 'success')) this.#breaker.succeeded(this.destination.maxInFlight)
    else if (results.some(({ outcome }) => outcome.verdict === 'temporary')) {
      this.#breaker.failed(now)
      for (const { outcome } of results) {
        if (outcome.retryAfterMs === null) continue
        const waitMs = Math.min(outcome.retryAfterMs, this.destination.retryWindowMs)
        this.#pausedUntilMs = Math.max(this.#pausedUntilMs, now + waitMs)
      }
    } else {
      // It answers, if only with a refusal of this message: it is alive.
      this.#breaker.succeeded(this.destination.maxInFlight)
    }
    const after = this.#breaker.state
    if (before !== after && after !== 'probing' && !(before === 'probing' && after === 'open')) events.breaker(this.destination, after)
    if (after === 'open') this.#letGo()
    else if (before !== 'closed') this.#backlog = true
  }

  // ── Ending ──

  #finishIfOver(work: Work): void {
    if (!work.isOver) return
    this.#underWay.delete(work)
    for (const queue of [this.#fresh, this.#retries]) {
      const place = queue.indexOf(work)
      if (place !== -1) queue.splice(place, 1)
    }
    if (!work.isTouched) {
      this.#release(work.shipments)
      return
    }
    const { clock, random } = this.#deps
    const settlement = work.settlement(this.destination, clock.scheduleMs(), clock.wallMs(), random)
    this.#settle(settlement, work.bytes)
  }

  #settle(settlement: Settlement, bytes: number): void {
    this.#settling++
    this.#deps.store.settle(settlement).then(
      () => {
        this.#heldBytes -= bytes
        this.#deps.memory.give(bytes)
        this.#settled(settlement)
      },
      (error: unknown) => {
        // Still in the store as it was, and claimed again after a restart; what it holds in memory is let go.
        this.#heldBytes -= bytes
        this.#deps.memory.give(bytes)
        this.#deps.events.trouble(this.destination, error)
        this.#settled({ ...settlement, remaining: [] })
      },
    )
  }

  #settled({ remaining }: Settlement): void {
    this.#settling--
    for (const { attempt, dueAtMs } of remaining) {
      if (attempt === 0) this.#backlog = true
      else this.#nextRetryAtMs = Math.min(this.#nextRetryAtMs ?? Number.POSITIVE_INFINITY, dueAtMs)
    }
    this.pump()
    if (this.#underWay.size === 0 && this.#settling === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }

  /** Everything that has not been started goes back to the store. */
  #letGo(): void {
    clearTimeout(this.#linger)
    this.#linger = undefined
    const gathered = this.#gathering.splice(0)
    this.#gatheredCount = 0
    if (gathered.length > 0) this.#release(gathered)
    for (const work of new Set([...this.#fresh.splice(0), ...this.#retries.splice(0), ...this.#underWay])) {
      work.stop()
      this.#finishIfOver(work)
    }
  }

  #release(shipments: readonly ClaimedShipment[]): void {
    const bytes = shipments.reduce((sum, claimed) => sum + claimed.bytes, 0)
    this.#heldBytes -= bytes
    this.#deps.memory.give(bytes)
    this.#deps.store.release(shipments.map(({ shipment }) => shipment))
    this.#backlog = true
    for (const { shipment } of shipments) {
      if (shipment.attempt > 0) this.#nextRetryAtMs = Math.min(this.#nextRetryAtMs ?? Number.POSITIVE_INFINITY, shipment.dueAtMs)
    }
  }

  // ── Claiming ──

  get #isHeld(): boolean {
    return this.#stopped || !this.destination.enabled
  }

  #claimIfNeeded(now: number): void {
    if (this.#claiming) return
    const retriesDue = this.#nextRetryAtMs !== null && this.#nextRetryAtMs <= now
    const probing = this.#breaker.state !== 'closed'
    if (!(this.#backlog || retriesDue)) {
      // Nothing to probe with: whatever comes next finds the way open.
      return
    }
    if (this.#fresh.length > 0 || this.#retries.length > 0 || this.#heldBytes > LANE_BYTES / 2) return
    this.#claiming = true
    const limits = probing ? { maxFresh: 1, maxRetries: 1 } : { maxFresh: CLAIM_FRESH, maxRetries: CLAIM_RETRIES }
    const maxBytes = LANE_BYTES - this.#heldBytes
    this.#deps.store.claim({ destinationId: this.destination.id, nowMs: now, ...limits, maxBytes }).then(
      ({ shipments, moreFresh, nextRetryAtMs }) => {
        this.#claiming = false
        this.#backlog = moreFresh
        this.#nextRetryAtMs = nextRetryAtMs
        for (const claimed of shipments) {
          this.#heldBytes += claimed.bytes
          this.#deps.memory.add(claimed.bytes)
          this.#add(claimed)
        }
        if (this.#isHeld) this.#letGo()
        else this.pump()
      },
      () => {
        // The store is away; it says so itself. The timer looks again.
        this.#claiming = false
        this.#backlog = true
        this.#wakeAt(this.#deps.clock.scheduleMs() + 1_000)
      },
    )
  }

  #add(claimed: ClaimedShipment): void {
    const { shipment } = claimed
    const { batch } = this.destination
    const gathers = batch.size > 1 && shipment.attempt === 0 && !shipment.replay && !shipment.unit
    if (!gathers) {
      const work = new Work([claimed], this.destination)
      if (work.isOver) this.#finishIfOver(work)
      else (work.retry ? this.#retries : this.#fresh).push(work)
      return
    }
    const count = shipment.parts.reduce((sum, { indexes }) => sum + indexes.length, 0)
    if (this.#gatheredCount > 0 && this.#gatheredCount + count > batch.size) this.#closeBatch()
    this.#gathering.push(claimed)
    this.#gatheredCount += count
    const bytes = this.#gathering.reduce((sum, each) => sum + each.bytes, 0)
    if (this.#gatheredCount >= batch.size || bytes >= batch.bytes || batch.lingerMs === 0) this.#closeBatch()
    else {
      this.#linger ??= setTimeout(() => {
        this.#closeBatch()
        this.pump()
      }, batch.lingerMs)
    }
  }

  #closeBatch(): void {
    clearTimeout(this.#linger)
    this.#linger = undefined
    this.#gatheredCount = 0
    const gathered = this.#gathering.splice(0)
    if (gathered.length === 0) return
    const work = new Work(gathered, this.destination)
    if (work.isOver) this.#finishIfOver(work)
    else this.#fresh.push(work)
  }

  // ── Time ──

  #setTimer(now: number): void {
    const at: number[] = []
    if (this.#breaker.state === 'open') {
      at.push(this.#breaker.probeAtMs ?? now)
      this.#sweepOverdue(now)
    } else if (this.#nextRetryAtMs !== null) at.push(Math.max(this.#nextRetryAtMs, this.#pausedUntilMs))
    if (this.#pausedUntilMs > now && (this.#fresh.length > 0 || this.#retries.length > 0 || this.#backlog)) at.push(this.#pausedUntilMs)
    if (at.length > 0) this.#wakeAt(Math.min(...at))
  }

  #wakeAt(atMs: number): void {
    if (this.#stopped || (this.#timer !== undefined && this.#timerAtMs <= atMs)) return
    clearTimeout(this.#timer)
    const now = this.#deps.clock.scheduleMs()
    const delayMs = Math.min(Math.max(atMs - now, 1), MAX_TIMER_MS)
    this.#timerAtMs = now + delayMs
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#timerAtMs = Number.POSITIVE_INFINITY
      this.pump()
    }, delayMs)
  }

  /** While the breaker is open nothing is tried, so what was tried before runs out of its window without an attempt to end it. */
  #sweepOverdue(now: number): void {
    if (now < this.#overdueAtMs) {
      this.#wakeAt(this.#overdueAtMs)
      return
    }
    const { store, clock } = this.#deps
    this.#overdueAtMs = now + Math.min(OVERDUE_EVERY_MS, Math.max(1_000, this.destination.retryWindowMs / 4))
    this.#wakeAt(this.#overdueAtMs)
    store.claimOverdue(this.destination.id, now - this.destination.retryWindowMs, OVERDUE_AT_ONCE).then(
      (overdue) => {
        if (overdue.length === 0) return
        const bytes = overdue.reduce((sum, claimed) => sum + claimed.bytes, 0)
        this.#heldBytes += bytes
        this.#deps.memory.add(bytes)
        this.#settle(expiry(this.destination.id, overdue, clock.wallMs()), bytes)
        if (overdue.length === OVERDUE_AT_ONCE) this.#overdueAtMs = 0
      },
      () => {},
    )
  }
}

/** The URLs that are left of those the destination has now; if it has been given others, all of them. */
function urlsFor(destination: Destination, shipment: Shipment): readonly string[] {
  const left = shipment.urls?.filter((url) => destination.urls.includes(url)) ?? []
  return left.length > 0 ? left : destination.urls
}

/** A batch has the name of its first delivery. */
function deliveryIdOf({ members }: Unit): string {
  const { shipment, index, content: _, part: __ } = members[0] as Member
  return `${String((shipment.parts[0] as { origin: RowId }).origin)}-${index}`
}
