// Makes loads of the messages that wait for a warehouse. They stay in the store until they are due: some time after the first of them was accepted, or when
// there are many. Then they are claimed and stored again as one shipment, the load, before anything is written. A load is claimed like any other shipment; it is
// never split or joined with others. Invariant: a message is in one load at most, until its delivery ends.

import { kindOf } from '../../destinations/kinds.ts'
import type { WarehouseDestination } from '../../destinations/warehouse/settings.ts'
import { newId } from '../../model/new-id.ts'
import type { SegmentBody } from '../../store/port/stored-messages.ts'
import type { Claim, ClaimedShipment, DeliveryStore, Destination, Part, Shipment, ShipmentDraft } from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import type { CancelTimer, SetTimer } from '../../timing/timers.ts'
import { isLoad, progressOf } from '../link/load-progress.ts'
import type { Backlog } from '../recording/backlog.ts'
import type { HeldShipments } from '../recording/held-shipments.ts'

export interface LoadGatheringDeps {
  store: Pick<DeliveryStore, 'claim' | 'settle' | 'release'>
  clock: Clock
  setTimer: SetTimer
  destination: () => Destination
  backlog: Backlog
  held: Pick<HeldShipments, 'bytes' | 'charge'>
  /** Whether nothing may be sent now, so that what was claimed goes back. */
  mayNotSend: () => boolean
  /** Called with loads, and with messages that are sent alone. */
  claimed: (shipments: readonly ClaimedShipment[]) => void
  wake: () => void
  onEnd: () => void
  onError: (error: unknown) => void
}

const CLAIM_SHIPMENTS = 256
const CLAIM_BYTES = 2 * 1024 * 1024
/** The segments of one load. Each has a record of its own when the load ends, and all of them are one transaction. */
const MAX_PARTS = 5_000
const RETRY_MS = 1_000
/**
 * After everything that waited was gathered on request, this looks once more. A claim may not see a message that this node released a moment before, or
 * that another node stored at the same time; a claim that is this much later sees both (on PostgreSQL, see scan-positions.ts).
 */
const LOOK_AGAIN_MS = 2_500
const DELETE = Buffer.from('"delete"')

const MAX_ASKED = 100

/** Somebody asked for a load of everything that waits. */
interface Asked {
  onGathered: () => void
  /** When to look, in wall time: at once, and later again. */
  lookAtMs: number
}

interface Gathered {
  shipment: Shipment
  sourceId: string
}

export class LoadGathering {
  readonly #deps: LoadGatheringDeps
  /** In wall time; null if nothing is known to wait. */
  #dueAtMs: number | null = null
  /** Whether there may be loads, or messages whose age is not known. */
  #mustLook = true
  /** By the id of the request. */
  readonly #asked = new Map<string, Asked>()
  #messages = 0
  #bytes = 0
  #underWay = false
  #notBeforeMs = 0
  #cancel: CancelTimer | null = null

  constructor(deps: LoadGatheringDeps) {
    this.#deps = deps
  }

  get isUnderWay(): boolean {
    return this.#underWay
  }

  /** In wall time; null if nothing is known to wait. */
  get dueAtMs(): number | null {
    return this.#dueAtMs
  }

  /** Messages were accepted a moment ago. */
  accepted(bytes: number, messages: number): void {
    const { everyMs, maxRows, maxBytes } = this.#settings
    const nowMs = this.#deps.clock.wallMs()
    this.#messages += messages
    this.#bytes += bytes
    this.#dueAtMs ??= nowMs + everyMs
    if (this.#messages >= maxRows || this.#bytes >= maxBytes) this.#dueAtMs = Math.min(this.#dueAtMs, nowMs)
  }

  /** Another node makes the loads now. What waits when this node makes them again is not known. */
  forget(): void {
    this.#asked.clear()
    this.#reset(false)
    this.#mustLook = true
  }

  /** The store has messages of which nothing is known, or the settings have changed. */
  look(): void {
    this.#mustLook = true
  }

  /** Everything that waits is loaded now. `onGathered`: called once, when all of it is in loads. Does nothing if the request is known. */
  loadNow(request: string, onGathered: () => void): void {
    if (this.#asked.has(request)) return
    // Only the latest one is still stored, so nobody waits for the end of the others. There can be many while nothing can be loaded.
    const [oldest] = this.#asked.keys()
    if (oldest !== undefined && this.#asked.size >= MAX_ASKED) this.#asked.delete(oldest)
    this.#asked.set(request, { onGathered, lookAtMs: 0 })
    this.#mustLook = true
    this.#deps.wake()
  }

  /** Called when something may be sent, and after every event that may have changed what waits. */
  continue(): void {
    const { held, clock } = this.#deps
    const nowMs = clock.wallMs()
    if (this.#underWay) return
    const isDue = this.#dueAtMs !== null && this.#dueAtMs <= nowMs
    // One load at a time is in memory. When it is recorded, this is called again.
    const askedAtMs = Math.min(...Array.from(this.#asked.values(), ({ lookAtMs }) => lookAtMs))
    if (held.bytes === 0 && (isDue || this.#mustLook || askedAtMs <= nowMs) && nowMs >= this.#notBeforeMs) {
      this.#underWay = true
      void this.#run(isDue).finally(() => {
        this.#underWay = false
        this.#deps.onEnd()
        this.#deps.wake()
      })
      return
    }
    const atMs = Math.max(Math.min(this.#dueAtMs ?? Number.POSITIVE_INFINITY, askedAtMs), this.#notBeforeMs)
    if (held.bytes === 0 && Number.isFinite(atMs)) this.#wakeAt(atMs, nowMs)
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = null
  }

  async #run(isDue: boolean): Promise<void> {
    const { clock, onError } = this.#deps
    // What is asked for during this run may have been accepted after its claims.
    const asked = [...this.#asked].filter(([, { lookAtMs }]) => lookAtMs <= clock.wallMs())
    const found: Gathered[] = []
    try {
      // The first one tells whether there is a load, or how long messages have waited.
      const first = await this.#claim(1, CLAIM_BYTES)
      const [oldest] = first.shipments
      if (oldest === undefined) {
        this.#mustLook = false
        this.#reset(false)
        return this.#gatheredAll(asked)
      }
      if (this.#isReady(oldest)) {
        this.#mustLook = first.moreFresh
        return this.#hand([oldest])
      }
      const body = bodyOf(oldest)
      const { everyMs } = this.#settings
      const dueAtMs = (body?.about.receivedAtMs ?? 0) + everyMs
      if (!isDue && asked.length === 0 && !oldest.shipment.replay && dueAtMs > clock.wallMs()) {
        this.#release([oldest.shipment])
        this.#dueAtMs = Math.min(dueAtMs, clock.wallMs() + everyMs)
        this.#mustLook = false
        return
      }
      const { ready, more } = await this.#gather(oldest, first.moreFresh, found)
      this.#reset(more)
      if (this.#deps.mayNotSend()) {
        this.#release([...found.map(({ shipment }) => shipment), ...ready.map(({ shipment }) => shipment)])
        return
      }
      await this.#store(found.splice(0))
      // What was stored is claimed next.
      this.#mustLook = true
      if (!more) this.#gatheredAll(asked)
      if (ready.length > 0) this.#hand(ready)
    } catch (error) {
      onError(error)
      this.#mustLook = true
      this.#notBeforeMs = clock.wallMs() + RETRY_MS
      this.#release(found.map(({ shipment }) => shipment))
    }
  }

  /** Claims messages until the load is full, or there are no more. `ready`: what is not gathered. */
  async #gather(oldest: ClaimedShipment, moreFresh: boolean, found: Gathered[]): Promise<{ ready: ClaimedShipment[]; more: boolean }> {
    const { maxRows, maxBytes } = this.#settings
    const ready: ClaimedShipment[] = []
    const size = { rows: 0, bytes: 0, parts: 0 }
    const add = (claimed: ClaimedShipment): void => {
      if (this.#isReady(claimed)) return void ready.push(claimed)
      const { shipment } = claimed
      size.rows += rowsOf(shipment)
      size.parts += shipment.parts.length
      size.bytes += claimed.bytes
      found.push({ shipment, sourceId: bodyOf(claimed)?.about.sourceId ?? '' })
    }
    add(oldest)
    let more = moreFresh
    while (more && ready.length === 0 && size.rows < maxRows && size.bytes < maxBytes && size.parts < MAX_PARTS) {
      const count = Math.max(1, Math.min(CLAIM_SHIPMENTS, maxRows - size.rows, MAX_PARTS - size.parts))
      const claim = await this.#claim(count, Math.max(1, Math.min(CLAIM_BYTES, maxBytes - size.bytes)))
      // A claim is limited in shipments, which may have many messages. The rest belongs to the next load.
      const rest: Shipment[] = []
      for (const claimed of claim.shipments) {
        const isFull = rest.length > 0 || size.rows + rowsOf(claimed.shipment) > maxRows
        if (isFull && !this.#isReady(claimed)) rest.push(claimed.shipment)
        else add(claimed)
      }
      this.#release(rest)
      if (rest.length > 0) return { ready, more: true }
      more = claim.moreFresh
      if (claim.shipments.length === 0) break
    }
    return { ready, more }
  }

  async #claim(maxFresh: number, maxBytes: number): Promise<Claim> {
    const { store, clock, destination, backlog } = this.#deps
    const known = backlog.claimStarted(true)
    try {
      const claim = await store.claim({ destinationId: destination().id, nowMs: clock.scheduleMs(), maxFresh, maxRetries: 0, maxBytes })
      backlog.claimSucceeded(claim)
      return claim
    } catch (error) {
      backlog.claimFailed(known)
      throw error
    }
  }

  /** Stores what was gathered as loads, one for each source. */
  async #store(gathered: readonly Gathered[]): Promise<void> {
    const { store, clock, destination, backlog } = this.#deps
    if (gathered.length === 0) return
    const bySource = new Map<string, Gathered[]>()
    for (const each of gathered) {
      const key = `${each.sourceId} ${each.shipment.replay}`
      const same = bySource.get(key)
      if (same === undefined) bySource.set(key, [each])
      else same.push(each)
    }
    const { id: destinationId } = destination()
    const remaining = Array.from(bySource.values(), (some): ShipmentDraft => {
      const [{ sourceId, shipment }] = some as [Gathered]
      return {
        destinationId,
        attempt: 0,
        firstAttemptAtMs: null,
        dueAtMs: clock.scheduleMs(),
        unit: true,
        progress: progressOf({ id: newId('load'), sourceId, createdMs: clock.wallMs() }),
        replay: shipment.replay,
        parts: some.flatMap(({ shipment: { parts } }): readonly Part[] => parts),
      }
    })
    await store.settle({ destinationId, done: gathered.map(({ shipment }) => shipment), kept: [], remaining, records: [] })
    for (const { attempt, dueAtMs } of remaining) backlog.returned(attempt, dueAtMs)
  }

  /** Whether it is a load, or is sent alone: the deletion of a user. */
  #isReady(claimed: ClaimedShipment): boolean {
    if (isLoad(claimed.shipment.progress)) return true
    const body = bodyOf(claimed)
    if (body === undefined || !contains(body.bytes, DELETE)) return false
    return claimed.shipment.parts.some(({ indexes }) => indexes.some((index) => body.content.items[index]?.['type'] === 'delete'))
  }

  #hand(shipments: readonly ClaimedShipment[]): void {
    this.#deps.held.charge(shipments)
    this.#deps.claimed(shipments)
  }

  #release(shipments: readonly Shipment[]): void {
    if (shipments.length > 0) this.#deps.store.release(shipments)
    for (const { attempt, dueAtMs } of shipments) this.#deps.backlog.returned(attempt, dueAtMs)
  }

  #gatheredAll(asked: readonly [request: string, Asked][]): void {
    for (const [request, about] of asked) {
      // Another node may make the loads by now.
      if (this.#asked.get(request) !== about) continue
      if (about.lookAtMs === 0) {
        about.lookAtMs = this.#deps.clock.wallMs() + LOOK_AGAIN_MS
        continue
      }
      this.#asked.delete(request)
      about.onGathered()
    }
  }

  /** What is accepted from now on waits anew. `more`: some messages still wait, and are as old. */
  #reset(more: boolean): void {
    this.#messages = 0
    this.#bytes = 0
    if (!more) this.#dueAtMs = null
  }

  #wakeAt(atMs: number, nowMs: number): void {
    this.#cancel?.()
    this.#cancel = this.#deps.setTimer(
      () => {
        this.#cancel = null
        this.#deps.wake()
      },
      Math.min(Math.max(1, atMs - nowMs), 2 ** 30),
    )
  }

  get #settings(): WarehouseDestination['load'] {
    const destination = this.#deps.destination()
    if (kindOf(destination).place !== 'loader') throw new Error(`${destination.type} has no loads`)
    return (destination as WarehouseDestination).load
  }
}

function bodyOf({ bodies }: ClaimedShipment): SegmentBody | undefined {
  for (const body of bodies.values()) return body
  return undefined
}

function contains({ buffer, byteOffset, byteLength }: Uint8Array, text: Buffer): boolean {
  return Buffer.from(buffer, byteOffset, byteLength).includes(text)
}

function rowsOf({ parts }: Shipment): number {
  return parts.reduce((rows, { indexes }) => rows + indexes.length, 0)
}
