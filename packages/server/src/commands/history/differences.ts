// `switchyard differences`: what separates the failed messages of a destination from delivered ones of the same event.

import type { JsonObject } from '@switchyard/protocol'
import type { Command } from '../line/command.ts'
import { PERIOD_FLAGS, periodOf } from '../line/listing.ts'
import { idOf } from '../line/references.ts'

export const differences: Command = {
  name: 'differences',
  summary: 'Compare the failed messages of a destination with delivered ones of the same event, and show what separates them',
  arguments: [{ name: 'DESTINATION', description: 'The destination, by id or name.' }],
  flags: {
    event: { placeholder: 'EVENT', description: 'The event. Default: the most frequent one of the newest failed deliveries.' },
    reason: { placeholder: 'REASON', description: 'Only deliveries that failed with this reason, such as http_422.' },
    state: {
      placeholder: 'STATE',
      description: 'The state to compare with delivered.',
      defaultText: 'failed',
      values: ['failed', 'expired'],
    },
    ...PERIOD_FLAGS,
  },
  examples: ['switchyard differences CRM', "switchyard differences CRM --event 'Order Completed' --reason http_422"],
  async run(call) {
    const {
      api,
      arguments: [reference = ''],
      flag,
      json,
      out,
    } = call
    const destinationId = await idOf(api, 'destination', reference)
    const query = { destinationId, event: flag('event'), reason: flag('reason'), state: flag('state'), ...periodOf(call) }
    const answer = await api.get('/api/deliveries/differences', query)
    if (json) return out.json(answer)
    const { type, event, examined, complete, data } = answer
    const { failed, delivered } = examined as JsonObject
    if (type === null) return out.line('No failed deliveries match, so there is nothing to compare.')
    out.line(
      `${String(type)}${event === null ? '' : ` ${String(event)}`}: the newest ${String(failed)} failed and ${String(delivered)} delivered messages`,
    )
    if (complete === 'too_few') return out.line('Too few messages to compare: at least 3 of each are needed.')
    if (complete === 'out_of_time') out.remark('Reading the messages took too long, so fewer were compared.')
    if ((data as unknown[]).length === 0) return out.line('Nothing in the messages separates the two.')
    for (const { sentence } of data as JsonObject[]) out.line(`  ${String(sentence)}`)
  },
}
