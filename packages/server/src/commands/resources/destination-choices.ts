// `switchyard destinations choices`: the values that a field of an integration can have, as its tool answers.

import type { JsonObject } from '@switchyard/protocol'
import { type Command, EXIT } from '../line/command.ts'
import { readJsonObject } from '../line/input.ts'
import { type Column, showEntries } from '../line/listing.ts'
import { DESTINATION_ARGUMENT, destinationPath } from './destination-flags.ts'

const COLUMNS: readonly Column[] = [
  ['value', ({ value }) => value],
  ['label', ({ label }) => label],
  ['description', ({ description }) => description],
]

export const CHOICES_COMMANDS: readonly Command[] = [
  {
    name: 'destinations choices',
    summary: 'List the values that a field of an integration can have (exit code 1 if the tool gives none)',
    details:
      'Asks the tool with the settings of the destination. It works for the fields that `switchyard catalog show` marks as dynamic. Some choices depend on other fields: they are taken from the subscription of the destination that has the action, unless --mapping is given.',
    arguments: [
      DESTINATION_ARGUMENT,
      { name: 'ACTION', description: 'The slug of the action.' },
      { name: 'FIELD', description: 'The field, such as list_id, object_details.object_type or associations[0].object_type.' },
    ],
    flags: {
      mapping: { placeholder: 'JSON', description: 'The mapping so far: JSON, - for stdin, or @FILE.' },
      page: { placeholder: 'PAGE', description: 'The page to show, as printed by the previous call.' },
    },
    examples: ['switchyard destinations choices klaviyo upsertProfile list_id'],
    async run(call) {
      const [, action = '', field = ''] = call.arguments
      const path = await destinationPath(call)
      const [given, page] = [call.flag('mapping'), call.flag('page')]
      const { subscriptions = [] } = (await call.api.get(path)) as { subscriptions?: JsonObject[] }
      const { mapping: saved = {}, syncMode } = subscriptions.find((each) => each['action'] === action) ?? {}
      const mapping = given === undefined ? saved : await readJsonObject('--mapping', given)
      const body = { action, field, mapping, ...(typeof syncMode === 'string' && { syncMode }), ...(page !== undefined && { page }) }
      const answer = await call.api.post(`${path}/choices`, body)
      const { choices, nextPage, error } = answer as { choices: JsonObject[]; nextPage: string | null; error: { message: string } | null }
      if (call.json) call.out.json(answer)
      else if (error !== null) call.out.line(call.out.paint('red', `Failed: ${error.message}`))
      else showEntries(call, choices, COLUMNS, 'The tool has no values for this field.')
      if (!call.json && nextPage !== null) call.out.remark(`There are more: add --page ${JSON.stringify(nextPage)}.`)
      return error === null ? EXIT.ok : EXIT.failed
    },
  },
]
