// Routes for OAuth applications: their keys and their sources. Only public keys are stored. Changes apply from the next request on, because the
// application of an access token is looked up for every request.

import { randomBytes } from 'node:crypto'
import { isoTime } from '@switchyard/protocol'
import { displayName, urlSafeId } from '../../api/resources/names.ts'
import { readOnly, resource } from '../../api/resources/resource.ts'
import { array, type Infer, invalidField, nullable, object, optional, string, time, withDefault } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import { MAX_KEY_LENGTH, parsePublicKey } from '../../oauth/keys.ts'
import type { Actor, ChangeOf, NewOAuthApp, OAuthApp, OAuthKey, Store } from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
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
import { checkSources } from '../sources/sources.ts'

const MAX_KEYS = 20
const MAX_SOURCES = 1_000

const KEY_ID = urlSafeId('The id of the key. Clients that sign with this key pass it as `keyId`.')
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
const KEY_VIEW = object({ id: string(), publicKeyPem: string(), createdAt: time() }, { title: 'OAuthKey' })
const APP = resource(
  {
    id: readOnly(string({ description: 'The id of the application. OAuth clients pass it as `clientId`.' })),
    name: displayName(),
    sourceIds: withDefault(
      array(string(), {
        max: MAX_SOURCES,
        identity: (id) => id,
        description: 'The sources that access tokens of the application may send to.',
      }),
      [],
    ),
    keys: {
      create: withDefault(
        array(NEW_KEY, { max: MAX_KEYS, description: 'The public keys. With several keys, you can replace one without interruption.' }),
        [],
      ),
      view: array(KEY_VIEW),
    },
    tokensRevokedBefore: readOnly(
      nullable(time({ description: 'Access tokens that were issued before this time are rejected; null if tokens were never revoked.' })),
    ),
    createdAt: readOnly(time()),
  },
  { title: 'OAuthApp', description: 'An application that can request access tokens for the tracking API.' },
)
const APP_WITH_KEY = object({ ...APP.viewFields, keyId: string({ description: 'The id of the key that was added.' }) })

export function oauthAppRoutes({ store, clock }: ControlParts): Route[] {
  const kind: ResourceKind<OAuthApp> = {
    path: '/oauth-apps',
    noun: 'an OAuth application',
    plural: 'OAuth applications',
    action: 'oauth-app',
    subject: 'oauthApp',
    changedBy: 'admin',
    sourcesOf: ({ sourceIds }) => sourceIds,
    notFound: 'oauth_app_not_found',
    answer: APP.view,
    stored: () => store.configuration().oauthApps,
    view: oauthAppView,
  }
  return [
    listRoute(kind),
    createRoute(kind, {
      body: APP.create,
      query: CREATION_QUERY,
      others: ({ oauthApps }) => oauthApps,
      wanted: ({ name, sourceIds, keys }) => {
        const app: NewOAuthApp = { name, sourceIds, keys: newKeys(keys, clock.wallMs()), revokedBeforeMs: null }
        return (configuration) => {
          checkSources(configuration, sourceIds)
          return app
        }
      },
      create: (wanted, audit) => store.resources.createOAuthApp(wanted, audit),
    }),
    readRoute(kind),
    updateRoute(kind, {
      description:
        'Changes only the fields that you send. `keys` replaces all existing keys. Afterwards, access tokens that were issued for a removed key are rejected.',
      body: APP.patch,
      wanted: ({ keys, ...rest }) => {
        const given = keys === undefined ? undefined : newKeys(keys, clock.wallMs())
        return (app, configuration): Partial<NewOAuthApp> => {
          checkSources(configuration, rest.sourceIds)
          return given === undefined ? rest : { ...rest, keys: keepingAge(given, app.keys) }
        }
      },
      update: (id, change, audit) => store.resources.updateOAuthApp(id, change, audit),
    }),
    deleteRoute(kind, {
      description: 'Afterwards, its access tokens are rejected.',
      remove: (id, audit, check) => store.resources.deleteOAuthApp(id, audit, check),
    }),
    ...keyRoutes(store, clock, kind),
  ]
}

function keyRoutes(store: Store, clock: Clock, kind: ResourceKind<OAuthApp>): Route[] {
  async function change(what: string, id: string | undefined, actor: Actor, to: ChangeOf<OAuthApp, NewOAuthApp>) {
    return oauthAppView(found(kind, await store.resources.updateOAuthApp(id ?? '', to, auditOf(kind, actor, what))))
  }
  return [
    route('POST', '/oauth-apps/:id/keys', {
      summary: 'Add a public key to an OAuth application',
      access: { role: 'admin', sources: 'all', subject: 'oauthApp' },
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
        return { ...(await change('add-key', params['id'], actor, added)), keyId: key.id }
      },
    }),
    route('DELETE', '/oauth-apps/:id/keys/:keyId', {
      summary: 'Remove a public key from an OAuth application',
      access: { role: 'admin', sources: 'all', subject: 'oauthApp' },
      description: 'Afterwards, access tokens that were issued for the key are rejected.',
      status: 204,
      errors: ['oauth_app_not_found', 'oauth_key_not_found'],
      async handle({ params, actor }) {
        const removed = ({ keys }: OAuthApp): Partial<NewOAuthApp> => {
          const rest = keys.filter(({ id }) => id !== params['keyId'])
          if (rest.length === keys.length) throw new ApiError('oauth_key_not_found')
          return { keys: rest }
        }
        await change('remove-key', params['id'], actor, removed)
      },
    }),
    route('POST', '/oauth-apps/:id/revoke-tokens', {
      summary: 'Revoke all access tokens of an OAuth application',
      access: { role: 'admin', sources: 'all', subject: 'oauthApp' },
      description: 'The application can request new tokens afterwards.',
      answer: APP.view,
      errors: ['oauth_app_not_found'],
      handle({ params, actor }) {
        // One millisecond later than now, so that a token issued in this millisecond is revoked too.
        const revoked = ({ revokedBeforeMs }: OAuthApp) => ({ revokedBeforeMs: Math.max(clock.wallMs(), revokedBeforeMs ?? 0) + 1 })
        return change('revoke-tokens', params['id'], actor, revoked)
      },
    }),
  ]
}

function newKeys(given: readonly Infer<typeof NEW_KEY>[], createdAtMs: number): OAuthKey[] {
  const keys = given.map((each) => newKey(each, createdAtMs))
  for (const [index, { id }] of keys.entries()) {
    if (keys.findIndex((key) => key.id === id) < index) throw invalidField(`keys[${index}].id`, 'is the same as the id of an earlier key')
  }
  return keys
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

export function oauthAppView({ keys, revokedBeforeMs, ...app }: OAuthApp) {
  return APP.viewOf({
    ...app,
    keys: keys.map(({ id, publicKeyPem, createdAtMs }) => ({ id, publicKeyPem, createdAt: isoTime(createdAtMs) })),
    tokensRevokedBefore: revokedBeforeMs === null ? null : isoTime(revokedBeforeMs),
  })
}
