// `switchyard sources`: manages sources and their write keys.

import type { JsonObject } from '@switchyard/protocol'
import { SEARCH_FILTERS } from '../../api/list-filters.ts'
import { SOURCE } from '../../api/resources/source.ts'
import { type Argument, type Call, type Command, type Flag, UsageProblem } from '../line/command.ts'
import { bodyFrom, changesFrom, filterFlags, filtersFrom, flagsFor, type Shown, showResource } from '../line/fields.ts'
import { type Column, showResult } from '../line/listing.ts'
import { resourcePath } from '../line/references.ts'
import { deleteCommand, listCommand, removeKeyCommand, showCommand } from '../line/resource-commands.ts'

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
  listCommand({
    name: 'sources list',
    summary: 'List sources and their write keys',
    flags: filterFlags(SEARCH_FILTERS),
    examples: ['switchyard sources', 'switchyard sources --search shop'],
    path: '/api/sources',
    query: (call) => filtersFrom(call, SEARCH_FILTERS),
    columns: COLUMNS,
    none: ({ has }) => (has('search') ? 'No sources match.' : 'There are no sources. Create one with `switchyard sources create NAME`.'),
  }),
  showCommand({
    name: 'sources show',
    summary: 'Show a source',
    arguments: [SOURCE_ARGUMENT],
    examples: ['switchyard sources show default'],
    kind: 'source',
    show,
  }),
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
      show(call, await call.api.patch(await resourcePath(call, 'source'), body))
    },
  },
  deleteCommand({
    name: 'sources delete',
    summary: 'Delete a source (its write keys are rejected from now on)',
    arguments: [SOURCE_ARGUMENT],
    kind: 'source',
    question: (source, id) => `Delete the source ${source} (${id})? Its write keys will be rejected.`,
  }),
  {
    name: 'sources add-key',
    summary: 'Add a write key to a source',
    details:
      'A source can have several write keys, so that one can be replaced without losing messages: add the new key, switch the clients to it, and remove the old key.',
    arguments: [SOURCE_ARGUMENT, { name: 'KEY', description: 'The key to add. Without it, a new one is generated.', optional: true }],
    examples: ['switchyard sources add-key default'],
    async run(call) {
      const key = call.arguments[1]
      const source = await call.api.post(`${await resourcePath(call, 'source')}/write-keys`, key === undefined ? {} : { key })
      showResult(call, source, String(source['key']))
    },
  },
  removeKeyCommand({
    name: 'sources remove-key',
    summary: 'Remove a write key from a source (but not its last one)',
    arguments: [SOURCE_ARGUMENT, { name: 'KEY', description: 'The key to remove.' }],
    kind: 'source',
    keys: 'write-keys',
    field: 'key',
    question: (key, source) => `Remove the write key ${key} of ${source}? Messages that are sent with it will be rejected.`,
    done: () => 'Removed the write key. Requests with it are rejected from now on.',
  }),
]

/** Empty if the command line does not mention privacy. */
function privacyOf(call: Call): { privacy?: { path: string; action: string }[] } {
  const given = call.flags('privacy')
  if (given.length === 0) return call.has('no-privacy') ? { privacy: [] } : {}
  if (call.has('no-privacy')) throw new UsageProblem('--privacy and --no-privacy cannot be used together.')
  const privacy = given.map((text) => {
    const [, path, action] = /^(.+)=([^=]*)$/s.exec(text) ?? []
    if (path === undefined || action === undefined)
      throw new UsageProblem(`--privacy ${text} must be a path, = and an action, such as traits.email=hash.`)
    return { path, action }
  })
  return { privacy }
}

function show(call: Call, source: JsonObject): void {
  showResource(call, SOURCE.viewFields, source, SHOWN)
}
