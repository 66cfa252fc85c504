// The events that this stage listens to, declared by ingest and delivery. app.ts connects them.

import type { DeliveryEvents } from '../delivery/events.ts'
import type { AcceptedEvent, RejectedEvent, SuppressedEvent } from '../ingest/events.ts'

/** What those who watch may want to hear; each hears what it has a method for. */
export interface Watcher extends Partial<DeliveryEvents> {
  accepted?(event: AcceptedEvent): void
  rejected?(event: RejectedEvent): void
  suppressed?(event: SuppressedEvent): void
}
