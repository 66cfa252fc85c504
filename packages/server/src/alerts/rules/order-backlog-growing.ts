// Order Backlog Growing: at an ordered destination, more messages of one key wait than its setting `maxWaiting` allows. With `skip`, the messages that
// the others wait for end as failed, so that the key goes on; with `hold`, it goes on collecting. Either way, somebody should know.

import { many, rule } from './rule.ts'

export interface OrderBacklog {
  nowMs: number
  isActive: boolean
  /** Null if the destination is not ordered. */
  ordered: {
    /** How many keys have more waiting messages than the limit. */
    keys: number
    maxWaiting: number
    /** How many deliveries ended as `order_backlog` in the last minute. */
    skipped: number
  } | null
}

export const orderBacklogGrowing = rule({
  id: 'order_backlog_growing',
  event: 'Order Backlog Growing',
  subject: 'destination',
  severity: () => 'warning',
  measure: { name: 'keys', label: 'keys above the limit' },
  sentences: [
    'Open when more messages of one key wait at an ordered destination than its setting maxWaiting allows.',
    'Close when no key is above the limit.',
  ],
  description: 'At an ordered destination, too many messages wait for one with the same key that fails again and again.',
  settings: {},
  judge({ nowMs, isActive, ordered }: OrderBacklog) {
    const { keys = 0, skipped = 0, maxWaiting = 0 } = ordered ?? {}
    const details = { keys, skipped, maxWaiting }
    if (keys === 0 && skipped === 0) return { verdict: 'close', sinceMs: nowMs, details }
    // While nothing is sent, messages wait for another reason.
    return { verdict: isActive ? 'open' : 'keep', sinceMs: nowMs, details }
  },
  // Without the keys: they may be ids of users.
  opened: (name, { keys, skipped, maxWaiting }) =>
    `Too many messages wait in order at the destination "${name}": ${many(keys, 'key has', 'keys have')} more than ${Number(maxWaiting).toLocaleString('en-US')} waiting messages` +
    `${Number(skipped) > 0 ? `, and ${many(skipped, 'message was', 'messages were')} given up (order_backlog) so that ${Number(skipped) === 1 ? 'its key goes' : 'their keys go'} on` : ''}. ` +
    'Look at the keys that wait on the page of the destination, and retry or skip the messages that they wait for.',
  closed: (name) => `No key of the destination "${name}" has too many waiting messages any more.`,
  link: (id) => `/destinations/${id}`,
})
