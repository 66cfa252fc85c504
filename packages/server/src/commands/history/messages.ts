// `switchyard messages` and `switchyard trace`: lists accepted messages, and shows the timeline of one.

import { MESSAGE_FILTERS } from '../../api/list-filters.ts'
import { type Command, EXIT } from '../line/command.ts'
import { filterFlags, filtersFrom } from '../line/fields.ts'
import { type Column, LIMIT_FLAG, showNewest, time } from '../line/listing.ts'
import { at } from '../line/references.ts'
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
    async run({ api, arguments: [id = ''], json, out }) {
      const message = await api.get(at`/api/messages/${id}`)
      if (json) out.json(message)
      else showTimeline(out, message)
      return EXIT.ok
    },
  },
  {
    name: 'messages list',
    summary: 'List accepted messages, newest first',
    flags: { ...filterFlags(MESSAGE_FILTERS), ...LIMIT_FLAG },
    examples: ['switchyard messages --user-id user-1 --from 2h'],
    async run(call) {
      await showNewest(call, '/api/messages', await filtersFrom(call, MESSAGE_FILTERS), COLUMNS, 'No messages match.')
      return EXIT.ok
    },
  },
]

/** A message that was replayed has several deliveries to one destination. */
function destinationsText(deliveries: readonly { destinationId: string }[], skips: readonly { reason: string }[]): string {
  if (deliveries.length > 0) return String(new Set(deliveries.map(({ destinationId }) => destinationId)).size)
  return `0 (${[...new Set(skips.map(({ reason }) => reason))].join(', ') || 'reason not stored'})`
}
