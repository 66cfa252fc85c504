// `switchyard sources`: manages sources and their write keys.

import type { JsonObject } from '@switchyard/protocol'
import { SEARCH_FILTERS } from '../../api/list-filters.ts'
import { SOURCE } from '../../api/resources/source.ts'
import { type Argument, type Call, type Command, CommandProblem, EXIT, type Flag } from '../line/command.ts'
import { confirm, YES_FLAG } from '../line/confirm.ts'
import { bodyFrom, changesFrom, filterFlags, filtersFrom, flagsFor, type Shown, showResource } from '../line/fields.ts'
import { type Column, showAll } from '../line/listing.ts'
import { at, idOf } from '../line/references.ts'

const SOURCE_ARGUMENT: Argument = { name: 'SOURCE', description: "The source's id or name." }
const COLUMNS: readonly Column[] = [
  ['id', ({ id }) => id],
  ['name', ({ name }) => name],
  ['enabled', ({ enabled }) => enabled],
  ['oauth', ({ requireOAuth }) => (requireOAuth ? 'required' : 'no')],
  ['write keys', ({ writeKeys }) => writeKeys],
]
const SHOWN: Shown = {
  requireOAuth: { label: 'requires OAuth' },
  privacy: { value: (rules) => ((rules ?? []) as { path: string; action: string }[]).map(({ path, action }) => `${path}=${action}`) },
  builtIn: null,
  createdAt: { label: 'created' },
}
const PRIVACY: Flag = {
  placeholder: 'PATH=ACTION',
  description: 'A privacy rule: drop, hash or mask the value at this path before a message is stored. Repeat the flag for several rules.',
  many: true,
}
/** The name of a new source is an argument, and a new source is enabled. */
const { name: _name, enabled: _enabled, ...NEW_FIELDS } = SOURCE.create.fields
const NEW = { fields: NEW_FIELDS }

export const SOURCE_COMMANDS: readonly Command[] = [
  {
    name: 'sources list',
    summary: 'List sources and their write keys',
    flags: filterFlags(SEARCH_FILTERS),
    examples: ['switchyard sources', 'switchyard sources --search shop'],
    async run(call) {
      const none = call.has('search') ? 'No sources match.' : 'There are no sources. Create one with `switchyard sources create NAME`.'
      await showAll(call, '/api/sources', await filtersFrom(call, SEARCH_FILTERS), COLUMNS, none)
      return EXIT.ok
    },
  },
  {
    name: 'sources show',
    summary: 'Show a source',
    arguments: [SOURCE_ARGUMENT],
    examples: ['switchyard sources show default'],
    async run(call) {
      show(call, await call.api.get(await pathOf(call)))
      return EXIT.ok
    },
  },
  {
    name: 'sources create',
    summary: 'Create a source',
    arguments: [{ name: 'NAME', description: 'The display name.' }],
    flags: {
      'write-key': {
        placeholder: 'KEY',
        description: 'A write key for the source, such as one that clients already use.',
        many: true,
        defaultText: 'a generated one',
      },
      ...flagsFor(NEW),
      privacy: PRIVACY,
    },
    examples: ["switchyard sources create 'web shop'", "switchyard sources create 'web shop' --privacy traits.email=hash"],
    async run(call) {
      const writeKeys = call.flags('write-key')
      const body = {
        name: call.arguments[0],
        ...bodyFrom(call, NEW),
        ...(writeKeys.length > 0 ? { writeKeys } : {}),
        ...privacyOf(call),
      }
      show(call, await call.api.post('/api/sources', body))
      return EXIT.ok
    },
  },
  {
    name: 'sources update',
    summary: 'Change the given settings of a source',
    details: 'The privacy rules that you give replace all existing ones. Messages that are already stored do not change.',
    arguments: [SOURCE_ARGUMENT],
    flags: { ...flagsFor(SOURCE.patch), privacy: PRIVACY, 'no-privacy': { placeholder: null, description: 'Remove all privacy rules.' } },
    examples: [
      'switchyard sources update default --require-oauth true',
      'switchyard sources update default --privacy traits.email=hash --privacy context.ip=drop',
    ],
    async run(call) {
      const body = changesFrom(call, SOURCE.patch, privacyOf(call), ['privacy', 'no-privacy'])
      show(call, await call.api.patch(await pathOf(call), body))
      return EXIT.ok
    },
  },
  {
    name: 'sources delete',
    summary: 'Delete a source (its write keys are rejected from now on)',
    arguments: [SOURCE_ARGUMENT],
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
    arguments: [SOURCE_ARGUMENT, { name: 'KEY', description: 'The key to add. Without it, a new one is generated.', optional: true }],
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
    arguments: [SOURCE_ARGUMENT, { name: 'KEY', description: 'The key to remove.' }],
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

/** Empty if the command line does not mention privacy. */
function privacyOf(call: Call): { privacy?: { path: string; action: string }[] } {
  const given = call.flags('privacy')
  if (given.length === 0) return call.has('no-privacy') ? { privacy: [] } : {}
  if (call.has('no-privacy')) throw new CommandProblem('--privacy and --no-privacy cannot be used together.', EXIT.usage)
  const privacy = given.map((text) => {
    const [, path, action] = /^(.+)=([^=]*)$/s.exec(text) ?? []
    if (path === undefined || action === undefined)
      throw new CommandProblem(`--privacy ${text} must be a path, = and an action, such as traits.email=hash.`, EXIT.usage)
    return { path, action }
  })
  return { privacy }
}

async function pathOf({ api, arguments: [reference = ''] }: Call): Promise<string> {
  return at`/api/sources/${await idOf(api, 'source', reference)}`
}

function show(call: Call, source: JsonObject): void {
  showResource(call, SOURCE.viewFields, source, SHOWN)
}

function done({ json, out }: Call, value: object, sentence: string): void {
  if (json) out.json(value)
  else out.line(sentence)
}
