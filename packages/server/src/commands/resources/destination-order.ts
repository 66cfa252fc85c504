// `switchyard destinations order`, `order skip` and `order retry`: the keys of an ordered destination that wait or are held.

import type { JsonObject } from '@switchyard/protocol'
import type { Call, Command } from '../line/command.ts'
import { type Column, cell, showResult, time } from '../line/listing.ts'
import { newestCommand } from '../line/resource-commands.ts'
import { DESTINATION_ARGUMENT, destinationPath } from './destination-flags.ts'

/** A key may have 1 KB. */
const SHOWN_LENGTH = 60

const headOf = (row: JsonObject): JsonObject => row['head'] as JsonObject

const KEY_COLUMNS: readonly Column[] = [
  ['key', ({ key }) => (key === null ? '(deleted)' : shortened(cell(key)))],
  ['state', ({ state, skipping }) => `${cell(state)}${skipping === true ? ' (skipped)' : ''}`],
  ['since', ({ since }) => time(since)],
  ['waiting', ({ waiting }) => waiting],
  ['waits for', (row) => headOf(row)['messageId']],
  ['attempts', (row) => headOf(row)['attempts']],
  ['reason', (row) => headOf(row)['reason']],
  ['next attempt', (row) => time(headOf(row)['nextAttemptAt'])],
]

const KEY_ARGUMENT = { name: 'KEY', description: 'The key as text, such as a user id.' }
const MESSAGE_FLAG = {
  'message-id': { placeholder: 'ID', description: 'Only if this is still the message that the others wait for.' },
}

const orderPath = async (call: Call): Promise<string> => `${await destinationPath(call)}/order`

const LIST = newestCommand({
  name: 'destinations order',
  summary: 'List the keys of an ordered destination that wait or are held, oldest first',
  arguments: [DESTINATION_ARGUMENT],
  path: orderPath,
  columns: KEY_COLUMNS,
  none: 'No key waits or is held.',
})

export const ORDER_COMMANDS: readonly Command[] = [
  {
    ...LIST,
    async run(call) {
      await LIST.run(call)
      if (call.json) return
      const { waitingKeys, waitingMessages, heldKeys, keylessMessages } = await call.api.get(await orderPath(call), { limit: 1 })
      call.out.remark(`Waiting keys: ${cell(waitingKeys)}. Held keys: ${cell(heldKeys)}. Messages behind them: ${cell(waitingMessages)}.`)
      call.out.remark(`Messages without a key in the last 24 hours: ${cell(keylessMessages)}.`)
    },
  },
  {
    name: 'order skip',
    summary: 'Skip the message that a key waits for, or release a held key, so that the next message is sent',
    arguments: [DESTINATION_ARGUMENT, KEY_ARGUMENT],
    flags: MESSAGE_FLAG,
    examples: ['switchyard order skip crm user-1'],
    async run(call) {
      const answer = await act(call, 'skip')
      const what = answer['state'] === 'held' ? 'The key is released' : 'The message is skipped'
      showResult(
        call,
        answer,
        answer['done'] === true ? `${what}.` : 'The message is being attempted, and is skipped when the attempt is over.',
      )
    },
  },
  {
    name: 'order retry',
    summary: 'Attempt the message that a key waits for at once; for a held key, attempt the failed message again',
    arguments: [DESTINATION_ARGUMENT, KEY_ARGUMENT],
    flags: MESSAGE_FLAG,
    examples: ['switchyard order retry crm user-1'],
    async run(call) {
      const answer = await act(call, 'retry')
      showResult(call, answer, answer['done'] === true ? 'The next attempt is due now.' : 'The message is being attempted at the moment.')
    },
  },
]

async function act(call: Call, action: 'skip' | 'retry'): Promise<JsonObject> {
  const messageId = call.flag('message-id')
  const body = { key: call.arguments[1] as string, ...(messageId === undefined ? {} : { messageId }) }
  return await call.api.post(`${await destinationPath(call)}/order/${action}`, body)
}

function shortened(text: string): string {
  return text.length > SHOWN_LENGTH ? `${text.slice(0, SHOWN_LENGTH)}…` : text
}
