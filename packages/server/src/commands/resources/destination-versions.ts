// `switchyard destinations preview`, `versions` and `restore`: what a destination would send, and the versions of its request and code.

import type { JsonObject } from '@switchyard/protocol'
import { type Call, type Command, CommandProblem, EXIT } from '../line/command.ts'
import { readJsonObject } from '../line/input.ts'
import { type Column, cell, LIMIT_FLAG, showNewest, time } from '../line/listing.ts'
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
    summary: 'Show what would be sent for the last messages, without sending it (exit code 1 if a message fails)',
    details:
      'Shows the last messages of the sources of the destination, or the message that you give. Every setting that you give is applied to the preview only, and not saved: try a file with --request-file or --transformation-file before you save it with `switchyard destinations update`.',
    arguments: [DESTINATION_ARGUMENT],
    flags: {
      'message-id': { placeholder: 'ID', sentence: 'Show this stored message only, by its id or messageId.' },
      message: { placeholder: 'JSON', sentence: 'Show this message instead of stored ones: JSON, - for stdin, or @FILE.' },
      limit: { placeholder: 'NUMBER', sentence: 'The maximum number of messages to show.', usual: '10' },
      ...DESTINATION_FLAGS,
    },
    examples: [
      'switchyard destinations preview orders --transformation-file mask-emails.js',
      `switchyard destinations preview orders --request-file request.yaml --message '{"type":"track","event":"Paid","userId":"u-1"}'`,
    ],
    async run(call) {
      const path = await destinationPath(call)
      const [messageId, message, limit] = [call.flag('message-id'), call.flag('message'), call.flag('limit')]
      if (message !== undefined && messageId !== undefined)
        throw new CommandProblem('--message and --message-id cannot be used together.', EXIT.usage)
      const changes = await destinationBody(call, await call.api.get(path))
      const { data } = await call.api.post(`${path}/preview`, {
        ...(messageId === undefined ? {} : { messageId }),
        ...(message === undefined ? {} : { message: await readJsonObject('--message', message) }),
        ...(messageId === undefined && message === undefined ? { limit: limit === undefined ? 10 : parseCount('limit', limit) } : {}),
        ...(Object.keys(changes).length === 0 ? {} : { changes }),
      })
      const previews = data as JsonObject[]
      if (call.json) call.out.json(previews)
      else if (previews.length === 0)
        call.out.remark('No messages are stored for the sources of this destination. Give one with --message.')
      else for (const preview of previews) show(call, preview)
      return previews.some(({ error }) => error != null) ? EXIT.failed : EXIT.ok
    },
  },
  {
    name: 'destinations versions',
    summary: "List the versions of a destination's request and transformation, newest first",
    details: 'With --json, each version also has its request and its transformation.',
    arguments: [DESTINATION_ARGUMENT],
    flags: LIMIT_FLAG,
    async run(call) {
      await showNewest(call, `${await destinationPath(call)}/versions`, {}, VERSION_COLUMNS, 'The destination has no versions.')
      return EXIT.ok
    },
  },
  {
    name: 'destinations restore',
    summary: 'Restore a version of the request and the transformation, as a new version',
    arguments: [DESTINATION_ARGUMENT, { name: 'VERSION', sentence: 'The number of the version to restore.' }],
    examples: ['switchyard destinations restore orders 3'],
    async run(call) {
      const version = parseCount('version', call.arguments[1] as string)
      const destination = await call.api.patch(await destinationPath(call), { version })
      if (call.json) call.out.json(destination)
      else
        call.out.line(
          `Destination ${cell(destination['name'])} has the content of version ${version} again, as version ${cell(destination['version'])}.`,
        )
      return EXIT.ok
    },
  },
]

function show({ out }: Call, preview: JsonObject): void {
  const { messageId, request, skipped, dropped, error, logs } = preview
  out.line(out.paint('bold', `message ${cell(messageId)}`))
  const why = (label: string, value: unknown): string => {
    const { message } = (typeof value === 'object' ? value : { message: value }) as { message?: unknown }
    return typeof message === 'string' ? `${label}: ${message}` : `${label}.`
  }
  if (error != null) out.line(out.paint('red', why('Failed', error)))
  else if (skipped != null && skipped !== false) out.line(out.paint('yellow', why('Not sent', skipped)))
  else if (dropped != null && dropped !== false) out.line(out.paint('yellow', 'Dropped by the transformation.'))
  if (request != null) {
    const { method, url, headers, body } = request as { method: string; url: string; headers: Record<string, string>; body: string }
    out.line(`${method} ${url}`)
    for (const [name, value] of Object.entries(headers)) out.line(out.paint('dim', `${name}: ${value}`))
    out.text(body)
  }
  if (typeof logs === 'string' && logs !== '') out.text(`console: ${logs}`)
  out.line('')
}
