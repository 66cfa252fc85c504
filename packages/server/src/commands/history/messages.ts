// `switchyard messages` and `switchyard trace`: lists accepted messages, and shows the timeline of one.

import { MESSAGE_FILTERS } from '../../api/list-filters.ts'
import type { Command } from '../line/command.ts'
import { filterFlags, filtersFrom } from '../line/fields.ts'
import { type Column, showResult, time } from '../line/listing.ts'
import { at } from '../line/references.ts'
import { newestCommand } from '../line/resource-commands.ts'
import { showTimeline } from './message-timeline.ts'

const COLUMNS: readonly Column[] = [
  ['message id', ({ messageId, id }) => messageId ?? id],
  ['received', ({ receivedAt }) => time(receivedAt)],
  ['type', ({ type }) => type],
  ['event', ({ event }) => event],
  ['user', ({ userId, anonymousId }) => userId ?? anonymousId],
  ['destinations', ({ deliveries, skips }) => destinationsText(deliveries as { destinationId: string }[], skips as { reason: string }[])],
]

export const MESSAGE_COMMANDS: readonly Command[] = [
  {
    name: 'trace',
    summary: 'Show the timeline of a message: received, routed, every attempt, outcome',
    details:
      'Shows when the message was received and from which source, whether it was received again, which destinations it goes to, which destinations are skipped and why, every attempt, and the outcome. ' +
      'The exit code is 4 if there is no such message, or if it is older than the retention period.',
    arguments: [{ name: 'MESSAGE_ID', description: "The sender's messageId, or the id in the output of `switchyard messages --json`." }],
    examples: ['switchyard trace 7f3c0a52-order-1'],
    async run(call) {
      const message = await call.api.get(at`/api/messages/${call.arguments[0] as string}`)
      showResult(call, message, () => showTimeline(call.out, message))
    },
  },
  newestCommand({
    name: 'messages list',
    summary: 'List accepted messages, newest first',
    flags: filterFlags(MESSAGE_FILTERS),
    examples: ['switchyard messages --user-id user-1 --from 2h'],
    path: '/api/messages',
    query: (call) => filtersFrom(call, MESSAGE_FILTERS),
    columns: COLUMNS,
    none: 'No messages match.',
  }),
]

/** A message that was replayed has several deliveries to one destination. */
function destinationsText(deliveries: readonly { destinationId: string }[], skips: readonly { reason: string }[]): string {
  if (deliveries.length > 0) return String(new Set(deliveries.map(({ destinationId }) => destinationId)).size)
  return `0 (${[...new Set(skips.map(({ reason }) => reason))].join(', ') || 'reason not stored'})`
}
