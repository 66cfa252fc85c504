// The part of the delivery port that is the same for both adapters: messages of users who are being deleted are claimed without
// their content, and shipments of a deleted destination are cancelled as soon as their holder releases or settles them.

import { DeletedUsers } from '../deletions/deleted-users.ts'
import type {
  Claim,
  ClaimedShipment,
  ClaimRequest,
  CrowdedHead,
  DeliveryStore,
  OrderedClaim,
  OrderedClaimRequest,
  Settlement,
  Shipment,
  ShipmentConsumer,
} from '../port/delivery.ts'
import type { Configuration } from '../store.ts'

export type HeldShipment = Pick<Shipment, 'id' | 'claim' | 'destinationId'>

export interface DeliveryEngine
  extends Pick<DeliveryStore, 'claim' | 'claimOrdered' | 'orderedUntilMs' | 'claimOverdue' | 'claimCrowded' | 'settle' | 'share'> {
  /** Resolves when the shipments can be claimed again. */
  release(shipments: readonly HeldShipment[]): Promise<void>
  /** Cancels the shipments of a deleted destination that nobody holds. */
  cancel(destinationId: string): Promise<void>
  configuration(): Configuration
  /** Runs work in the background. */
  run(work: Promise<void>): void
}

export class CommonDeliveryStore implements DeliveryStore {
  readonly #engine: DeliveryEngine
  readonly deleted = new DeletedUsers(() => this.consumer)
  readonly share: DeliveryStore['share']
  consumer: ShipmentConsumer | null = null
  #isWritable = true

  constructor(engine: DeliveryEngine) {
    this.#engine = engine
    this.share = engine.share
  }

  attach(consumer: ShipmentConsumer): void {
    this.consumer = this.deleted.guard(consumer)
    if (!this.#isWritable) this.consumer.writable?.(false)
  }

  /** Called by the adapter after writes: false if the latest one failed because the store is unavailable. */
  setWritable(isWritable: boolean): void {
    if (isWritable === this.#isWritable) return
    this.#isWritable = isWritable
    this.consumer?.writable?.(isWritable)
  }

  async claim(request: ClaimRequest): Promise<Claim> {
    const claim = await this.#engine.claim(request)
    return { ...claim, shipments: claim.shipments.map((shipment) => this.deleted.without(shipment)) }
  }

  async claimOrdered(request: OrderedClaimRequest): Promise<OrderedClaim> {
    const claim = await this.#engine.claimOrdered(request)
    return { ...claim, shipments: claim.shipments.map((shipment) => this.deleted.without(shipment)) }
  }

  orderedUntilMs(): number {
    return this.#engine.orderedUntilMs()
  }

  async claimOverdue(...request: Parameters<DeliveryStore['claimOverdue']>): Promise<ClaimedShipment[]> {
    const overdue = await this.#engine.claimOverdue(...request)
    return overdue.map((claimed) => this.deleted.without(claimed))
  }

  async claimCrowded(...request: Parameters<DeliveryStore['claimCrowded']>): Promise<CrowdedHead[]> {
    const heads = await this.#engine.claimCrowded(...request)
    return heads.map(({ claimed, keys }) => ({ claimed: this.deleted.without(claimed), keys }))
  }

  release(shipments: readonly Shipment[]): void {
    void this.releaseHeld(shipments)
  }

  /** Resolves when the shipments can be claimed again. */
  releaseHeld(shipments: readonly HeldShipment[]): Promise<void> {
    const released = this.#engine.release(shipments)
    const gone = new Set(shipments.map(({ destinationId }) => destinationId).filter((id) => this.#isGone(id)))
    this.#engine.run(released.then(async () => void (await Promise.all([...gone].map((id) => this.#engine.cancel(id))))))
    return released
  }

  async settle(settlement: Settlement): Promise<void> {
    await this.#engine.settle(settlement)
    const { destinationId, remaining, letters = [] } = settlement
    for (const { destinationId: owedTo } of letters) this.consumer?.wake(owedTo)
    if (remaining.length > 0 && this.#isGone(destinationId)) this.#engine.run(this.#engine.cancel(destinationId))
  }

  #isGone(destinationId: string): boolean {
    return !this.#engine.configuration().destinations.has(destinationId)
  }
}
