// The setting `order` of a destination: whether messages of the same key are delivered in the order in which they were accepted.

import { integer, nullable, object, oneOf, string, withDefault } from '../../api/schema.ts'

/** The fields of a message at which a path may begin. */
const MESSAGE_FIELDS: ReadonlySet<string> = new Set([
  'type',
  'event',
  'name',
  'category',
  'userId',
  'anonymousId',
  'previousId',
  'groupId',
  'messageId',
  'timestamp',
  'originalTimestamp',
  'sentAt',
  'context',
  'properties',
  'traits',
  'integrations',
])

const MAX_PATH_LENGTH = 500

const ORDER = object(
  {
    by: withDefault(
      string({
        min: 1,
        max: MAX_PATH_LENGTH,
        description:
          'What messages are ordered by: `user` for the userId, or the anonymousId if there is none; `source` for all messages of a source; or the path of a field, such as `context.groupId`.',
        check: byProblem,
      }),
      'user',
    ),
    onFailure: withDefault(
      oneOf(['skip', 'hold'], {
        description:
          'What happens to the later messages of a key when one fails or expires: `skip` continues with the next, `hold` holds the key until an operator acts.',
      }),
      'skip',
    ),
    maxWaiting: withDefault(
      integer({
        min: 100,
        max: 1_000_000,
        description:
          'The maximum number of waiting messages of one key. Above it, `skip` ends the message that the others wait for as failed; `hold` goes on collecting.',
      }),
      10_000,
    ),
  },
  {
    description:
      'Delivers the messages of one key, such as a user, in the order in which they were accepted. An update replaces the whole object; null turns it off.',
  },
)

export const ORDER_SETTING = withDefault(nullable(ORDER), null)

function byProblem(by: string): string | null {
  if (by === 'user' || by === 'source') return null
  const [first = '', ...rest] = by.split('.')
  if (!MESSAGE_FIELDS.has(first))
    return 'must be user, source or the path of a field of a message, such as context.groupId or properties.orderId'
  return rest.includes('') ? 'has an empty key. Remove the extra dot' : null
}
