// Routes for sources and their write keys. What a source consists of is described in api/resources/source.ts.

import { randomBytes } from 'node:crypto'
import { MAX_WRITE_KEYS, SOURCE, WRITE_KEY } from '../../api/resources/source.ts'
import { invalidField, object, optional, string } from '../../api/schema.ts'
import { maskedWriteKey } from '../../api/write-key-mask.ts'
import { ApiError } from '../../errors.ts'
import type { Actor, Configuration, NewSource, Source, Store } from '../../store/store.ts'
import {
  auditOf,
  CREATION_QUERY,
  createRoute,
  deleteRoute,
  found,
  listRoute,
  type ResourceKind,
  readRoute,
  updateRoute,
} from '../routes/resource-routes.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

export const sourceView = SOURCE.viewOf

const NEW_WRITE_KEY = object({ key: optional(WRITE_KEY) })
const SOURCE_WITH_KEY = object({ ...SOURCE.viewFields, key: string({ description: 'The key that was added.' }) })

export function generateWriteKey(): string {
  // base64url can start with - or _, which a write key must not.
  for (;;) {
    const key = randomBytes(24).toString('base64url')
    if (/^[A-Za-z0-9]/.test(key)) return key
  }
}

export function sourceRoutes({ store }: ControlParts): Route[] {
  const kind: ResourceKind<Source> = {
    path: '/sources',
    noun: 'a source',
    plural: 'sources',
    action: 'source',
    subject: 'source',
    changedBy: 'admin',
    notFound: 'source_not_found',
    answer: SOURCE.view,
    stored: () => store.configuration().sources,
    view: sourceView,
    viewFor:
      ({ role }) =>
      (source) =>
        sourceView(role !== 'viewer' ? source : { ...source, writeKeys: source.writeKeys.map(maskedWriteKey) }),
    hasText: SOURCE.hasText,
    sourcesOf: ({ id }) => [id],
    checkChange: rejectBuiltIn,
  }
  return [
    listRoute(kind),
    createRoute(kind, {
      description: 'If you leave out `writeKeys`, one write key is generated.',
      body: SOURCE.create,
      query: CREATION_QUERY,
      errors: ['write_key_taken'],
      others: ({ sources }) => sources,
      wanted: (body) => {
        const source: NewSource = { ...body, writeKeys: body.writeKeys ?? [generateWriteKey()] }
        return () => source
      },
      create: (wanted, audit) => store.resources.createSource(wanted, audit),
    }),
    readRoute(kind),
    updateRoute(kind, {
      description:
        'Changes only the fields that you send. `writeKeys` replaces all existing write keys, and `privacy` all existing rules; null removes all rules. Editors can only change `privacy`.',
      access: { role: 'editor', sources: 'limited', fields: ['privacy'] },
      body: SOURCE.patch,
      errors: ['write_key_taken', 'built_in_source'],
      wanted: ({ privacy, ...rest }) => {
        const changed: Partial<NewSource> = privacy === undefined ? rest : { ...rest, privacy: privacy ?? [] }
        return () => changed
      },
      update: (id, change, audit) => store.resources.updateSource(id, change, audit),
    }),
    deleteRoute(kind, {
      description: 'Afterwards, requests with its write keys are rejected. Messages that were already accepted are still delivered.',
      errors: ['built_in_source'],
      remove: (id, audit, check) => store.resources.deleteSource(id, audit, check),
    }),
    ...writeKeyRoutes(store, kind),
  ]
}

function writeKeyRoutes(store: Store, kind: ResourceKind<Source>): Route[] {
  async function change(what: string, id: string | undefined, actor: Actor, to: (writeKeys: readonly string[]) => string[]) {
    const checked = (before: Source): Partial<NewSource> => {
      rejectBuiltIn(before)
      return { writeKeys: to(before.writeKeys) }
    }
    return sourceView(found(kind, await store.resources.updateSource(id ?? '', checked, auditOf(kind, actor, what))))
  }
  return [
    route('POST', '/sources/:id/write-keys', {
      summary: 'Add a write key to a source',
      access: { role: 'admin', sources: 'all', subject: 'source' },
      description: 'If you leave out `key`, a write key is generated.',
      body: NEW_WRITE_KEY,
      status: 201,
      answer: SOURCE_WITH_KEY,
      errors: ['source_not_found', 'write_key_taken', 'too_many_write_keys', 'built_in_source'],
      async handle({ params, body, actor }) {
        const key = body.key ?? generateWriteKey()
        const source = await change('add-write-key', params['id'], actor, (writeKeys) => {
          if (writeKeys.includes(key))
            throw new ApiError('write_key_taken', {
              message: 'The source already has this write key. Choose another key, or leave it out to get a new one.',
              field: 'key',
            })
          if (writeKeys.length >= MAX_WRITE_KEYS)
            throw new ApiError('too_many_write_keys', {
              message: `The source has ${MAX_WRITE_KEYS} write keys, which is the maximum. Remove a key first.`,
            })
          return [...writeKeys, key]
        })
        return { ...source, key }
      },
    }),
    route('DELETE', '/sources/:id/write-keys/:key', {
      summary: 'Remove a write key from a source',
      access: { role: 'admin', sources: 'all', subject: 'source' },
      description: 'Afterwards, requests with the key are rejected. The last write key of a source cannot be removed.',
      status: 204,
      errors: ['source_not_found', 'write_key_not_found', 'last_write_key', 'built_in_source'],
      async handle({ params, actor }) {
        await change('remove-write-key', params['id'], actor, (writeKeys) => {
          const rest = writeKeys.filter((key) => key !== params['key'])
          if (rest.length === writeKeys.length) throw new ApiError('write_key_not_found')
          if (rest.length === 0) throw new ApiError('last_write_key')
          return rest
        })
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
