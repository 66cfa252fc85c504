// Routes for control tokens. A token has a name, a role and a scope, may expire, is shown once when it is created, and can be revoked. The first admin token, from
// the settings or from the first start, is in the list as well, but can only be changed in the settings, so that there is always an admin.

import { isoTime, parseTime } from '@switchyard/protocol'
import { displayName } from '../../api/resources/names.ts'
import { readOnly, resource } from '../../api/resources/resource.ts'
import { sourceScope } from '../../api/resources/source-scope.ts'
import { invalidField, nullable, object, oneOf, optional, string, time, withDefault } from '../../api/schema.ts'
import { type Granted, isWithin } from '../../api/settings/role-rules.ts'
import { ApiError } from '../../errors.ts'
import {
  type Actor,
  type ControlToken,
  type NewControlToken,
  ROLES,
  type Store,
  SYSTEM_SOURCE,
  type TokenOwner,
} from '../../store/store.ts'
import { FIRST_TOKEN, generateToken, hashToken } from '../access/admin-token.ts'
import { audited } from '../routes/audit-entries.ts'
import { listAnswer, listQuery, pageAnswer, pageOf, pageRequest } from '../routes/query.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

/** Those that belong to nobody, and those of one person and of all people. */
const MAX_TOKENS = 100
const MAX_OWN_TOKENS = 20
const MAX_OWNED_TOKENS = 2_000

const ROLE = oneOf(ROLES, {
  description:
    'A viewer can only read, and cannot see write keys, the header values of destinations or the query values of URLs. An editor can also change what belongs to its sources. An admin can do everything. If left out: for a token of a person, the role of the person, otherwise viewer.',
})
const SOURCES_TEXT =
  'The sources whose data the token can read and change: `all`, or a list of ids. An admin always has all. If left out: for a token of a person, the sources of the person, otherwise all.'

const TOKEN = resource(
  {
    id: readOnly(string()),
    name: displayName('The display name. It is also shown in the audit log.'),
    role: { create: optional(ROLE), view: ROLE },
    sources: { create: optional(sourceScope(SOURCES_TEXT, 1)), view: sourceScope(SOURCES_TEXT) },
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
export const TOKEN_ONCE = object({ ...TOKEN.viewFields, token: string({ description: 'The token itself. It is shown only once.' }) })

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

/** Makes a token. `actor` is who makes it, `owner` whose it is. */
export async function createToken(
  store: Pick<Store, 'resources'>,
  {
    actor,
    wanted,
    owner,
    nowMs,
  }: { actor: Actor; wanted: Omit<NewControlToken, 'hash' | 'owner'>; owner: TokenOwner | null; nowMs: number },
) {
  const token = generateToken()
  const audit = audited<ControlToken>(actor, 'token.create', auditView, () => null)
  const created = await store.resources.createToken(({ tokens, sources: known }) => {
    if (wanted.sources !== 'all') checkScope(known, wanted.sources)
    checkNumber([...tokens.values()], owner, nowMs)
    return { ...wanted, owner, hash: hashToken(token) }
  }, audit)
  return { ...tokenView(created, undefined), token }
}

export function tokenRoutes({ store, clock, access }: ControlParts): Route[] {
  return [
    route('GET', '/tokens', {
      summary: 'List control tokens',
      access: { role: 'viewer', sources: 'limited' },
      description:
        'The first admin token (from `SWITCHYARD_ADMIN_TOKEN` or from the first start) is at the top of the list. The others follow, oldest first. People who are not admins see only their own tokens. If the access of a token is limited to some sources, the list has only the token itself.',
      query: listQuery({}),
      answer: listAnswer(TOKEN.view),
      async handle({ query, actor, role, sources, exchange }) {
        const lastUses = await access.lastUses()
        const all = [FIRST, ...access.tokens()]
        const personId = exchange.caller?.person?.personId
        const isShown = (token: ListedToken): boolean => {
          if (personId !== undefined && role !== 'admin')
            return actor.type === 'person' ? token.owner?.personId === personId : token.id === actor.id
          // A token belongs to no source, so a limited caller sees only its own.
          return sources === 'all' || token.id === actor.id
        }
        const page = pageOf(all.filter(isShown), pageRequest('tokens', query))
        return pageAnswer('tokens', page, (token) => tokenView(token, lastUses.get(token.id)))
      },
    }),
    route('POST', '/tokens', {
      summary: 'Create a control token',
      access: { role: 'admin', sources: 'all', own: true },
      description:
        'Store the token now: no later response contains it. A person makes tokens for themselves, with at most their own role and sources; such a token works only while the person has access. A token can only make tokens if it has the role admin.',
      body: TOKEN.create,
      status: 201,
      answer: TOKEN_ONCE,
      errors: ['too_many_tokens'],
      async handle({ body, actor, exchange, ...caller }) {
        const { expiresAt, ...rest } = body
        const nowMs = clock.wallMs()
        const isPerson = actor.type === 'person'
        const role = rest.role ?? (isPerson ? caller.role : 'viewer')
        const sources = rest.sources ?? (isPerson && role !== 'admin' ? caller.sources : 'all')
        if (isPerson) checkOwn({ role, sources }, caller)
        const expiresAtMs = expiresAt === null ? null : (parseTime(expiresAt) ?? null)
        if (expiresAtMs !== null && expiresAtMs <= nowMs) throw invalidField('expiresAt', 'must be in the future')
        if (role === 'admin' && sources !== 'all')
          throw invalidField('sources', 'must be "all" for a token with the role admin; choose the role editor or viewer for some sources')
        const owner = exchange.caller?.person ?? null
        return createToken(store, { actor, wanted: { name: rest.name, role, sources, expiresAtMs }, owner, nowMs })
      },
    }),
    route('DELETE', '/tokens/:id', {
      summary: 'Revoke a control token',
      access: { role: 'admin', sources: 'all', own: true },
      description:
        'All sessions that were started with the token end immediately. People who are not admins can revoke their own tokens, and a token can revoke itself.',
      status: 204,
      errors: ['token_not_found', 'token_of_settings'],
      async handle({ params, actor, role, exchange }) {
        const id = params['id'] ?? ''
        const owner = access.tokens().find((token) => token.id === id)?.owner
        const isOwn = id === actor.id || (owner != null && owner.personId === exchange.caller?.person?.personId)
        if (role !== 'admin' && !isOwn) throw new ApiError('token_not_found')
        if (id === FIRST_TOKEN.id) throw new ApiError('token_of_settings')
        const audit = audited<ControlToken>(actor, 'token.delete', auditView, () => null)
        if (!(await store.resources.deleteToken(id, audit))) throw new ApiError('token_not_found')
      },
    }),
  ]
}

/** A person gives a token at most what they have. A source out of scope is refused like one that does not exist. */
function checkOwn(wanted: Granted, own: Granted): void {
  if (isWithin(wanted, own)) return
  if (own.sources !== 'all' && wanted.sources !== 'all' && isWithin({ ...wanted, sources: own.sources }, own))
    checkScope(new Map(own.sources.map((id) => [id, null])), wanted.sources)
  const scope = own.sources === 'all' ? 'all sources' : 'some sources'
  throw new ApiError('forbidden', {
    message: `A token of yours can have at most the role ${own.role} with ${scope}, like you. Ask an admin for more.`,
  })
}

function checkNumber(tokens: readonly ControlToken[], owner: TokenOwner | null, nowMs: number): void {
  const owned = tokens.filter((token) => token.owner !== null)
  const tooMany = (max: number, whose: string): ApiError =>
    new ApiError('too_many_tokens', { message: `There are ${max} control tokens${whose}, which is the maximum. Revoke a token first.` })
  if (owner === null) {
    if (tokens.length - owned.length >= MAX_TOKENS) throw tooMany(MAX_TOKENS, '')
    return
  }
  const own = owned.filter((token) => token.owner?.personId === owner.personId && (token.expiresAtMs ?? nowMs) >= nowMs)
  if (own.length >= MAX_OWN_TOKENS) throw tooMany(MAX_OWN_TOKENS, ' of yours')
  if (owned.length >= MAX_OWNED_TOKENS) throw tooMany(MAX_OWNED_TOKENS, ' of people')
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
function checkScope(known: Pick<ReadonlyMap<string, unknown>, 'has'>, sources: readonly string[]): void {
  for (const [index, id] of sources.entries()) {
    if (id === SYSTEM_SOURCE)
      throw invalidField(`sources[${index}]`, 'is the source of messages about the service itself; only "all" includes it')
    if (!known.has(id)) throw invalidField(`sources[${index}]`, 'is not the id of a source. GET /api/sources lists all sources')
  }
}
