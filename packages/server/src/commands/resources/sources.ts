// `switchyard sources`: manages sources and their write keys.

import type { JsonObject } from '@switchyard/protocol'
import { type Argument, type Call, type Command, CommandProblem, EXIT, type Flag } from '../line/command.ts'
import { confirm, YES_FLAG } from '../line/confirm.ts'
import { type Column, showAll, showFacts, time } from '../line/listing.ts'
import { at, idOf } from '../line/references.ts'

const SOURCE: Argument = { name: 'SOURCE', sentence: "The source's id or name." }
const COLUMNS: readonly Column[] = [
  ['id', ({ id }) => id],
  ['name', ({ name }) => name],
  ['enabled', ({ enabled }) => enabled],
  ['oauth', ({ requireOAuth }) => (requireOAuth ? 'required' : 'no')],
  ['write keys', ({ writeKeys }) => writeKeys],
]
const BOOLEANS = ['true', 'false'] as const
const PRIVACY: Flag = {
  placeholder: 'PATH=ACTION',
  sentence: 'A privacy rule: drop, hash or mask the value at this path before a message is stored. Repeat the flag for several rules.',
  many: true,
}
const CHANGES: Readonly<Record<string, Flag>> = {
  name: { placeholder: 'NAME', sentence: 'The new name.' },
  enabled: { placeholder: 'BOOLEAN', sentence: 'Whether the source accepts messages.', values: BOOLEANS },
  'require-oauth': {
    placeholder: 'BOOLEAN',
    sentence: 'Whether to require an OAuth access token; a write key alone is then rejected.',
    values: BOOLEANS,
  },
  privacy: PRIVACY,
  'no-privacy': { placeholder: null, sentence: 'Remove all privacy rules.' },
}

export const SOURCE_COMMANDS: readonly Command[] = [
  {
    name: 'sources list',
    summary: 'List sources and their write keys',
    examples: ['switchyard sources'],
    async run(call) {
      await showAll(call, '/api/sources', {}, COLUMNS, 'There are no sources. Create one with `switchyard sources create NAME`.')
      return EXIT.ok
    },
  },
  {
    name: 'sources show',
    summary: 'Show a source',
    arguments: [SOURCE],
    examples: ['switchyard sources show default'],
    async run(call) {
      show(call, await call.api.get(await pathOf(call)))
      return EXIT.ok
    },
  },
  {
    name: 'sources create',
    summary: 'Create a source',
    arguments: [{ name: 'NAME', sentence: 'The display name.' }],
    flags: {
      'write-key': {
        placeholder: 'KEY',
        sentence: 'A write key for the source, such as one that clients already use.',
        many: true,
        usual: 'a generated one',
      },
      'require-oauth': { placeholder: null, sentence: 'Require an OAuth access token; a write key alone is rejected.' },
      privacy: PRIVACY,
    },
    examples: ["switchyard sources create 'web shop'", "switchyard sources create 'web shop' --privacy traits.email=hash"],
    async run(call) {
      const writeKeys = call.flags('write-key')
      const privacy = privacyOf(call)
      const body = {
        name: call.arguments[0],
        requireOAuth: call.has('require-oauth'),
        ...(writeKeys.length > 0 ? { writeKeys } : {}),
        ...(privacy === undefined ? {} : { privacy }),
      }
      show(call, await call.api.post('/api/sources', body))
      return EXIT.ok
    },
  },
  {
    name: 'sources update',
    summary: 'Change the given settings of a source',
    details: 'The privacy rules that you give replace all existing ones. Messages that are already stored do not change.',
    arguments: [SOURCE],
    flags: CHANGES,
    examples: [
      'switchyard sources update default --require-oauth true',
      'switchyard sources update default --privacy traits.email=hash --privacy context.ip=drop',
    ],
    async run(call) {
      const [name, enabled, requireOAuth] = [call.flag('name'), call.flag('enabled'), call.flag('require-oauth')]
      const privacy = privacyOf(call)
      const body = {
        ...(name === undefined ? {} : { name }),
        ...(enabled === undefined ? {} : { enabled: enabled === 'true' }),
        ...(requireOAuth === undefined ? {} : { requireOAuth: requireOAuth === 'true' }),
        ...(privacy === undefined ? {} : { privacy }),
      }
      if (Object.keys(body).length === 0)
        throw new CommandProblem('Nothing to change: use --name, --enabled, --require-oauth, --privacy or --no-privacy.', EXIT.usage)
      show(call, await call.api.patch(await pathOf(call), body))
      return EXIT.ok
    },
  },
  {
    name: 'sources delete',
    summary: 'Delete a source (its write keys are rejected from now on)',
    arguments: [SOURCE],
    flags: YES_FLAG,
    async run(call) {
      const id = await idOf(call.api, 'source', call.arguments[0] as string)
      await confirm(call, `Delete the source ${call.arguments[0]} (${id})? Its write keys will be rejected. This cannot be undone.`)
      await call.api.delete(at`/api/sources/${id}`)
      done(call, { id, deleted: true }, `Deleted source ${id}.`)
      return EXIT.ok
    },
  },
  {
    name: 'sources add-key',
    summary: 'Add a write key to a source',
    details:
      'A source can have several write keys, so that one can be replaced without losing messages: add the new key, switch the clients to it, and remove the old key.',
    arguments: [SOURCE, { name: 'KEY', sentence: 'The key to add. Without it, a new one is generated.', optional: true }],
    examples: ['switchyard sources add-key default'],
    async run(call) {
      const key = call.arguments[1]
      const source = await call.api.post(`${await pathOf(call)}/write-keys`, key === undefined ? {} : { key })
      done(call, source, String(source['key']))
      return EXIT.ok
    },
  },
  {
    name: 'sources remove-key',
    summary: 'Remove a write key from a source (but not its last one)',
    arguments: [SOURCE, { name: 'KEY', sentence: 'The key to remove.' }],
    flags: YES_FLAG,
    async run(call) {
      const key = call.arguments[1] as string
      const path = await pathOf(call)
      await confirm(call, `Remove the write key ${key} of ${call.arguments[0]}? Messages that are sent with it will be rejected.`)
      await call.api.delete(path + at`/write-keys/${key}`)
      done(call, { key, deleted: true }, 'Removed the write key. Requests with it are rejected from now on.')
      return EXIT.ok
    },
  },
]

/** Undefined if the command line does not mention privacy. */
function privacyOf(call: Call): { path: string; action: string }[] | undefined {
  const given = call.flags('privacy')
  if (given.length === 0) return call.has('no-privacy') ? [] : undefined
  if (call.has('no-privacy')) throw new CommandProblem('--privacy and --no-privacy cannot be used together.', EXIT.usage)
  return given.map((text) => {
    const [, path, action] = /^(.+)=([^=]*)$/s.exec(text) ?? []
    if (path === undefined || action === undefined)
      throw new CommandProblem(`--privacy ${text} must be a path, = and an action, such as traits.email=hash.`, EXIT.usage)
    return { path, action }
  })
}

async function pathOf({ api, arguments: [reference = ''] }: Call): Promise<string> {
  return at`/api/sources/${await idOf(api, 'source', reference)}`
}

function show({ json, out }: Call, source: JsonObject): void {
  if (json) return out.json(source)
  const { id, name, enabled, writeKeys, requireOAuth, privacy, createdAt } = source
  showFacts(out, [
    ['id', id],
    ['name', name],
    ['enabled', enabled],
    ['write keys', writeKeys],
    ['requires OAuth', requireOAuth],
    ['privacy', ((privacy ?? []) as { path: string; action: string }[]).map(({ path, action }) => `${path}=${action}`)],
    ['created', time(createdAt)],
  ])
}

function done({ json, out }: Call, value: object, sentence: string): void {
  if (json) out.json(value)
  else out.line(sentence)
}
