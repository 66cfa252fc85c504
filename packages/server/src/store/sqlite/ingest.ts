// Accepts batches, on the main thread: a batch becomes a command of the writing thread, and its shipments are handed to delivery after
// the commit. The body and the keys go into the buffer of the group. See write-accept.ts for what is stored.

import { cancelReservations, handToDelivery } from '../delivery/hand-to-delivery.ts'
import { keylessCounts, plannedShipments } from '../delivery/ordered-shipments.ts'
import { type SourceSeeds, sourceSeeds } from '../encoding/fingerprint.ts'
import { withoutQuarantined } from '../encoding/quarantine-routes.ts'
import { writeKeys } from '../encoding/segment-keys.ts'
import { writeTrace } from '../encoding/trace-column.ts'
import { writeViolations } from '../encoding/violations-column.ts'
import { DeferredCounts } from '../history/deferred-counts.ts'
import type { AcceptBatch, AcceptResult, IngestStore } from '../store.ts'
import type { MainContext } from './configuration-file.ts'

export class SqliteIngest implements IngestStore {
  readonly #context: MainContext
  readonly #seedOf: SourceSeeds
  readonly #counts: DeferredCounts
  readonly reject: IngestStore['reject'] = (rejection) => this.#counts.reject(rejection)
  readonly suppressed: IngestStore['suppressed'] = (sourceId, count) => this.#counts.suppressed(sourceId, count)

  constructor(context: MainContext) {
    const { writer } = context
    this.#context = context
    this.#seedOf = sourceSeeds(writer.seed)
    this.#counts = new DeferredCounts((counts) => writer.run('addCounts', counts, { retry: true }))
  }

  async accept(batch: AcceptBatch): Promise<AcceptResult> {
    const { quarantined } = batch
    const { content, body, messageIds, routing } = quarantined === undefined ? batch : withoutQuarantined(batch)
    const consumer = this.#context.consumer()
    const planned = plannedShipments({ routing, content }, this.#context.configuration(), this.#context.writer.seed, () => 0)
    const shipments = planned.map(({ destinationId, indexes, keys }) => ({ destinationId, indexes, keys, isReserved: false }))
    const bytes = body.length
    const seed = this.#seedOf(content.sourceId)
    const committing = this.#context.writer.run(
      'accept',
      {
        sourceId: content.sourceId,
        receivedAtMs: content.receivedAtMs,
        ip: content.ip,
        browser: content.browser,
        trace: writeTrace(content.trace),
        count: messageIds.length,
        keysAt: 0,
        bodyAt: 0,
        bodyBytes: bytes,
        shipments,
        skips: routing.skips,
        violations: writeViolations(content.violations),
        quarantined,
      },
      {
        body,
        writeKeys: (into, at) => writeKeys(messageIds, content.items, seed, into, at),
        prepare: () => {
          // Ordered shipments are claimed from the store, where they are in order.
          for (const shipment of shipments)
            shipment.isReserved =
              shipment.keys === undefined && (consumer?.reserve(shipment.destinationId, bytes, messageIds.length) ?? false)
        },
      },
    )
    const accepted = await committing.catch((error: unknown) => {
      cancelReservations(consumer, shipments, bytes)
      throw error
    })
    handToDelivery(this.#context.consumer(), accepted, shipments, { content, body })
    const { segment, duplicates } = accepted
    const keyless = keylessCounts(planned, duplicates)
    return keyless === undefined ? { segment, duplicates } : { segment, duplicates, keyless }
  }

  /** Writes the counts that are still in memory. */
  flush(): Promise<void> {
    return this.#counts.flush()
  }
}
