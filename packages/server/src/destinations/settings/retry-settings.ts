// The retry policy of a destination: the `retry` object of requests and responses, and `retryWindowMs`, the older name of `retry.windowMs`.

import { array, type Infer, integer, invalidField, nullable, number, object, optional, patchOf, withDefault } from '../../api/schema.ts'
import { CLASSIC, type Destination } from '../../model/configuration.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const RETRY_WINDOW_MS = 4 * HOUR_MS

const STATUSES = { max: 100, identity: String }
/** A 2xx answer is always a success, and a 1xx answer is never the last one. */
const STATUS = integer({ min: 300, max: 599 })

const FIELDS = {
  windowMs: integer({ min: 1_000, max: 14 * DAY_MS, description: 'How long a delivery is retried, from its first attempt.' }),
  initialMs: integer({
    min: 100,
    max: HOUR_MS,
    description: 'The longest wait after the first attempt. The shortest is half of it, as for every wait.',
  }),
  maxMs: integer({
    min: 100,
    max: DAY_MS,
    description:
      'The longest wait between two attempts. If you raise only the wait after the first attempt above it, it is raised as well.',
  }),
  factor: number({ min: 1, max: 10, description: 'Each wait is this many times as long as the one before.' }),
  retryStatuses: array(STATUS, { ...STATUSES, description: 'HTTP statuses that are retried in addition to the usual ones.' }),
  failStatuses: array(STATUS, { ...STATUSES, description: 'HTTP statuses that are not retried, although they are by default.' }),
}
const DEFAULTS = {
  windowMs: RETRY_WINDOW_MS,
  ...CLASSIC.retry,
  retryStatuses: [...CLASSIC.retry.retryStatuses],
  failStatuses: [...CLASSIC.retry.failStatuses],
}

/** Every field is optional, in order to tell whether it was sent: an update keeps the others. */
const RETRY = object(
  {
    windowMs: optional(withDefault(FIELDS.windowMs, DEFAULTS.windowMs)),
    initialMs: optional(withDefault(FIELDS.initialMs, DEFAULTS.initialMs)),
    maxMs: optional(withDefault(FIELDS.maxMs, DEFAULTS.maxMs)),
    factor: optional(withDefault(FIELDS.factor, DEFAULTS.factor)),
    retryStatuses: optional(withDefault(FIELDS.retryStatuses, DEFAULTS.retryStatuses)),
    failStatuses: optional(withDefault(FIELDS.failStatuses, DEFAULTS.failStatuses)),
  },
  {
    description:
      'The retry policy: when a delivery is attempted again after a failed attempt. An update changes only the fields that it contains.',
  },
)

export const RETRY_SETTINGS = {
  retry: {
    create: optional(withDefault(RETRY, DEFAULTS)),
    /** Null restores the default policy. */
    patch: nullable(object(patchOf(FIELDS))),
    view: object(FIELDS, { description: 'The retry policy: when a delivery is attempted again after a failed attempt.' }),
  },
  retryWindowMs: {
    create: optional(integer({ min: 1_000, max: 14 * DAY_MS, description: 'Another name of `retry.windowMs`. Send only one of them.' })),
    view: integer({ description: 'The same as `retry.windowMs`.' }),
  },
}

interface Given {
  retry?: Infer<typeof RETRY> | null | undefined
  retryWindowMs?: number | undefined
}

type Stored = Pick<Destination, 'retry' | 'retryWindowMs'>

const DEFAULT: Stored = { retry: CLASSIC.retry, retryWindowMs: RETRY_WINDOW_MS }

/** Returns the policy with the fields that were sent, and the others as before. Throws an ApiError if they contradict each other. */
export function retryOf(given: Given, stored: Stored = DEFAULT): Stored {
  const { retryWindowMs } = given
  const { windowMs, ...sent } = given.retry ?? {}
  const before = given.retry === null ? DEFAULT : stored
  if (windowMs !== undefined && retryWindowMs !== undefined && windowMs !== retryWindowMs)
    throw invalidField('retryWindowMs', 'is another name of retry.windowMs and must have the same value; send only one of them')
  const retry = { ...before.retry, ...sent }
  if (sent.maxMs === undefined) retry.maxMs = Math.max(retry.maxMs, retry.initialMs)
  else if (retry.maxMs < retry.initialMs) throw invalidField('retry.maxMs', `must be at least retry.initialMs, which is ${retry.initialMs}`)
  const both = retry.failStatuses.find((status) => retry.retryStatuses.includes(status))
  if (both !== undefined)
    throw invalidField('retry.failStatuses', `must not contain ${both}, which is in retry.retryStatuses; remove it from one of them`)
  return { retry, retryWindowMs: windowMs ?? retryWindowMs ?? before.retryWindowMs }
}
