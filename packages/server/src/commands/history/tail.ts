// `switchyard tail`: prints accepted messages, rejections and attempts as they happen, one per line.

import type { JsonObject } from '@switchyard/protocol'
import { counted } from '../../api/counted.ts'
import type { Command } from '../line/command.ts'
import { cell } from '../line/listing.ts'
import type { Output } from '../line/output.ts'
import { namesOf, optionalId } from '../line/references.ts'
import { formatDuration, parseCount } from '../line/times.ts'

const TYPES = ['identify', 'track', 'page', 'screen', 'group', 'alias', 'delete', 'dead_letter']

export const tail: Command = {
  name: 'tail',
  summary: 'Show accepted messages, rejections and delivery attempts as they happen',
  details: 'Runs until Ctrl-C, and reconnects when the service restarts. With --json, each line is one JSON value.',
  flags: {
    source: { placeholder: 'SOURCE', description: 'Only messages of this source, and their attempts and rejections, by id or name.' },
    destination: { placeholder: 'DESTINATION', description: 'Only attempts to this destination, by id or name.' },
    type: { placeholder: 'TYPE', description: 'Only messages of this type and their attempts.', values: TYPES },
    'message-id': { placeholder: 'MESSAGE_ID', description: 'Only the message with this messageId and its attempts.' },
    count: { placeholder: 'NUMBER', description: 'Exit after this number of lines.', defaultText: 'no limit' },
  },
  examples: ['switchyard tail', "switchyard tail --destination 'my webhook' --type track", 'switchyard tail --json | jq .messageId'],
  async run({ api, flag, json, out, signal }) {
    const count = flag('count')
    const limit = count === undefined ? Number.POSITIVE_INFINITY : parseCount('count', count)
    const query = {
      sourceId: await optionalId(api, 'source', flag('source')),
      destinationId: await optionalId(api, 'destination', flag('destination')),
      type: flag('type'),
      messageId: flag('message-id'),
    }
    const names = json ? new Map<unknown, string>() : await namesOf(api, 'destination')
    if (out.isTerminal && !json) out.remark(`Watching ${api.url}. Press Ctrl-C to stop.`)
    let shown = 0
    for await (const { event, data } of api.events('/api/live', query, signal)) {
      // One line per event, also on a terminal.
      if (json) out.line(JSON.stringify({ what: event, ...data }))
      else out.line(lineOf(out, event, data, names))
      shown += 1
      if (shown >= limit) break
    }
  },
}

export function lineOf(out: Output, event: string, data: JsonObject, names: ReadonlyMap<unknown, string> = new Map()): string {
  const { at, messageId, type, userId, anonymousId, sourceId, destinationId, code, sample } = data
  const clock = out.paint('dim', typeof at === 'string' ? at.slice(11, 23) : ' '.repeat(12))
  const what = [type, data['event']]
    .filter((part) => part != null)
    .map(cell)
    .join(' ')
  switch (event) {
    case 'accepted': {
      const word = data['duplicate'] === true ? out.paint('yellow', 'duplicate') : out.paint('cyan', 'accepted ')
      return `${clock}  ${word}  ${cell(messageId)}  ${what}  ${cell(userId ?? anonymousId)}  from ${cell(sourceId)}`
    }
    case 'rejected':
      return `${clock}  ${out.paint('red', 'rejected ')}  ${cell(code)}  from ${cell(sourceId)}  ${cell(sample)}`
    case 'attempt': {
      const { attempt, success, verdict, status, reason, totalMs, url, messages, replay } = data
      const isDelivered = success === true
      const word = isDelivered ? out.paint('green', 'delivered') : out.paint('red', 'failed   ')
      const result = isDelivered ? cell(status) : cell(reason)
      const remarks = [
        attempt === 1 ? '' : `, attempt ${cell(attempt)}`,
        replay === true ? ', replay' : '',
        verdict === 'temporary' ? ', will be retried' : '',
      ].join('')
      const several = typeof messages === 'number' && messages > 1 ? ` and ${messages - 1} more` : ''
      return `${clock}  ${word}  ${cell(messageId)}${several}  to ${names.get(destinationId) ?? cell(destinationId)} ${cell(url)}: ${result} after ${formatDuration(Number(totalMs))}${remarks}`
    }
    case 'dropped':
      return `${clock}  ${out.paint('yellow', 'dropped  ')}  ${counted(Number(data['count']), 'event')} skipped because they arrived too fast to show`
    default:
      return `${clock}  ${event}  ${JSON.stringify(data)}`
  }
}
