// The events that this stage listens to, declared by ingest and delivery. app.ts connects them.

import type { DeliveryEvents } from '../../delivery/events/events.ts'
import type { AcceptedEvent, RejectedEvent, SuppressedEvent, WarnedEvent } from '../../ingest/events.ts'

/** An observer of events. It receives the events that it has a method for. */
export interface Watcher extends Partial<DeliveryEvents> {
  accepted?(event: AcceptedEvent): void
  rejected?(event: RejectedEvent): void
  suppressed?(event: SuppressedEvent): void
  warned?(event: WarnedEvent): void
}
