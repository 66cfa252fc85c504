// Routes for sources and their write keys. Reads come from the configuration in memory; changes are checked against the stored configuration.

import { randomBytes } from 'node:crypto'
import { isoTime } from '@switchyard/protocol'
import { array, boolean, invalidField, nullable, object, optional, patchOf, string, time, withDefault } from '../../api/schema.ts'
import { maskedWriteKey } from '../../api/write-key-mask.ts'
import { ApiError } from '../../errors.ts'
import type { Actor, Configuration, NewSource, Role, Source } from '../../store/store.ts'
import { audited } from '../access/audit.ts'
import { CREATION_QUERY, checkName, nameProblem } from '../name.ts'
import { listAnswer, listQuery, pageAnswer, pageOf, pageRequest } from '../query.ts'
import { type ControlParts, checkIfMatch, type Route, route } from '../route.ts'
import { PRIVACY } from './privacy.ts'

/** A write key must work unescaped in the path of a URL, and as the user name of Basic authentication, which must not contain a colon. */
const WRITE_KEY = string({
  min: 1,
  max: 100,
  pattern: '^[A-Za-z0-9][A-Za-z0-9._~-]*$',
  description: 'A write key.',
  check: (key) =>
    /^[A-Za-z0-9][A-Za-z0-9._~-]*$/.test(key)
      ? null
      : 'must start with a letter or digit and contain only letters, digits and the characters . _ ~ -',
})
const MAX_WRITE_KEYS = 100
const writeKeys = (description: string) => array(WRITE_KEY, { min: 1, max: MAX_WRITE_KEYS, identity: (key) => key, description })

const SOURCE_FIELDS = {
  name: string({ min: 1, max: 100, description: 'The display name.', check: nameProblem }),
  enabled: withDefault(boolean({ description: 'Whether messages with a write key of the source are accepted.' }), true),
  requireOAuth: withDefault(boolean({ description: 'Whether requests need an access token in addition to the write key.' }), false),
}
const NEW_SOURCE = object({
  ...SOURCE_FIELDS,
  writeKeys: optional(writeKeys('The write keys. If left out, one is generated.')),
  privacy: withDefault(PRIVACY, []),
})
const SOURCE_PATCH = object(
  patchOf({
    ...SOURCE_FIELDS,
    writeKeys: writeKeys('The new write keys. They replace all existing ones.'),
    privacy: nullable(PRIVACY),
  }),
)
const NEW_WRITE_KEY = object({ key: optional(WRITE_KEY) })

const SOURCE_VIEW_FIELDS = {
  id: string(),
  name: string(),
  enabled: boolean({ description: 'Whether messages with a write key of the source are accepted.' }),
  writeKeys: array(string(), {
    description:
      'The write keys with which senders identify the source. Viewers, who cannot send, get only the last characters of each key, after `…`.',
  }),
  requireOAuth: boolean({ description: 'Whether requests need an access token in addition to the write key.' }),
  privacy: PRIVACY,
  builtIn: boolean({
    description:
      'Whether this is the source `system`, whose messages the service makes itself. It has no write keys and cannot be changed or deleted.',
  }),
  createdAt: time(),
}
export const SOURCE = object(SOURCE_VIEW_FIELDS, { title: 'Source', description: 'An application or website that sends messages.' })
const SOURCE_WITH_KEY = object({ ...SOURCE_VIEW_FIELDS, key: string({ description: 'The key that was added.' }) })

export function generateWriteKey(): string {
  // base64url can start with - or _, which a write key must not.
  for (;;) {
    const key = randomBytes(24).toString('base64url')
    if (/^[A-Za-z0-9]/.test(key)) return key
  }
}

export function sourceRoutes({ store }: ControlParts): Route[] {
  function found(source: Source | undefined): Source {
    if (source === undefined) throw new ApiError('source_not_found')
    return source
  }

  async function change(action: string, id: string | undefined, to: (before: Source) => Partial<NewSource>, actor: Actor) {
    const checked = (before: Source): Partial<NewSource> => {
      rejectBuiltIn(before)
      return to(before)
    }
    return sourceView(found(await store.settings.updateSource(id ?? '', checked, audited(actor, action, sourceView))))
  }

  return [
    route({
      method: 'GET',
      path: '/sources',
      summary: 'List sources, oldest first',
      query: listQuery({}),
      status: 200,
      answer: listAnswer(SOURCE),
      errors: ['invalid_cursor'],
      handle: ({ query, role }) =>
        pageAnswer('sources', pageOf(store.configuration().sources.values(), pageRequest('sources', query)), viewFor(role)),
    }),
    route({
      method: 'POST',
      path: '/sources',
      summary: 'Create a source',
      description: 'If you leave out `writeKeys`, one write key is generated.',
      query: CREATION_QUERY,
      body: NEW_SOURCE,
      status: 201,
      answer: SOURCE,
      tagged: true,
      errors: ['write_key_taken', 'name_taken'],
      async handle({ body, query, actor }) {
        const source: NewSource = { ...body, writeKeys: body.writeKeys ?? [generateWriteKey()] }
        const checked = ({ sources }: Configuration): NewSource => {
          checkName(query, body.name, sources)
          return source
        }
        return sourceView(await store.settings.createSource(checked, audited(actor, 'source.create', sourceView)))
      },
    }),
    route({
      method: 'GET',
      path: '/sources/:id',
      summary: 'Retrieve a source',
      status: 200,
      answer: SOURCE,
      tagged: true,
      errors: ['source_not_found'],
      handle: ({ params, role }) => viewFor(role)(found(store.configuration().sources.get(params['id'] ?? ''))),
    }),
    route({
      method: 'PATCH',
      path: '/sources/:id',
      summary: 'Update a source',
      description:
        'Changes only the fields that you send. `writeKeys` replaces all existing write keys, and `privacy` all existing rules; null removes all rules.',
      body: SOURCE_PATCH,
      status: 200,
      answer: SOURCE,
      tagged: true,
      errors: ['source_not_found', 'write_key_taken', 'built_in_source'],
      handle({ params, body, actor, exchange }) {
        const { privacy, ...rest } = body
        const changed = (before: Source): Partial<NewSource> => {
          checkIfMatch(exchange, sourceView(before))
          return privacy === undefined ? rest : { ...rest, privacy: privacy ?? [] }
        }
        return change('source.update', params['id'], changed, actor)
      },
    }),
    route({
      method: 'DELETE',
      path: '/sources/:id',
      summary: 'Delete a source',
      description: 'Afterwards, requests with its write keys are rejected. Messages that were already accepted are still delivered.',
      status: 204,
      tagged: true,
      errors: ['source_not_found', 'built_in_source'],
      async handle({ params, actor, exchange }) {
        const audit = audited(actor, 'source.delete', sourceView)
        const check = (before: Source): void => {
          rejectBuiltIn(before)
          checkIfMatch(exchange, sourceView(before))
        }
        if (!(await store.settings.deleteSource(params['id'] ?? '', audit, check))) throw new ApiError('source_not_found')
      },
    }),
    route({
      method: 'POST',
      path: '/sources/:id/write-keys',
      summary: 'Add a write key to a source',
      description: 'If you leave out `key`, a write key is generated.',
      body: NEW_WRITE_KEY,
      status: 201,
      answer: SOURCE_WITH_KEY,
      errors: ['source_not_found', 'write_key_taken', 'too_many_write_keys', 'built_in_source'],
      async handle({ params, body, actor }) {
        const key = body.key ?? generateWriteKey()
        const added = ({ writeKeys }: Source): Partial<NewSource> => {
          if (writeKeys.includes(key))
            throw new ApiError('write_key_taken', {
              message: 'The source already has this write key. Choose another key, or leave it out to get a new one.',
              field: 'key',
            })
          if (writeKeys.length >= MAX_WRITE_KEYS)
            throw new ApiError('too_many_write_keys', {
              message: `The source has ${MAX_WRITE_KEYS} write keys, which is the maximum. Remove a key first.`,
            })
          return { writeKeys: [...writeKeys, key] }
        }
        return { ...(await change('source.add-write-key', params['id'], added, actor)), key }
      },
    }),
    route({
      method: 'DELETE',
      path: '/sources/:id/write-keys/:key',
      summary: 'Remove a write key from a source',
      description: 'Afterwards, requests with the key are rejected. The last write key of a source cannot be removed.',
      status: 204,
      errors: ['source_not_found', 'write_key_not_found', 'last_write_key', 'built_in_source'],
      async handle({ params, actor }) {
        const removed = ({ writeKeys }: Source): Partial<NewSource> => {
          const rest = writeKeys.filter((key) => key !== params['key'])
          if (rest.length === writeKeys.length) throw new ApiError('write_key_not_found')
          if (rest.length === 0) throw new ApiError('last_write_key')
          return { writeKeys: rest }
        }
        await change('source.remove-write-key', params['id'], removed, actor)
      },
    }),
  ]
}

/** Throws invalid_field if one of the ids is not the id of a source. */
export function checkSources({ sources }: Configuration, sourceIds: readonly string[] = []): void {
  for (const [index, id] of sourceIds.entries()) {
    if (!sources.has(id)) throw invalidField(`sourceIds[${index}]`, 'is not the id of a source. GET /api/sources lists all sources')
  }
}

function rejectBuiltIn({ builtIn }: Source): void {
  if (builtIn) throw new ApiError('built_in_source')
}

function viewFor(role: Role): (source: Source) => ReturnType<typeof sourceView> {
  return (source) => sourceView(role === 'admin' ? source : { ...source, writeKeys: source.writeKeys.map(maskedWriteKey) })
}

export function sourceView({ id, name, enabled, writeKeys, requireOAuth, privacy = [], builtIn, createdAtMs }: Source) {
  return {
    id,
    name,
    enabled,
    writeKeys: [...writeKeys],
    requireOAuth,
    privacy: privacy.map(({ path, action }) => ({ path, action })),
    builtIn: builtIn ?? false,
    createdAt: isoTime(createdAtMs),
  }
}
