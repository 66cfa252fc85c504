// Divides the time of this process between ingest and delivery. Lanes report what they need, and ingest calls admit() before it handles a request. If no lane waits for
// work that is still in the store, requests are handled at once, and this costs nothing. If one does, ingest handles requests for a few
// milliseconds per turn of the event loop. If a lane also falls behind because of ingest, ingest works at most 40 % of the time: after each turn it
// waits until the store has committed, and then for 1.5 times as long as turn and commit took. Clients notice this as slower answers. Invariants: requests are handled in the order in
// which they arrived; each is handled or refused within seconds; the requests that wait are bounded in number and bytes, in total and for each
// source, so that neither one source nor requests without a known write key cause requests of others to be refused. A lane that is blocked, or
// that waits for a slow receiver, must not report 'behind'.

/**
 * What a lane needs from the main thread. `waiting`: more work is in the store than fits in memory, and it may be sent. `behind`: in addition, the
 * receiver answers faster than this process handles its answers, because ingest uses the main thread.
 */
export type LaneNeed = 'none' | 'waiting' | 'behind'

export interface PacingTimers {
  nowMs: () => number
  /** Calls `run` in the next turn of the event loop, or after a delay. */
  later: (run: () => void, delayMs: number) => void
}

/** A request that is to be handled. Either `handle` or `refuse` is called, now or later. */
export interface PacedRequest {
  readonly bytes: number
  /** The id of the source that it comes from, or '' if that is not known yet. */
  sender(): string
  handle(): void
  /** Called instead of `handle` if the request would have to wait for too long. */
  refuse(): void
  /** Calls `ended` when the handled request has been answered. */
  onAnswered(ended: () => void): void
}

export interface PacingState {
  isActive: boolean
  /** How many requests have waited, and how many were refused, since the start. */
  delayed: number
  refused: number
}

/** The waiting requests of one source. */
interface Share {
  requests: number
  bytes: number
}

interface WaitingRequest {
  request: PacedRequest
  sender: string
  sinceMs: number
}

/** After this time, ingest starts no further request in the same turn of the event loop. One batch of 500 KB takes about as long. */
const TURN_MS = 8
/** How long ingest pauses after its turn and the commit, as a multiple of what they took. Reading bodies and answering also take time, which is not measured. */
const PAUSE_FACTOR = 1.5
/** The longest pause after a turn, as a multiple of what the turn took on the main thread, so that a store that commits slowly does not stop ingest. */
const MAX_PAUSE_FACTOR = 7
const MAX_PAUSE_MS = 250
/** A request that has waited longer is refused. Clients usually wait for 10 seconds or more. */
const MAX_DELAY_MS = 5_000
const MAX_WAITING_BYTES = 32 * 1024 * 1024
const MAX_WAITING = 5_000
/** The part of both limits that one source may use. */
const MAX_SHARE = 1 / 2

const SYSTEM: PacingTimers = {
  nowMs: () => performance.now(),
  later: (run, delayMs) => void (delayMs < 1 ? setImmediate(run) : setTimeout(run, delayMs)),
}

export class IngestPacing {
  readonly #timers: PacingTimers
  readonly #needs = new Map<string, Exclude<LaneNeed, 'none'>>()
  #behind = 0
  #queue: WaitingRequest[] = []
  #queueBytes = 0
  /** By source. */
  readonly #shares = new Map<string, Share>()
  #isScheduled = false
  #turns = 0
  #busyMs = 0
  #delayed = 0
  #refused = 0

  constructor(timers: PacingTimers = SYSTEM) {
    this.#timers = timers
  }

  // ── For delivery ──

  report(destinationId: string, need: LaneNeed): void {
    if (this.#needs.get(destinationId) === 'behind') this.#behind--
    if (need === 'none') this.#needs.delete(destinationId)
    else this.#needs.set(destinationId, need)
    if (need === 'behind') this.#behind++
  }

  /** How many turns of the event loop ingest has used and how long they took, not counting requests that were handled at once. */
  get used(): { turns: number; busyMs: number; nowMs: number } {
    return { turns: this.#turns, busyMs: this.#busyMs, nowMs: this.#timers.nowMs() }
  }

  // ── For ingest ──

  admit(request: PacedRequest): void {
    if (this.#needs.size === 0 && this.#queue.length === 0) return request.handle()
    const sender = request.sender()
    if (!this.#hasRoom(sender, request.bytes)) {
      this.#refused++
      return request.refuse()
    }
    if (this.#behind > 0) this.#delayed++
    this.#queue.push({ request, sender, sinceMs: this.#timers.nowMs() })
    this.#count(sender, 1, request.bytes)
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#next(0)
  }

  /** A request was refused because of the limit on the backlog. */
  countRefused(): void {
    this.#refused++
  }

  // ── For metrics and limits ──

  /** The ids of the destinations that are behind. */
  *behind(): Iterable<string> {
    for (const [id, need] of this.#needs) if (need === 'behind') yield id
  }

  get state(): PacingState {
    return { isActive: this.#behind > 0, delayed: this.#delayed, refused: this.#refused }
  }

  #hasRoom(sender: string, bytes: number): boolean {
    if (this.#queue.length >= MAX_WAITING || this.#queueBytes + bytes > MAX_WAITING_BYTES) return false
    const share = this.#shares.get(sender)
    return share === undefined || (share.requests < MAX_WAITING * MAX_SHARE && share.bytes + bytes <= MAX_WAITING_BYTES * MAX_SHARE)
  }

  #count(sender: string, requests: number, bytes: number): void {
    this.#queueBytes += bytes
    const share = this.#shares.get(sender) ?? { requests: 0, bytes: 0 }
    share.requests += requests
    share.bytes += bytes
    if (share.requests === 0) this.#shares.delete(sender)
    else this.#shares.set(sender, share)
  }

  #useTurn(turn: number): void {
    // A pause has two timers: one starts after the store's answer, the other is the maximum. The timer that fires first ends the pause.
    if (turn !== this.#turns) return
    this.#turns++
    const startMs = this.#timers.nowMs()
    const isPaced = this.#behind > 0
    let endMs = startMs
    let unanswered = 1
    const onAnswered = (): void => {
      if (--unanswered === 0) this.#next((this.#timers.nowMs() - startMs) * PAUSE_FACTOR)
    }
    while (this.#queue.length > 0 && endMs - startMs < TURN_MS) {
      const { request, sender, sinceMs } = this.#queue.shift() as WaitingRequest
      this.#count(sender, -1, -request.bytes)
      if (startMs - sinceMs > MAX_DELAY_MS) {
        this.#refused++
        request.refuse()
      } else {
        if (isPaced) {
          unanswered++
          request.onAnswered(onAnswered)
        }
        request.handle()
      }
      endMs = this.#timers.nowMs()
    }
    const tookMs = endMs - startMs
    this.#busyMs += tookMs
    if (isPaced) {
      this.#next(Math.min(tookMs * MAX_PAUSE_FACTOR, MAX_PAUSE_MS))
      onAnswered()
    } else if (this.#queue.length > 0) this.#next(0)
    else this.#isScheduled = false
  }

  #next(delayMs: number): void {
    const turn = this.#turns
    this.#timers.later(() => {
      if (this.#queue.length > 0) this.#useTurn(turn)
      else if (turn === this.#turns) this.#isScheduled = false
    }, delayMs)
  }
}
