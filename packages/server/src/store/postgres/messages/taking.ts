// The rows that a claim of ordered shipments takes, within its limit of bytes.

import type { OrderKey } from '../../../model/order/order-key.ts'
import type { StoredPart } from '../../encoding/stored-parts.ts'
import type { ShipmentRow } from './shipment-row.ts'

export interface OrderedRow extends Omit<ShipmentRow, 'ord' | 'order'> {
  ord: number
  part: number
  key: OrderKey | null
}

/** Takes rows until their size exceeds a limit. A segment that several of them refer to is in memory once. */
export class Taking {
  readonly rows: OrderedRow[] = []
  readonly #maxBytes: number
  #bytesLeft: number
  readonly #segments = new Set<string>()

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
    this.#bytesLeft = maxBytes
  }

  /** How much the rows take together. */
  get bytes(): number {
    return this.#maxBytes - this.#bytesLeft
  }

  take(row: OrderedRow): boolean {
    if (this.#bytesLeft < 0) return false
    const segments = (JSON.parse(row.parts) as StoredPart<string>[]).map(([, segment]) => segment)
    if (segments.some((segment) => !this.#segments.has(segment))) this.#bytesLeft -= row.bytes
    for (const segment of segments) this.#segments.add(segment)
    this.rows.push(row)
    return true
  }
}
