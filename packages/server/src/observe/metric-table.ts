// Every metric of the service as one table: what is measured, what is served and what the reference says come from it.
// Names follow Prometheus: base units, `_total` for what only grows. Those of Node.js and of the process are prom-client's.

export type MetricOrigin =
  /** Read from the store when it is asked for: exact, and the same after a restart. */
  | 'store'
  /** Counted by this process since its start. */
  | 'process'

export interface Metric {
  name: string
  type: 'counter' | 'gauge' | 'histogram'
  labels: readonly string[]
  origin: MetricOrigin
  help: string
  /** Of a histogram. */
  bounds?: readonly number[]
}

const SOURCE = ['source'] as const
const DESTINATION = ['destination'] as const

export const METRICS = {
  accepted: metric('switchyard_messages_accepted_total', 'counter', SOURCE, 'store', 'Messages accepted, duplicates not counted.'),
  duplicates: metric(
    'switchyard_messages_duplicate_total',
    'counter',
    SOURCE,
    'store',
    'Messages dropped because they had been accepted before.',
  ),
  suppressed: metric(
    'switchyard_messages_suppressed_total',
    'counter',
    SOURCE,
    'store',
    'Messages dropped because their user is suppressed.',
  ),
  rejected: metric(
    'switchyard_messages_rejected_total',
    'counter',
    ['source', 'code'],
    'store',
    'Messages refused, by code. The source is "unknown" where the write key was not known.',
  ),
  owed: metric(
    'switchyard_deliveries_owed_total',
    'counter',
    DESTINATION,
    'store',
    'Deliveries owed: messages routed to the destination, and replays.',
  ),
  delivered: metric('switchyard_deliveries_delivered_total', 'counter', DESTINATION, 'store', 'Deliveries that a URL took.'),
  failed: metric('switchyard_deliveries_failed_total', 'counter', DESTINATION, 'store', 'Deliveries refused for good.'),
  expired: metric(
    'switchyard_deliveries_expired_total',
    'counter',
    DESTINATION,
    'store',
    'Deliveries whose retry window ended without success.',
  ),
  cancelled: metric('switchyard_deliveries_cancelled_total', 'counter', DESTINATION, 'store', 'Deliveries that are no longer to be made.'),
  pending: metric('switchyard_deliveries_pending', 'gauge', DESTINATION, 'store', 'Deliveries that have not ended.'),
  oldestPending: metric(
    'switchyard_oldest_pending_age_seconds',
    'gauge',
    DESTINATION,
    'store',
    'How long ago the oldest pending delivery was accepted; 0 when none is pending.',
  ),
  ledger: metric(
    'switchyard_ledger',
    'gauge',
    ['state'],
    'store',
    'Deliveries of all destinations together, deleted ones included, by state. owed is the sum of the others.',
  ),
  sourceInfo: metric('switchyard_source_info', 'gauge', ['source', 'name'], 'process', 'Always 1: the name of each source.'),
  destinationInfo: metric(
    'switchyard_destination_info',
    'gauge',
    ['destination', 'name'],
    'process',
    'Always 1: the name of each destination.',
  ),
  retried: metric(
    'switchyard_deliveries_retried_total',
    'counter',
    DESTINATION,
    'process',
    'Times that a delivery was put off to another attempt.',
  ),
  attemptSeconds: metric(
    'switchyard_attempt_duration_seconds',
    'histogram',
    ['destination', 'outcome'],
    'process',
    'Duration of requests to webhooks. The outcome is success, temporary or permanent.',
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  ),
  deliverySeconds: metric(
    'switchyard_delivery_latency_seconds',
    'histogram',
    DESTINATION,
    'process',
    'From a message being accepted to its being delivered, retries included, replays not.',
    [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 14_400],
  ),
  inFlight: metric('switchyard_requests_in_flight', 'gauge', DESTINATION, 'process', 'Requests to webhooks that have not been answered.'),
  breaker: metric(
    'switchyard_breaker_state',
    'gauge',
    ['destination', 'state'],
    'process',
    '1 for the state that the breaker is in (closed, open or probing), 0 for the others.',
  ),
  storeWritable: metric(
    'switchyard_store_writable',
    'gauge',
    [],
    'process',
    '0 while the store cannot accept, and calls are answered with 503.',
  ),
  storeReadable: metric(
    'switchyard_store_readable',
    'gauge',
    [],
    'process',
    '0 when the store did not answer in time; then what is read from it is left out.',
  ),
  commitSeconds: metric(
    'switchyard_store_commit_duration_seconds',
    'histogram',
    [],
    'process',
    'Duration of transactions, until they are durable.',
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
  ),
  groupSize: metric(
    'switchyard_store_commit_commands',
    'histogram',
    [],
    'process',
    'Commands that shared a transaction.',
    [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
  ),
  roundTrips: metric(
    'switchyard_store_round_trips_total',
    'counter',
    [],
    'process',
    'Statements sent to the PostgreSQL server, each of which waits for an answer; 0 where the store is a file.',
  ),
  eventLoopLag: metric(
    'switchyard_event_loop_lag_seconds',
    'histogram',
    [],
    'process',
    'How late a timer of the main thread came, ten times a second.',
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
  ),
  liveListeners: metric('switchyard_live_listeners', 'gauge', [], 'process', 'Open streams of GET /api/live.'),
  build: metric('switchyard_build_info', 'gauge', ['version'], 'process', 'Always 1: the version of the service.'),
} as const

export type MetricKey = keyof typeof METRICS

/** Those of prom-client that are served, by name; some are on Linux alone. */
export const PROCESS_METRICS: Readonly<Record<string, { type: Metric['type']; help: string; linux?: true }>> = {
  process_cpu_user_seconds_total: { type: 'counter', help: 'CPU time in user mode.' },
  process_cpu_system_seconds_total: { type: 'counter', help: 'CPU time in the kernel.' },
  process_cpu_seconds_total: { type: 'counter', help: 'CPU time in all.' },
  process_start_time_seconds: { type: 'gauge', help: 'When the process was started, in seconds since 1970.' },
  process_resident_memory_bytes: { type: 'gauge', help: 'Memory in use.' },
  process_open_fds: { type: 'gauge', help: 'Open file descriptors, sockets included.', linux: true },
  process_max_fds: { type: 'gauge', help: 'File descriptors that may be open.', linux: true },
  nodejs_eventloop_lag_seconds: { type: 'gauge', help: 'Lag of the event loop at this moment.' },
  nodejs_heap_size_total_bytes: { type: 'gauge', help: 'Heap of the main thread.' },
  nodejs_heap_size_used_bytes: { type: 'gauge', help: 'Heap of the main thread in use.' },
  nodejs_external_memory_bytes: { type: 'gauge', help: 'Memory of buffers and other things outside of the heap.' },
  nodejs_gc_duration_seconds: { type: 'histogram', help: 'Duration of garbage collections, by kind.' },
  nodejs_version_info: { type: 'gauge', help: 'Always 1: the version of Node.js.' },
}

function metric(
  name: string,
  type: Metric['type'],
  labels: readonly string[],
  origin: MetricOrigin,
  help: string,
  bounds?: readonly number[],
): Metric {
  return { name, type, labels, origin, help, ...(bounds === undefined ? {} : { bounds }) }
}
