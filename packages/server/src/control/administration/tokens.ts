// Routes for control tokens. A token has a name and a role, is shown once when it is created, and can be revoked. The first admin token, from
// the settings or from the first start, is in the list as well, but can only be changed in the settings, so that there is always an admin.

import { isoTime } from '@switchyard/protocol'
import { displayName } from '../../api/resources/names.ts'
import { readOnly, resource } from '../../api/resources/resource.ts'
import { nullable, object, oneOf, string, time, withDefault } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import type { ControlToken, Role } from '../../store/store.ts'
import { FIRST_TOKEN, generateToken, hashToken } from '../access/admin-token.ts'
import { audited } from '../routes/audit-entries.ts'
import { listAnswer, listQuery, pageAnswer, pageOf, pageRequest } from '../routes/query.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

const MAX_TOKENS = 100
const ROLES = ['admin', 'viewer'] as const satisfies readonly Role[]

const TOKEN = resource(
  {
    id: readOnly(string()),
    name: displayName('The display name. It is also shown in the audit log.'),
    role: withDefault(
      oneOf(ROLES, {
        description: 'A viewer can only read, and cannot see write keys, the header values of destinations or the query values of URLs.',
      }),
      'viewer',
    ),
    createdAt: readOnly(nullable(time({ description: 'When the token was created; null for the first admin token.' }))),
    lastUsedAt: readOnly(nullable(time({ description: 'When the token was last used, to the minute; null if it was never used.' }))),
  },
  { title: 'Token', description: 'A token of the control API.' },
)
const TOKEN_ONCE = object({ ...TOKEN.viewFields, token: string({ description: 'The token itself. It is shown only once.' }) })

type ListedToken = Pick<ControlToken, 'id' | 'name' | 'role' | 'createdAtMs'>

/** The first admin token. Its creation time of 0 sorts it before all others. */
const FIRST: ListedToken = { ...FIRST_TOKEN, role: 'admin', createdAtMs: 0 }

export function tokenRoutes({ store, access }: ControlParts): Route[] {
  return [
    route('GET', '/tokens', {
      summary: 'List control tokens',
      description:
        'The first admin token (from `SWITCHYARD_ADMIN_TOKEN` or from the first start) is at the top of the list. The others follow, oldest first.',
      query: listQuery({}),
      answer: listAnswer(TOKEN.view),
      async handle({ query }) {
        const lastUses = await access.lastUses()
        const page = pageOf([FIRST, ...store.configuration().tokens.values()], pageRequest('tokens', query))
        return pageAnswer('tokens', page, (token) => tokenView(token, lastUses.get(token.id)))
      },
    }),
    route('POST', '/tokens', {
      summary: 'Create a control token',
      description: 'Store the token now: no later response contains it.',
      body: TOKEN.create,
      status: 201,
      answer: TOKEN_ONCE,
      errors: ['too_many_tokens'],
      async handle({ body, actor }) {
        const token = generateToken()
        const audit = audited<ControlToken>(actor, 'token.create', auditView)
        const created = await store.resources.createToken(({ tokens }) => {
          if (tokens.size >= MAX_TOKENS)
            throw new ApiError('too_many_tokens', {
              message: `There are ${MAX_TOKENS} control tokens, which is the maximum. Revoke a token first.`,
            })
          return { ...body, sources: 'all', expiresAtMs: null, owner: null, hash: hashToken(token) }
        }, audit)
        return { ...tokenView(created, undefined), token }
      },
    }),
    route('DELETE', '/tokens/:id', {
      summary: 'Revoke a control token',
      description: 'All sessions that were started with the token end immediately.',
      status: 204,
      errors: ['token_not_found', 'token_of_settings'],
      async handle({ params, actor }) {
        const id = params['id'] ?? ''
        if (id === FIRST_TOKEN.id) throw new ApiError('token_of_settings')
        const audit = audited<ControlToken>(actor, 'token.delete', auditView)
        if (!(await store.resources.deleteToken(id, audit))) throw new ApiError('token_not_found')
      },
    }),
  ]
}

function tokenView(token: ListedToken, usedAtMs: number | undefined) {
  return { ...token, createdAt: token.id === FIRST_TOKEN.id ? null : token.createdAtMs, lastUsedAt: usedAtMs ?? null }
}

/** Leaves out the hash. */
function auditView({ id, name, role, createdAtMs }: ControlToken) {
  return { id, name, role, createdAt: isoTime(createdAtMs) }
}
