// The filters of lists, as tables: the control API makes the query parameters of a list from them, and the command line its flags.

import { MESSAGE_TYPES } from '@switchyard/protocol'
import { queryTime } from './query-values.ts'
import { oneOf, optional, string } from './schema.ts'

/** For resources that can be found by their texts. */
export const SEARCH_FILTERS = {
  search: optional(
    string({ min: 1, description: 'Only entries with this text in their id, their name or another text, in upper or lower case.' }),
  ),
}

export const DELIVERY_STATES = ['pending', 'delivered', 'failed', 'expired', 'cancelled'] as const

export const DELIVERY_FILTERS = {
  destinationId: optional(string({ min: 1, description: 'Only deliveries to this destination.' })),
  state: optional(oneOf(DELIVERY_STATES, { description: 'Only deliveries in this state.' })),
  reason: optional(string({ min: 1, description: 'Only deliveries that ended with this reason: a code such as `timeout` or `http_500`.' })),
  userId: optional(string({ min: 1, description: 'Only deliveries of messages of this user, by userId, anonymousId or previousId.' })),
  event: optional(string({ min: 1, description: 'Only deliveries of messages with this event name.' })),
  from: optional(queryTime({ description: 'Only deliveries that reached their state at this time or later.' })),
  to: optional(queryTime({ description: 'Only deliveries that reached their state at this time or earlier.' })),
}

export const MESSAGE_FILTERS = {
  sourceId: optional(string({ min: 1, description: 'Only messages from this source.' })),
  type: optional(oneOf([...MESSAGE_TYPES, 'delete', 'dead_letter'], { description: 'Only messages of this type.' })),
  event: optional(string({ min: 1, description: 'Only track messages with exactly this event name.' })),
  userId: optional(string({ min: 1, description: 'Only messages of this user.' })),
  messageId: optional(string({ min: 1, description: 'Only messages with this messageId.' })),
  search: optional(
    string({
      min: 1,
      max: 200,
      description:
        'Only messages with this text in their messageId, userId, anonymousId, previousId, groupId, event or name, or in the email, name or username of the user, in upper or lower case.',
    }),
  ),
  property: optional(
    string({
      min: 1,
      max: 500,
      description:
        'Only messages with this property: a path such as `properties.plan`, or `properties.plan=pro`, which finds texts that contain `pro`, in upper or lower case, and other values that are equal. Without `properties.` or `traits.`, both are searched.',
    }),
  ),
  from: optional(queryTime({ description: 'Only messages received at this time or later.' })),
  to: optional(queryTime({ description: 'Only messages received at this time or earlier.' })),
}

export const DELETION_STATES = ['pending', 'running', 'finished', 'failed'] as const

/** For deletion requests and for the targets of one. */
export const DELETION_FILTERS = {
  state: optional(oneOf(DELETION_STATES, { description: 'Only entries in this state.' })),
  userId: optional(string({ min: 1, description: 'Only entries of this user. Also finds entries that show the user by pseudonym.' })),
}

export const SUPPRESSION_FILTERS = {
  userId: optional(string({ min: 1, description: 'Only suppressions of this user.' })),
  sourceId: optional(string({ min: 1, description: 'Only suppressions for this source.' })),
}
