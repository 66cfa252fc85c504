// `switchyard messages` and `switchyard trace`: what was accepted, and what became of one.

import { type Command, EXIT } from '../line/command.ts'
import { type Column, LIMIT_FLAG, PERIOD_FLAGS, periodOf, showNewest, time } from '../line/listing.ts'
import { at, optionalId } from '../line/references.ts'
import { showTimeline } from './message-timeline.ts'

const TYPES = ['identify', 'track', 'page', 'screen', 'group', 'alias', 'delete']

const COLUMNS: readonly Column[] = [
  ['message id', ({ messageId, id }) => messageId ?? id],
  ['received', ({ receivedAt }) => time(receivedAt)],
  ['type', ({ type }) => type],
  ['event', ({ event }) => event],
  ['user', ({ userId, anonymousId }) => userId ?? anonymousId],
  ['goes to', ({ deliveries, skips }) => goal(deliveries as unknown[], skips as { reason: string }[])],
]

export const MESSAGE_COMMANDS: readonly Command[] = [
  {
    name: 'trace',
    summary: 'Where is my event? The whole story of one message',
    details:
      'When it was received and from which source, whether it came again, where it goes and where not and why, every attempt, and the outcome. ' +
      'Exit code 4: there is no such message, or it is older than the retention time.',
    arguments: [{ name: 'MESSAGE_ID', sentence: "The sender's messageId, or the id that `switchyard messages --json` shows." }],
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
    summary: 'Messages that were accepted, newest first',
    flags: {
      source: { placeholder: 'SOURCE', sentence: 'Only of this source, by id or name.' },
      type: { placeholder: 'TYPE', sentence: 'Only of this type.', values: TYPES },
      'user-id': { placeholder: 'USER_ID', sentence: 'Only of this user.' },
      'message-id': { placeholder: 'MESSAGE_ID', sentence: 'Only with this messageId.' },
      ...PERIOD_FLAGS,
      ...LIMIT_FLAG,
    },
    examples: ['switchyard messages --user-id user-1 --from 2h'],
    async run(call) {
      const { flag } = call
      const sourceId = await optionalId(call.api, 'source', flag('source'))
      const query = { sourceId, type: flag('type'), userId: flag('user-id'), messageId: flag('message-id'), ...periodOf(call) }
      await showNewest(call, '/api/messages', query, COLUMNS, 'There is no such message.')
      return EXIT.ok
    },
  },
]

function goal(deliveries: readonly unknown[], skips: readonly { reason: string }[]): string {
  if (deliveries.length > 0) return `${deliveries.length} ${deliveries.length === 1 ? 'destination' : 'destinations'}`
  return `nowhere: ${[...new Set(skips.map(({ reason }) => reason))].join(', ') || 'no reason kept'}`
}
