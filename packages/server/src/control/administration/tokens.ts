// Routes for control tokens. A token has a name, a role and a scope, may expire, is shown once when it is created, and can be revoked. The first admin token, from
// the settings or from the first start, is in the list as well, but can only be changed in the settings, so that there is always an admin.

import { isoTime, parseTime } from '@switchyard/protocol'
import { displayName } from '../../api/resources/names.ts'
import { readOnly, resource } from '../../api/resources/resource.ts'
import { sourceScope } from '../../api/resources/source-scope.ts'
import { invalidField, nullable, object, oneOf, string, time, withDefault } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import { type Configuration, type ControlToken, ROLES, SYSTEM_SOURCE } from '../../store/store.ts'
import { FIRST_TOKEN, generateToken, hashToken } from '../access/admin-token.ts'
import { audited } from '../routes/audit-entries.ts'
import { listAnswer, listQuery, pageAnswer, pageOf, pageRequest } from '../routes/query.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

const MAX_TOKENS = 100

const TOKEN = resource(
  {
    id: readOnly(string()),
    name: displayName('The display name. It is also shown in the audit log.'),
    role: withDefault(
      oneOf(ROLES, {
        description:
          'A viewer can only read, and cannot see write keys, the header values of destinations or the query values of URLs. An editor can also change what belongs to its sources. An admin can do everything.',
      }),
      'viewer',
    ),
    sources: withDefault(
      sourceScope('The sources whose data the token can read and change: `all`, or a list of ids. An admin always has all.'),
      'all',
    ),
    expiresAt: withDefault(nullable(time({ description: 'When the token stops working; null if it does not expire.' })), null),
    owner: readOnly(
      nullable(
        object({ subject: string(), email: nullable(string()) }, { description: 'The person to whom the token belongs; null if nobody.' }),
      ),
    ),
    createdAt: readOnly(nullable(time({ description: 'When the token was created; null for the first admin token.' }))),
    lastUsedAt: readOnly(nullable(time({ description: 'When the token was last used, to the minute; null if it was never used.' }))),
  },
  { title: 'Token', description: 'A token of the control API.' },
)
const TOKEN_ONCE = object({ ...TOKEN.viewFields, token: string({ description: 'The token itself. It is shown only once.' }) })

type ListedToken = Omit<ControlToken, 'hash'>

/** The first admin token. Its creation time of 0 sorts it before all others. */
const { id: FIRST_ID, name: FIRST_NAME } = FIRST_TOKEN
const FIRST: ListedToken = {
  id: FIRST_ID,
  name: FIRST_NAME,
  role: 'admin',
  sources: 'all',
  expiresAtMs: null,
  owner: null,
  createdAtMs: 0,
}

export function tokenRoutes({ store, clock, access }: ControlParts): Route[] {
  return [
    route('GET', '/tokens', {
      summary: 'List control tokens',
      access: { role: 'viewer', sources: 'limited' },
      description:
        'The first admin token (from `SWITCHYARD_ADMIN_TOKEN` or from the first start) is at the top of the list. The others follow, oldest first. If your access is limited to some sources, the list has only your own token.',
      query: listQuery({}),
      answer: listAnswer(TOKEN.view),
      async handle({ query, actor, sources }) {
        const lastUses = await access.lastUses()
        // A token belongs to no source, so a limited caller sees only its own.
        const all = [FIRST, ...access.tokens()]
        const shown = sources === 'all' ? all : all.filter(({ id }) => id === actor.id)
        const page = pageOf(shown, pageRequest('tokens', query))
        return pageAnswer('tokens', page, (token) => tokenView(token, lastUses.get(token.id)))
      },
    }),
    route('POST', '/tokens', {
      summary: 'Create a control token',
      access: { role: 'admin', sources: 'all' },
      description: 'Store the token now: no later response contains it.',
      body: TOKEN.create,
      status: 201,
      answer: TOKEN_ONCE,
      errors: ['too_many_tokens'],
      async handle({ body, actor }) {
        const token = generateToken()
        const { expiresAt, sources, ...rest } = body
        const expiresAtMs = expiresAt === null ? null : (parseTime(expiresAt) ?? null)
        if (expiresAtMs !== null && expiresAtMs <= clock.wallMs()) throw invalidField('expiresAt', 'must be in the future')
        if (rest.role === 'admin' && sources !== 'all')
          throw invalidField('sources', 'must be "all" for a token with the role admin; choose the role editor or viewer for some sources')
        const audit = audited<ControlToken>(actor, 'token.create', auditView, () => null)
        const created = await store.resources.createToken(({ tokens, sources: known }) => {
          if (sources !== 'all') checkScope(known, sources)
          if (tokens.size >= MAX_TOKENS)
            throw new ApiError('too_many_tokens', {
              message: `There are ${MAX_TOKENS} control tokens, which is the maximum. Revoke a token first.`,
            })
          return { ...rest, sources, expiresAtMs, owner: null, hash: hashToken(token) }
        }, audit)
        return { ...tokenView(created, undefined), token }
      },
    }),
    route('DELETE', '/tokens/:id', {
      summary: 'Revoke a control token',
      access: { role: 'admin', sources: 'all' },
      description: 'All sessions that were started with the token end immediately.',
      status: 204,
      errors: ['token_not_found', 'token_of_settings'],
      async handle({ params, actor }) {
        const id = params['id'] ?? ''
        if (id === FIRST_TOKEN.id) throw new ApiError('token_of_settings')
        const audit = audited<ControlToken>(actor, 'token.delete', auditView, () => null)
        if (!(await store.resources.deleteToken(id, audit))) throw new ApiError('token_not_found')
      },
    }),
  ]
}

function tokenView(token: ListedToken, usedAtMs: number | undefined) {
  return { ...token, createdAt: token.id === FIRST_TOKEN.id ? null : token.createdAtMs, lastUsedAt: usedAtMs ?? null }
}

/** Leaves out the hash. */
function auditView({ id, name, role, sources, expiresAtMs, createdAtMs }: ControlToken) {
  const expiresAt = expiresAtMs === null ? null : isoTime(expiresAtMs)
  return { id, name, role, sources: sources === 'all' ? sources : [...sources], expiresAt, createdAt: isoTime(createdAtMs) }
}

/** The source `system` is part of `all` only. */
function checkScope(known: Configuration['sources'], sources: readonly string[]): void {
  for (const [index, id] of sources.entries()) {
    if (id === SYSTEM_SOURCE)
      throw invalidField(`sources[${index}]`, 'is the source of messages about the service itself; only "all" includes it')
    if (!known.has(id)) throw invalidField(`sources[${index}]`, 'is not the id of a source. GET /api/sources lists all sources')
  }
}
