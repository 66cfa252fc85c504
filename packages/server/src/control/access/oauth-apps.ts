// Routes for OAuth applications: their keys and their sources. Only public keys are stored. Changes apply from the next request on, because the
// application of an access token is looked up for every request.

import { randomBytes } from 'node:crypto'
import { isoTime } from '@switchyard/protocol'
import { array, type Infer, invalidField, nullable, object, optional, patchOf, string, time, withDefault } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import { MAX_KEY_LENGTH, parsePublicKey } from '../../oauth/keys.ts'
import type { Actor, ChangeOf, Configuration, NewOAuthApp, OAuthApp, OAuthKey } from '../../store/store.ts'
import { CREATION_QUERY, checkName, nameProblem } from '../name.ts'
import { listAnswer, listQuery, pageAnswer, pageOf, pageRequest } from '../query.ts'
import { type ControlParts, checkIfMatch, type Route, route } from '../route.ts'
import { checkSources } from '../sources/sources.ts'
import { audited } from './audit.ts'

const MAX_KEYS = 20
const MAX_SOURCES = 1_000

/** A key id must work unescaped in the path of a URL, like a write key, and in the header of an assertion. */
const KEY_ID = string({
  min: 1,
  max: 100,
  pattern: '^[A-Za-z0-9][A-Za-z0-9._~-]*$',
  description: 'The id of the key. Clients that sign with this key pass it as `keyId`.',
  check: (id) =>
    /^[A-Za-z0-9][A-Za-z0-9._~-]*$/.test(id)
      ? null
      : 'must start with a letter or digit and contain only letters, digits and the characters . _ ~ -',
})
const PUBLIC_KEY = string({
  min: 1,
  max: MAX_KEY_LENGTH,
  description: 'The public key in PEM: RSA of at least 2048 bits, EC on P-256, or Ed25519. Never send the private key.',
  check: (text) => {
    const parsed = parsePublicKey(text)
    return parsed.ok ? null : parsed.problem
  },
})
const NEW_KEY = object({ id: optional(KEY_ID), publicKeyPem: PUBLIC_KEY })
const APP_FIELDS = {
  name: string({ min: 1, max: 100, description: 'The display name.', check: nameProblem }),
  sourceIds: withDefault(
    array(string(), {
      max: MAX_SOURCES,
      identity: (id) => id,
      description: 'The sources that access tokens of the application may send to.',
    }),
    [],
  ),
  keys: withDefault(
    array(NEW_KEY, { max: MAX_KEYS, description: 'The public keys. With several keys, you can replace one without interruption.' }),
    [],
  ),
}
const NEW_APP = object(APP_FIELDS)
const APP_PATCH = object(patchOf(APP_FIELDS))

const KEY_VIEW = object({ id: string(), publicKeyPem: string(), createdAt: time() }, { title: 'OAuthKey' })
const APP_VIEW_FIELDS = {
  id: string({ description: 'The id of the application. OAuth clients pass it as `clientId`.' }),
  name: string(),
  sourceIds: array(string()),
  keys: array(KEY_VIEW),
  tokensRevokedBefore: nullable(
    time({ description: 'Access tokens that were issued before this time are rejected; null if tokens were never revoked.' }),
  ),
  createdAt: time(),
}
export const OAUTH_APP = object(APP_VIEW_FIELDS, {
  title: 'OAuthApp',
  description: 'An application that can request access tokens for the tracking API.',
})
const APP_WITH_KEY = object({ ...APP_VIEW_FIELDS, keyId: string({ description: 'The id of the key that was added.' }) })

export function oauthAppRoutes({ store, clock }: ControlParts): Route[] {
  function found(app: OAuthApp | undefined): OAuthApp {
    if (app === undefined) throw new ApiError('oauth_app_not_found')
    return app
  }

  function newKeys(given: readonly Infer<typeof NEW_KEY>[]): OAuthKey[] {
    const keys = given.map((each) => newKey(each, clock.wallMs()))
    for (const [index, { id }] of keys.entries()) {
      if (keys.findIndex((key) => key.id === id) < index) throw invalidField(`keys[${index}].id`, 'is the same as the id of an earlier key')
    }
    return keys
  }

  async function change(action: string, id: string | undefined, to: ChangeOf<OAuthApp, NewOAuthApp>, actor: Actor) {
    return oauthAppView(found(await store.settings.updateOAuthApp(id ?? '', to, audited(actor, action, oauthAppView))))
  }

  return [
    route({
      method: 'GET',
      path: '/oauth-apps',
      summary: 'List OAuth applications, oldest first',
      query: listQuery({}),
      status: 200,
      answer: listAnswer(OAUTH_APP),
      errors: ['invalid_cursor'],
      handle: ({ query }) =>
        pageAnswer('oauth-apps', pageOf(store.configuration().oauthApps.values(), pageRequest('oauth-apps', query)), oauthAppView),
    }),
    route({
      method: 'POST',
      path: '/oauth-apps',
      summary: 'Create an OAuth application',
      query: CREATION_QUERY,
      body: NEW_APP,
      status: 201,
      answer: OAUTH_APP,
      tagged: true,
      errors: ['name_taken'],
      async handle({ body: { name, sourceIds, keys }, query, actor }) {
        const app: NewOAuthApp = { name, sourceIds, keys: newKeys(keys), revokedBeforeMs: null }
        const checked = (configuration: Configuration): NewOAuthApp => {
          checkName(query, name, configuration.oauthApps)
          checkSources(configuration, sourceIds)
          return app
        }
        return oauthAppView(await store.settings.createOAuthApp(checked, audited(actor, 'oauth-app.create', oauthAppView)))
      },
    }),
    route({
      method: 'GET',
      path: '/oauth-apps/:id',
      summary: 'Retrieve an OAuth application',
      status: 200,
      answer: OAUTH_APP,
      tagged: true,
      errors: ['oauth_app_not_found'],
      handle: ({ params }) => oauthAppView(found(store.configuration().oauthApps.get(params['id'] ?? ''))),
    }),
    route({
      method: 'PATCH',
      path: '/oauth-apps/:id',
      summary: 'Update an OAuth application',
      description:
        'Changes only the fields that you send. `keys` replaces all existing keys. Afterwards, access tokens that were issued for a removed key are rejected.',
      body: APP_PATCH,
      status: 200,
      answer: OAUTH_APP,
      tagged: true,
      errors: ['oauth_app_not_found'],
      handle({ params, body: { keys, ...rest }, actor, exchange }) {
        const given = keys === undefined ? undefined : newKeys(keys)
        const changed = (app: OAuthApp, configuration: Configuration): Partial<NewOAuthApp> => {
          checkIfMatch(exchange, oauthAppView(app))
          checkSources(configuration, rest.sourceIds)
          return given === undefined ? rest : { ...rest, keys: keepingAge(given, app.keys) }
        }
        return change('oauth-app.update', params['id'], changed, actor)
      },
    }),
    route({
      method: 'DELETE',
      path: '/oauth-apps/:id',
      summary: 'Delete an OAuth application',
      description: 'Afterwards, its access tokens are rejected.',
      status: 204,
      tagged: true,
      errors: ['oauth_app_not_found'],
      async handle({ params, actor, exchange }) {
        const audit = audited(actor, 'oauth-app.delete', oauthAppView)
        const check = (before: OAuthApp): void => checkIfMatch(exchange, oauthAppView(before))
        if (!(await store.settings.deleteOAuthApp(params['id'] ?? '', audit, check))) throw new ApiError('oauth_app_not_found')
      },
    }),
    route({
      method: 'POST',
      path: '/oauth-apps/:id/keys',
      summary: 'Add a public key to an OAuth application',
      description: 'If you leave out `id`, an id is generated.',
      body: NEW_KEY,
      status: 201,
      answer: APP_WITH_KEY,
      errors: ['oauth_app_not_found', 'oauth_key_taken', 'too_many_oauth_keys'],
      async handle({ params, body, actor }) {
        const key = newKey(body, clock.wallMs())
        const added = ({ keys }: OAuthApp): Partial<NewOAuthApp> => {
          if (keys.some(({ id }) => id === key.id)) throw new ApiError('oauth_key_taken', { field: 'id' })
          if (keys.length >= MAX_KEYS)
            throw new ApiError('too_many_oauth_keys', {
              message: `The OAuth application has ${MAX_KEYS} keys, which is the maximum. Remove a key first.`,
            })
          return { keys: [...keys, key] }
        }
        return { ...(await change('oauth-app.add-key', params['id'], added, actor)), keyId: key.id }
      },
    }),
    route({
      method: 'DELETE',
      path: '/oauth-apps/:id/keys/:keyId',
      summary: 'Remove a public key from an OAuth application',
      description: 'Afterwards, access tokens that were issued for the key are rejected.',
      status: 204,
      errors: ['oauth_app_not_found', 'oauth_key_not_found'],
      async handle({ params, actor }) {
        const removed = ({ keys }: OAuthApp): Partial<NewOAuthApp> => {
          const rest = keys.filter(({ id }) => id !== params['keyId'])
          if (rest.length === keys.length) throw new ApiError('oauth_key_not_found')
          return { keys: rest }
        }
        await change('oauth-app.remove-key', params['id'], removed, actor)
      },
    }),
    route({
      method: 'POST',
      path: '/oauth-apps/:id/revoke-tokens',
      summary: 'Revoke all access tokens of an OAuth application',
      description: 'The application can request new tokens afterwards.',
      status: 200,
      answer: OAUTH_APP,
      errors: ['oauth_app_not_found'],
      handle({ params, actor }) {
        // One millisecond later than now, so that a token issued in this millisecond is revoked too.
        const revoked = ({ revokedBeforeMs }: OAuthApp) => ({ revokedBeforeMs: Math.max(clock.wallMs(), revokedBeforeMs ?? 0) + 1 })
        return change('oauth-app.revoke-tokens', params['id'], revoked, actor)
      },
    }),
  ]
}

/** A key that already exists under the same id keeps its creation time. */
function keepingAge(given: readonly OAuthKey[], stored: readonly OAuthKey[]): OAuthKey[] {
  return given.map((key) => stored.find(({ id, publicKeyPem }) => id === key.id && publicKeyPem === key.publicKeyPem) ?? key)
}

function newKey({ id, publicKeyPem }: Infer<typeof NEW_KEY>, createdAtMs: number): OAuthKey {
  const parsed = parsePublicKey(publicKeyPem)
  if (!parsed.ok) throw new Error('a validated key cannot be parsed')
  return { id: id ?? `key_${randomBytes(9).toString('hex')}`, publicKeyPem: parsed.pem, createdAtMs }
}

export function oauthAppView({ id, name, sourceIds, keys, revokedBeforeMs, createdAtMs }: OAuthApp) {
  return {
    id,
    name,
    sourceIds: [...sourceIds],
    keys: keys.map((key) => ({ id: key.id, publicKeyPem: key.publicKeyPem, createdAt: isoTime(key.createdAtMs) })),
    tokensRevokedBefore: revokedBeforeMs === null ? null : isoTime(revokedBeforeMs),
    createdAt: isoTime(createdAtMs),
  }
}
