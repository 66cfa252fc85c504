// Every metric of the service as one table. Measuring, serving and the reference all use it. Names follow the conventions of
// Prometheus: base units, and `_total` for counters. The metrics of Node.js and of the process come from prom-client.

export type MetricOrigin =
  /** Read from the store for each scrape: exact, and kept across restarts. */
  | 'store'
  /** Counted by this process since it started. */
  | 'process'

export interface Metric {
  name: string
  type: 'counter' | 'gauge' | 'histogram'
  labels: readonly string[]
  origin: MetricOrigin
  help: string
  /** The upper bounds of a histogram's buckets. */
  bounds?: readonly number[]
}

const SOURCE = ['source'] as const
const DESTINATION = ['destination'] as const

type Make = (name: string, labels: readonly string[], help: string, bounds?: readonly number[]) => Metric

const made =
  (type: Metric['type'], origin: MetricOrigin): Make =>
  (name, labels, help, bounds) => ({ name, type, labels, origin, help, ...(bounds === undefined ? {} : { bounds }) })
const storedCounter = made('counter', 'store')
const storedGauge = made('gauge', 'store')
const counter = made('counter', 'process')
const gauge = made('gauge', 'process')
const histogram = made('histogram', 'process')

export const METRICS = {
  accepted: storedCounter('switchyard_messages_accepted_total', SOURCE, 'Messages accepted, without duplicates.'),
  duplicates: storedCounter(
    'switchyard_messages_duplicate_total',
    SOURCE,
    'Messages dropped as duplicates of messages that were already accepted.',
  ),
  suppressed: storedCounter('switchyard_messages_suppressed_total', SOURCE, 'Messages dropped because their user is suppressed.'),
  quarantined: storedGauge('switchyard_messages_quarantined', SOURCE, 'Messages in quarantine, because they violate a tracking plan.'),
  released: storedCounter('switchyard_messages_released_total', SOURCE, 'Messages released from quarantine.'),
  deleted: storedCounter('switchyard_messages_quarantine_deleted_total', SOURCE, 'Messages deleted from quarantine.'),
  rejected: storedCounter(
    'switchyard_messages_rejected_total',
    ['source', 'code'],
    'Messages rejected, by error code. The source is "unknown" if it could not be determined, for example because of an unknown write key.',
  ),
  warned: counter(
    'switchyard_message_warnings_total',
    ['source', 'code'],
    'Accepted messages with a value that was ignored or is probably wrong, by code: timestamp_invalid, sent_at_invalid, timestamp_in_future.',
  ),
  owed: storedCounter(
    'switchyard_deliveries_owed_total',
    DESTINATION,
    'Deliveries created: messages routed to the destination, and replays.',
  ),
  delivered: storedCounter('switchyard_deliveries_delivered_total', DESTINATION, 'Deliveries that succeeded.'),
  failed: storedCounter('switchyard_deliveries_failed_total', DESTINATION, 'Deliveries that failed permanently.'),
  expired: storedCounter('switchyard_deliveries_expired_total', DESTINATION, 'Deliveries that did not succeed within the retry window.'),
  cancelled: storedCounter(
    'switchyard_deliveries_cancelled_total',
    DESTINATION,
    'Deliveries that were cancelled before they succeeded or failed.',
  ),
  pending: storedGauge('switchyard_deliveries_pending', DESTINATION, 'Deliveries that are waiting for an attempt or in flight.'),
  oldestPending: storedGauge(
    'switchyard_oldest_pending_age_seconds',
    DESTINATION,
    'The time since the message of the oldest pending delivery was accepted; 0 if none is pending.',
  ),
  orderWaitingKeys: storedGauge(
    'switchyard_order_waiting_keys',
    DESTINATION,
    'Keys of ordered destinations that wait, because their first message failed and will be attempted again.',
  ),
  orderHeldKeys: storedGauge(
    'switchyard_order_held_keys',
    DESTINATION,
    'Keys of ordered destinations that are held, because a message failed or expired and onFailure is hold.',
  ),
  orderWaitingMessages: storedGauge(
    'switchyard_order_waiting_messages',
    DESTINATION,
    'Messages of ordered destinations that wait behind the first message of a waiting or held key.',
  ),
  ledger: storedGauge(
    'switchyard_ledger',
    ['state'],
    'Deliveries of all destinations, including deleted ones, by state. owed is the sum of the other states.',
  ),
  sourceInfo: gauge('switchyard_source_info', ['source', 'name'], 'Always 1: the name of each source.'),
  destinationInfo: gauge('switchyard_destination_info', ['destination', 'name'], 'Always 1: the name of each destination.'),
  retried: counter(
    'switchyard_deliveries_retried_total',
    DESTINATION,
    'Retries scheduled. A delivery counts once for each of its retries.',
  ),
  keyless: counter(
    'switchyard_order_keyless_messages_total',
    DESTINATION,
    'Messages that ordered destinations receive outside the order, because they have no key.',
  ),
  attemptSeconds: histogram(
    'switchyard_attempt_duration_seconds',
    ['destination', 'outcome'],
    'Duration of requests to webhooks. The outcome is success, temporary (a failure that is retried) or permanent (a failure that is not).',
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  ),
  deliverySeconds: histogram(
    'switchyard_delivery_latency_seconds',
    DESTINATION,
    'Time from accepting a message to delivering it, including retries, without replays.',
    [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 14_400],
  ),
  inFlight: gauge('switchyard_requests_in_flight', DESTINATION, 'Requests to webhooks that are waiting for a response.'),
  breaker: gauge(
    'switchyard_breaker_state',
    ['destination', 'state'],
    '1 for the current state of the circuit breaker (closed, open or probing), 0 for the other states.',
  ),
  ingestPaced: gauge(
    'switchyard_ingest_paced',
    [],
    '1 while requests to the tracking API are handled more slowly, because deliveries to a healthy destination fall behind.',
  ),
  requestsDelayed: counter(
    'switchyard_ingest_requests_delayed_total',
    [],
    'Requests to the tracking API that waited because deliveries to a healthy destination fell behind.',
  ),
  requestsRefused: counter(
    'switchyard_ingest_requests_refused_total',
    [],
    'Requests to the tracking API that were answered with 503 because they would have waited for too long, or because of SWITCHYARD_MAX_BACKLOG.',
  ),
  storeWritable: gauge(
    'switchyard_store_writable',
    [],
    '1 if the store accepts writes. While it is 0, requests to the tracking API are answered with 503.',
  ),
  storeReadable: gauge(
    'switchyard_store_readable',
    [],
    '1 if the store responded to this scrape in time. If it is 0, the metrics that are read from the store are missing.',
  ),
  commitSeconds: histogram(
    'switchyard_store_commit_duration_seconds',
    [],
    'Duration of transactions until they are durable.',
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
  ),
  groupSize: histogram(
    'switchyard_store_commit_commands',
    [],
    'Commands committed together in one transaction.',
    [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
  ),
  roundTrips: counter('switchyard_store_round_trips_total', [], 'Round trips to the PostgreSQL server; 0 with SQLite.'),
  eventLoopLag: histogram(
    'switchyard_event_loop_lag_seconds',
    [],
    'Delay of a timer on the main thread, measured ten times a second.',
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
  ),
  processes: gauge(
    'switchyard_processes',
    ['state'],
    'Processes of this service by state: answered (reported to this scrape) or missing (did not report in time, or is being restarted).',
  ),
  liveListeners: gauge('switchyard_live_listeners', [], 'Open GET /api/live streams.'),
  build: gauge('switchyard_build_info', ['version'], 'Always 1: the version of the service.'),
} as const

export type MetricKey = keyof typeof METRICS

/** How the values of several processes on one port become one, for the metrics of the process that are not added up. */
export const NOT_SUMMED: Readonly<Partial<Record<MetricKey, 'max' | 'min'>>> = {
  sourceInfo: 'max',
  destinationInfo: 'max',
  breaker: 'max',
  ingestPaced: 'max',
  build: 'max',
  storeWritable: 'min',
  storeReadable: 'min',
}

/** The metrics of prom-client that are served, by name. Some exist only on Linux. */
export const PROCESS_METRICS: Readonly<Record<string, { type: Metric['type']; help: string; linux?: true }>> = {
  process_cpu_user_seconds_total: { type: 'counter', help: 'CPU time in user mode.' },
  process_cpu_system_seconds_total: { type: 'counter', help: 'CPU time in kernel mode.' },
  process_cpu_seconds_total: { type: 'counter', help: 'Total CPU time.' },
  process_start_time_seconds: { type: 'gauge', help: 'Start time of the process, in seconds since 1970.' },
  process_resident_memory_bytes: { type: 'gauge', help: 'Resident memory.' },
  process_open_fds: { type: 'gauge', help: 'Open file descriptors, including sockets.', linux: true },
  process_max_fds: { type: 'gauge', help: 'Maximum number of open file descriptors.', linux: true },
  nodejs_eventloop_lag_seconds: { type: 'gauge', help: 'Current event loop lag.' },
  nodejs_heap_size_total_bytes: { type: 'gauge', help: 'Heap size of the main thread.' },
  nodejs_heap_size_used_bytes: { type: 'gauge', help: 'Used heap of the main thread.' },
  nodejs_external_memory_bytes: { type: 'gauge', help: 'Memory outside the heap, such as buffers.' },
  nodejs_gc_duration_seconds: { type: 'histogram', help: 'Duration of garbage collections, by kind.' },
  nodejs_version_info: { type: 'gauge', help: 'Always 1: the version of Node.js.' },
}
