// `switchyard messages` and `switchyard trace`: lists accepted messages, and shows the timeline of one.

import { type Command, EXIT } from '../line/command.ts'
import { type Column, LIMIT_FLAG, PERIOD_FLAGS, periodOf, showNewest, time } from '../line/listing.ts'
import { at, optionalId } from '../line/references.ts'
import { showTimeline } from './message-timeline.ts'

const TYPES = ['identify', 'track', 'page', 'screen', 'group', 'alias', 'delete', 'dead_letter']

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
    arguments: [{ name: 'MESSAGE_ID', sentence: "The sender's messageId, or the id in the output of `switchyard messages --json`." }],
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
    flags: {
      source: { placeholder: 'SOURCE', sentence: 'Only messages from this source, by id or name.' },
      type: { placeholder: 'TYPE', sentence: 'Only messages of this type.', values: TYPES },
      event: { placeholder: 'NAME', sentence: 'Only track messages with exactly this event name.' },
      'user-id': { placeholder: 'USER_ID', sentence: 'Only messages from the user with this userId.' },
      'message-id': { placeholder: 'MESSAGE_ID', sentence: 'Only messages with this messageId.' },
      ...PERIOD_FLAGS,
      ...LIMIT_FLAG,
    },
    examples: ['switchyard messages --user-id user-1 --from 2h'],
    async run(call) {
      const { flag } = call
      const sourceId = await optionalId(call.api, 'source', flag('source'))
      const query = {
        sourceId,
        type: flag('type'),
        event: flag('event'),
        userId: flag('user-id'),
        messageId: flag('message-id'),
        ...periodOf(call),
      }
      await showNewest(call, '/api/messages', query, COLUMNS, 'No messages match.')
      return EXIT.ok
    },
  },
]

/** A message that was replayed has several deliveries to one destination. */
function destinationsText(deliveries: readonly { destinationId: string }[], skips: readonly { reason: string }[]): string {
  if (deliveries.length > 0) return String(new Set(deliveries.map(({ destinationId }) => destinationId)).size)
  return `0 (${[...new Set(skips.map(({ reason }) => reason))].join(', ') || 'reason not stored'})`
}
