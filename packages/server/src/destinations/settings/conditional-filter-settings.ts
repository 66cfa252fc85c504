// The setting `conditionalFilters`: which messages that match an expression are excluded, or lose properties.

import {
  array,
  boolean,
  invalidField,
  nullable,
  number,
  object,
  oneOf,
  record,
  type Schema,
  string,
  withDefault,
} from '../../api/schema.ts'
import { CONDITIONAL_ACTIONS, type ConditionalFilter } from '../../model/configuration.ts'
import { MAX_EXPRESSION, subscribeProblem } from '../subscribe/parse-subscribe.ts'

const MAX_FILTERS = 100
const MAX_PATH = 200
/** The service needs these itself, to tell what a message is and when it was sent. */
const NEEDED = new Set(['type', 'messageId', 'version', 'timestamp', 'originalTimestamp', 'sentAt', 'receivedAt'])

const FIELDS = object(
  {
    name: withDefault(nullable(string({ min: 1, max: 200, description: 'What the filter is for.' })), null),
    enabled: withDefault(boolean(), true),
    when: withDefault(
      nullable(
        string({
          min: 1,
          max: MAX_EXPRESSION,
          description: 'The expression that a message must match, like `subscribe`. Null for every message.',
          check: subscribeProblem,
        }),
      ),
      null,
    ),
    action: oneOf(CONDITIONAL_ACTIONS, {
      description:
        'What happens to a message that matches: `drop` does not send it, `sample` sends only a share of such messages, `drop_properties` removes the keys in `fields`, and `allow_properties` removes all other keys of the objects in `fields`.',
    }),
    share: withDefault(
      nullable(number({ min: 0, max: 1, description: 'For `sample`: the share of the matching messages that is sent, from 0 to 1.' })),
      null,
    ),
    path: withDefault(
      nullable(
        string({
          min: 1,
          max: MAX_PATH,
          description:
            'For `sample`: the path of a value in the message, such as `userId`. Messages with the same value are sampled in the same way. Null, and for messages without the value: each message by its messageId.',
          check: pathProblem,
        }),
      ),
      null,
    ),
    fields: withDefault(
      nullable(
        record(array(string({ min: 1, max: MAX_PATH }), { min: 1, max: 1_000, identity: (key) => key }), {
          max: 100,
          name: (path) => (path === '' ? null : pathProblem(path)),
          description:
            'For `drop_properties` and `allow_properties`: keys, by the path of the object that has them, such as `properties` or `context.traits`. A list in the path stands for all its elements. The empty path is the message itself, only for `drop_properties`.',
        }),
      ),
      null,
    ),
  },
  { title: 'ConditionalFilter' },
)

const FILTER: Schema<ConditionalFilter> = {
  ...FIELDS,
  parse(value, path) {
    const filter = FIELDS.parse(value, path)
    const problem = filterProblem(filter)
    if (problem !== null) throw invalidField(`${path}.${problem[0]}`, problem[1])
    return filter
  },
}

export const CONDITIONAL_FILTERS = array(FILTER, {
  max: MAX_FILTERS,
  description:
    'Filters for messages that match an expression: they exclude the message, exclude a share of such messages, or remove properties before the message is sent. An update replaces the whole list.',
})

function pathProblem(path: string): string | null {
  return path.split('.').some((key) => key === '') ? 'must be keys with dots between them, such as context.traits' : null
}

function filterProblem({ action, share, path, fields }: ConditionalFilter): [field: string, problem: string] | null {
  const isSample = action === 'sample'
  const hasFields = action === 'drop_properties' || action === 'allow_properties'
  if (isSample !== (share !== null))
    return ['share', isSample ? 'is required for the action sample' : `is not possible with the action ${action}`]
  if (path !== null && !isSample) return ['path', `is not possible with the action ${action}`]
  if (hasFields !== (fields !== null))
    return ['fields', hasFields ? `is required for the action ${action}` : `is not possible with the action ${action}`]
  if (fields === null) return null
  if (Object.keys(fields).length === 0) return ['fields', 'must have at least one path']
  const top = Object.hasOwn(fields, '') ? fields[''] : undefined
  if (top === undefined) return null
  if (action === 'allow_properties') return ['fields', 'must not have the empty path: a message needs fields that are not in the list']
  const needed = top.find((key) => NEEDED.has(key))
  return needed === undefined ? null : ['fields', `must not remove ${needed}, which every message needs`]
}
