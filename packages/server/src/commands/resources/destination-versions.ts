// `switchyard destinations preview`, `versions` and `restore`: what a destination would send, and the versions of its request and code.

import type { JsonObject } from '@switchyard/protocol'
import { type Call, type Command, EXIT, UsageProblem } from '../line/command.ts'
import { readJsonObject } from '../line/input.ts'
import { type Column, cell, showResult, time } from '../line/listing.ts'
import { newestCommand } from '../line/resource-commands.ts'
import { parseCount } from '../line/times.ts'
import { DESTINATION_ARGUMENT, DESTINATION_FLAGS, destinationBody, destinationPath } from './destination-flags.ts'

const VERSION_COLUMNS: readonly Column[] = [
  ['version', ({ version, current }) => `${cell(version)}${current === true ? ' (current)' : ''}`],
  ['created', ({ createdAt }) => time(createdAt)],
  ['by', ({ actor }) => (actor as JsonObject | null)?.['name']],
  ['changed', ({ changed, restoredFrom }) => (restoredFrom == null ? changed : `restored from ${cell(restoredFrom)}`)],
]

export const VERSION_COMMANDS: readonly Command[] = [
  {
    name: 'destinations preview',
    summary: 'Show what would be sent for the last messages, without sending anything (exit code 1 if a message fails)',
    details:
      'Uses the last messages of the sources of the destination, or the message that you give. Settings that you give are applied to the preview only, and not saved: try a file with --request-file or --transformation-file before you save it with `switchyard destinations update`.',
    arguments: [DESTINATION_ARGUMENT],
    flags: {
      'message-id': { placeholder: 'ID', description: 'Show this stored message only, by its id or messageId.' },
      message: { placeholder: 'JSON', description: 'Show this message instead of stored ones: JSON, - for stdin, or @FILE.' },
      limit: { placeholder: 'NUMBER', description: 'The maximum number of messages to show.', defaultText: '10' },
      ...DESTINATION_FLAGS,
    },
    examples: [
      'switchyard destinations preview orders --transformation-file mask-emails.js',
      `switchyard destinations preview orders --request-file request.yaml --message '{"type":"track","event":"Paid","userId":"u-1"}'`,
    ],
    async run(call) {
      const path = await destinationPath(call)
      const [messageId, message, limit] = [call.flag('message-id'), call.flag('message'), call.flag('limit')]
      if (message !== undefined && messageId !== undefined) throw new UsageProblem('--message and --message-id cannot be used together.')
      const changes = await destinationBody(call, await call.api.get(path))
      const answer = await call.api.post(`${path}/preview`, {
        ...(messageId === undefined ? {} : { messageId }),
        ...(message === undefined ? {} : { message: await readJsonObject('--message', message) }),
        ...(limit === undefined ? {} : { limit: parseCount('limit', limit) }),
        ...(Object.keys(changes).length === 0 ? {} : { changes }),
      })
      const { data, summary, before } = answer as { data: JsonObject[]; summary: JsonObject; before: JsonObject | null }
      if (call.json) call.out.json(answer)
      else if (data.length === 0) call.out.remark('No messages are stored for the sources of this destination. Give one with --message.')
      else {
        for (const preview of data) show(call, preview)
        call.out.line(countsText(summary))
        if (before !== null) call.out.line(`With the saved settings: ${countsText(before)}`)
      }
      return data.some(({ error }) => error !== undefined) ? EXIT.failed : EXIT.ok
    },
  },
  newestCommand({
    name: 'destinations versions',
    summary: "List the versions of a destination's request and transformation, newest first",
    details: 'With --json, each version also has its request and its transformation.',
    arguments: [DESTINATION_ARGUMENT],
    path: async (call) => `${await destinationPath(call)}/versions`,
    columns: VERSION_COLUMNS,
    none: 'The destination has no versions.',
  }),
  {
    name: 'destinations restore',
    summary: 'Restore a version of the request and the transformation, as a new version',
    arguments: [DESTINATION_ARGUMENT, { name: 'VERSION', description: 'The number of the version to restore.' }],
    examples: ['switchyard destinations restore orders 3'],
    async run(call) {
      const version = parseCount('version', call.arguments[1] as string)
      const destination = await call.api.patch(await destinationPath(call), { version })
      const restored = `version ${version} was restored as version ${cell(destination['version'])}`
      showResult(call, destination, `Destination ${cell(destination['name'])}: ${restored}.`)
    },
  },
]

function show({ out }: Call, preview: JsonObject): void {
  const { messageId, type, event, request, skipped, dropped, error, logs } = preview as {
    request: { method: string; url: string; headers: Record<string, string>; body: string } | null
    skipped?: { sentence: string }
    error?: { sentence: string }
  } & JsonObject
  out.line(out.paint('bold', `${cell(messageId)}  ${cell(type)}${event === null ? '' : ` ${cell(event)}`}`))
  if (error !== undefined) out.line(out.paint('red', `Failed: ${error.sentence}`))
  if (skipped !== undefined) out.line(out.paint('yellow', `Not sent: ${skipped.sentence}`))
  if (dropped === true) out.line(out.paint('yellow', 'Dropped by the transformation.'))
  if (request !== null) {
    out.line(`${request.method} ${request.url}`)
    for (const [name, value] of Object.entries(request.headers)) out.line(out.paint('dim', `${name}: ${value}`))
    out.text(request.body)
  }
  if (typeof logs === 'string' && logs !== '') out.text(`Log: ${logs.trimEnd()}`)
  out.line('')
}

function countsText({ messages, sent, skipped, dropped, failed, notRun }: JsonObject): string {
  const parts = Object.entries({ sent, skipped, dropped, failed, 'not run': notRun }).filter(([, count]) => count !== 0)
  return `${cell(messages)} ${messages === 1 ? 'message' : 'messages'}: ${parts.map(([name, count]) => `${cell(count)} ${name}`).join(', ')}.`
}
