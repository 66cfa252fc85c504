// `switchyard sources`: where messages come from, and their write keys.

import type { JsonObject } from '@switchyard/protocol'
import { type Argument, type Call, type Command, CommandProblem, EXIT, type Flag } from '../line/command.ts'
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
const TRUTH = ['true', 'false'] as const
const CHANGES: Readonly<Record<string, Flag>> = {
  name: { placeholder: 'NAME', sentence: 'Another name.' },
  enabled: { placeholder: 'TRUTH', sentence: 'Whether its messages are accepted.', values: TRUTH },
  'require-oauth': { placeholder: 'TRUTH', sentence: 'Whether a write key alone is refused.', values: TRUTH },
}

export const SOURCE_COMMANDS: readonly Command[] = [
  {
    name: 'sources list',
    summary: 'The sources and their write keys',
    examples: ['switchyard sources'],
    async run(call) {
      await showAll(call, '/api/sources', {}, COLUMNS, 'There is no source. `switchyard sources create NAME` makes one.')
      return EXIT.ok
    },
  },
  {
    name: 'sources show',
    summary: 'One source',
    arguments: [SOURCE],
    examples: ['switchyard sources show default'],
    async run(call) {
      show(call, await call.api.get(await pathOf(call)))
      return EXIT.ok
    },
  },
  {
    name: 'sources create',
    summary: 'Creates a source, with a write key of its own unless some are given',
    arguments: [{ name: 'NAME', sentence: 'For people.' }],
    flags: {
      'write-key': { placeholder: 'KEY', sentence: 'A key that it shall have, such as one that clients use already.', many: true },
      'require-oauth': { placeholder: null, sentence: 'Refuses a write key alone.' },
    },
    examples: ["switchyard sources create 'web shop'"],
    async run(call) {
      const writeKeys = call.flags('write-key')
      const body = { name: call.arguments[0], requireOAuth: call.has('require-oauth'), ...(writeKeys.length > 0 ? { writeKeys } : {}) }
      show(call, await call.api.post('/api/sources', body))
      return EXIT.ok
    },
  },
  {
    name: 'sources update',
    summary: 'Changes what is given',
    arguments: [SOURCE],
    flags: CHANGES,
    examples: ['switchyard sources update default --require-oauth true'],
    async run(call) {
      const [name, enabled, requireOAuth] = [call.flag('name'), call.flag('enabled'), call.flag('require-oauth')]
      const body = {
        ...(name === undefined ? {} : { name }),
        ...(enabled === undefined ? {} : { enabled: enabled === 'true' }),
        ...(requireOAuth === undefined ? {} : { requireOAuth: requireOAuth === 'true' }),
      }
      if (Object.keys(body).length === 0) throw new CommandProblem('Nothing to change was given.', EXIT.usage)
      show(call, await call.api.patch(await pathOf(call), body))
      return EXIT.ok
    },
  },
  {
    name: 'sources delete',
    summary: 'Deletes a source; its write keys are rejected from now on',
    arguments: [SOURCE],
    async run(call) {
      const id = await idOf(call.api, 'source', call.arguments[0] as string)
      await call.api.delete(at`/api/sources/${id}`)
      done(call, { id, deleted: true }, `Source ${id} is deleted.`)
      return EXIT.ok
    },
  },
  {
    name: 'sources add-key',
    summary: 'Adds a write key: a new one unless one is given',
    details:
      'A source may have several keys, so that one can be replaced without losing a message: add the new, move the clients, remove the old.',
    arguments: [SOURCE, { name: 'KEY', sentence: 'The key to add.', optional: true }],
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
    summary: 'Removes a write key; the last one cannot be removed',
    arguments: [SOURCE, { name: 'KEY', sentence: 'The key to remove.' }],
    async run(call) {
      const key = call.arguments[1] as string
      const path = await pathOf(call)
      await call.api.delete(path + at`/write-keys/${key}`)
      done(call, { key, deleted: true }, 'The key is removed. Calls with it are refused from now on.')
      return EXIT.ok
    },
  },
]

async function pathOf({ api, arguments: [reference = ''] }: Call): Promise<string> {
  return at`/api/sources/${await idOf(api, 'source', reference)}`
}

function show({ json, out }: Call, source: JsonObject): void {
  if (json) return out.json(source)
  const { id, name, enabled, writeKeys, requireOAuth, createdAt } = source
  showFacts(out, [
    ['id', id],
    ['name', name],
    ['enabled', enabled],
    ['write keys', writeKeys],
    ['requires OAuth', requireOAuth],
    ['created', time(createdAt)],
  ])
}

function done({ json, out }: Call, value: object, sentence: string): void {
  if (json) out.json(value)
  else out.line(sentence)
}
