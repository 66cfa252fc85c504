// `switchyard quarantine`: lists the messages that a tracking plan holds back, releases them, deletes them.

import type { JsonObject, Violation } from '@switchyard/protocol'
import { counted } from '../../api/counted.ts'
import { violationText } from '../../api/violation-text.ts'
import { type Argument, type Call, type Command, EXIT, type ExitCode, type Flag, UsageProblem } from '../line/command.ts'
import { confirm, YES_FLAG } from '../line/confirm.ts'
import { readIds } from '../line/input.ts'
import { type Column, time } from '../line/listing.ts'
import { idOf, optionalId } from '../line/references.ts'
import { newestCommand } from '../line/resource-commands.ts'

const COLUMNS: readonly Column[] = [
  ['id', ({ id }) => id],
  ['message id', ({ messageId }) => messageId],
  ['rule', ({ rule }) => rule],
  ['violation', ({ violations }) => firstViolation(violations as JsonObject[])],
  ['source', ({ sourceId }) => sourceId],
  ['received', ({ receivedAt }) => time(receivedAt)],
]
const IDS_PER_CALL = 1_000

const MESSAGE_ID: Argument = {
  name: 'MESSAGE_ID',
  description: 'The id or messageId of a message, as listed by `switchyard quarantine`. Use - for stdin or @FILE to read several.',
  many: true,
  optional: true,
}
const RULE_FLAG: Flag = { placeholder: 'RULE', description: "Only messages that violate this rule, such as 'track Order Completed'." }

export const QUARANTINE_COMMANDS: readonly Command[] = [
  newestCommand({
    name: 'quarantine list',
    summary: 'List messages that violate a tracking plan and are not sent until they are released',
    flags: {
      source: { placeholder: 'SOURCE', description: 'Only messages of this source, by id or name.' },
      plan: { placeholder: 'PLAN_ID', description: 'Only messages that violate this plan.' },
      rule: RULE_FLAG,
    },
    examples: ['switchyard quarantine', "switchyard quarantine list --source website --rule 'track Order Completed'"],
    path: '/api/quarantine',
    async query({ api, flag }) {
      return { sourceId: await optionalId(api, 'source', flag('source')), plan: flag('plan'), rule: flag('rule') }
    },
    columns: COLUMNS,
    none: 'No messages are in quarantine.',
  }),
  command('release', 'Release messages from quarantine: send them as if they were received now', 'Released'),
  command('delete', 'Delete messages from quarantine, so that they are never sent', 'Deleted'),
]

function command(action: 'release' | 'delete', summary: string, done: 'Released' | 'Deleted'): Command {
  return {
    name: `quarantine ${action}`,
    summary,
    arguments: [MESSAGE_ID],
    flags: {
      source: { placeholder: 'SOURCE', description: 'All messages of this source, by id or name.' },
      rule: RULE_FLAG,
      ...(action === 'delete' ? YES_FLAG : {}),
    },
    examples: [`switchyard quarantine ${action} 4019-2`, `switchyard quarantine ${action} --source website --rule 'track Order Completed'`],
    run: (call) => endQuarantine(call, action, done),
  }
}

async function endQuarantine(call: Call, action: 'release' | 'delete', done: 'Released' | 'Deleted'): Promise<ExitCode> {
  const ids = await readIds('MESSAGE_ID', call.arguments)
  const source = call.flag('source')
  if (call.arguments.length > 0 && (source !== undefined || call.has('rule')))
    throw new UsageProblem(`MESSAGE_IDs cannot be combined with --${source === undefined ? 'rule' : 'source'}.`)
  if (ids.length === 0 && source === undefined)
    throw new UsageProblem('Nothing is selected. Give MESSAGE_IDs, or --source. Run `switchyard quarantine` for a list.')
  if (action === 'delete') {
    const what = ids.length > 0 ? counted(ids.length, 'message') : `all matching messages of the source ${source}`
    await confirm(call, `Delete ${what} from quarantine? ${ids.length === 1 ? 'It' : 'They'} will never be sent. This cannot be undone.`)
  }
  let count = 0
  let kept = 0
  const send = async (selection: JsonObject): Promise<boolean> => {
    const answer = await call.api.post(`/api/quarantine/${action}`, selection)
    count += Number(answer[done.toLowerCase()])
    kept += Number(answer['kept'] ?? 0)
    return answer['more'] === true
  }
  if (source === undefined) for (let at = 0; at < ids.length; at += IDS_PER_CALL) await send({ ids: ids.slice(at, at + IDS_PER_CALL) })
  else {
    const selection = { sourceId: await idOf(call.api, 'source', source), ...(call.has('rule') && { rule: call.flag('rule') as string }) }
    while (await send(selection)) {
      if (call.signal.aborted) return EXIT.interrupted
      if (!call.json) call.out.remark(`${done} ${count} messages so far.`)
    }
  }
  if (call.json) call.out.json({ [done.toLowerCase()]: count, ...(action === 'release' && { kept }) })
  else call.out.line(`${done} ${count === 1 ? '1 message' : `${count} messages`}.`)
  if (kept > 0 && !call.json)
    call.out.remark(`${kept} ${kept === 1 ? 'message stays' : 'messages stay'} in quarantine, because the source was deleted.`)
  const missing = ids.length - count - kept
  if (missing > 0 && !call.json) call.out.remark(`${missing} of the messages ${missing === 1 ? 'is' : 'are'} not in quarantine.`)
  return missing > 0 ? EXIT.notFound : EXIT.ok
}

/** The first violation, and how many more there are. */
function firstViolation([first, ...others]: readonly JsonObject[]): string {
  if (first === undefined) return '–'
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`
  return `${violationText(first as unknown as Violation)}${more}`
}
