// OAuth 2.0 for the tracking API: the token endpoint, and the validation of access tokens for ingest. An application
// authenticates with a signed assertion; each assertion can be used for one token. The rest of RFC 6749 (users, redirects,
// refresh tokens) is not needed, because the clients are servers.

import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ApiError, errorBody } from '../errors.ts'
import { type Store, StoreUnavailable } from '../store/store.ts'
import type { Clock } from '../timing/clock.ts'
import { createAccessTokens, SCOPE, TOKEN_LIFE_S } from './access-token.ts'
import { CLOCK_SKEW_MS, checkAssertion } from './client-assertion.ts'
import { LruCache } from './lru-cache.ts'
import { addressOf, isAddressOf } from './server-address.ts'
import { parseTokenRequest, TokenError } from './token-request.ts'

export interface OAuthDeps {
  store: Pick<Store, 'configuration' | 'oauth' | 'secrets'>
  clock: Clock
  /** Returns the scheme and host that the sender requested. Forwarding headers count only if they come from a trusted proxy. */
  requestedOrigin: (request: IncomingMessage) => { protocol: 'http' | 'https'; host: string | undefined }
}

export interface OAuth {
  /** Registers the token endpoint. */
  register(app: FastifyInstance): Promise<void>
  /** Returns the ids of the sources that an access token may send to, or null if the token is invalid. */
  sourcesOf(token: string): Promise<ReadonlySet<string> | null>
}

const PREFIX = '/oauth2'
const TOKEN_PATH = '/token'
const HEADERS = { 'cache-control': 'no-store', pragma: 'no-cache', 'x-content-type-options': 'nosniff' }
/** An assertion signed with the largest accepted key has about 2 KB. */
const MAX_BODY_BYTES = 16 * 1024
const RETRY_AFTER_SECONDS = 1
/** How long a used assertion is remembered after it has expired, in case the clock is set back. */
const REMEMBER_EXPIRED_MS = 60 * 60 * 1_000
/** The same rejection of the same application is logged at most once in this time. */
const LOG_EVERY_MS = 60_000
const MAX_LOGGED = 1_000
const ALREADY_USED = 'The client assertion was already used. Create a new one with a unique jti for every request.'

export function createOAuth({ store, clock, requestedOrigin }: OAuthDeps): OAuth {
  const tokens = createAccessTokens({ store, clock })
  const loggedAtMs = new LruCache<number>(MAX_LOGGED)

  /** Does not log every request: a client id is not secret, and anyone who knows one could flood the log. */
  function logRejection(request: FastifyRequest, clientId: string, reason: string): void {
    const [key, nowMs] = [`${clientId} ${reason}`, clock.scheduleMs()]
    const lastMs = loggedAtMs.get(key)
    if (lastMs !== undefined && nowMs - lastMs < LOG_EVERY_MS) return
    loggedAtMs.set(key, nowMs)
    request.log.warn({ clientId, reason }, 'a request for an access token was rejected')
  }

  async function grant(request: FastifyRequest): Promise<object> {
    const { assertion, clientId } = parseTokenRequest(typeof request.body === 'string' ? request.body : '')
    const { protocol, host } = requestedOrigin(request.raw)
    const checked = await checkAssertion(assertion, {
      configuration: store.configuration(),
      nowMs: clock.wallMs(),
      isOwnAddress: (url) => isAddressOf(url, host),
    })
    if (!checked.ok) {
      // Only for known applications: otherwise anyone could flood the log.
      if (checked.clientId !== null) logRejection(request, checked.clientId, checked.reason)
      throw new TokenError('invalid_client', checked.reason)
    }
    const { app, key, jti, expiresAtMs } = checked
    if (clientId !== undefined && clientId !== app.id) {
      throw new TokenError(
        'invalid_client',
        'The parameter client_id does not match the application that signed the client assertion. Send the matching client id or leave the parameter out.',
      )
    }
    const keepUntilMs = expiresAtMs + CLOCK_SKEW_MS + REMEMBER_EXPIRED_MS
    if (!(await store.oauth.useAssertion({ appId: app.id, jti, keepUntilMs }, clock.wallMs()))) {
      logRejection(request, app.id, ALREADY_USED)
      throw new TokenError('invalid_client', ALREADY_USED)
    }
    const access_token = await tokens.issue(app, key, addressOf(protocol, host))
    return { access_token, token_type: 'Bearer', expires_in: TOKEN_LIFE_S, scope: SCOPE }
  }

  return {
    sourcesOf: (token) => tokens.sourcesOf(token),
    async register(app) {
      await app.register(
        async (scope) => {
          scope.removeAllContentTypeParsers()
          scope.addContentTypeParser(
            'application/x-www-form-urlencoded',
            { parseAs: 'string', bodyLimit: MAX_BODY_BYTES },
            async (_request: FastifyRequest, body: string) => body,
          )
          scope.setErrorHandler((error, request, reply) => {
            const fault = faultOf(error)
            if (fault.status === 503) reply.header('retry-after', String(RETRY_AFTER_SECONDS))
            else if (fault.status >= 500) request.log.error({ err: error }, 'a token request failed')
            return reply.code(fault.status).send(fault.body)
          })
          scope.setNotFoundHandler((request, reply) => {
            if (request.url.split('?', 1)[0] !== PREFIX + TOKEN_PATH) return reply.code(404).send(errorBody(new ApiError('not_found')))
            const fault = new TokenError('invalid_request', 'Use POST to request a token.', 405)
            return reply
              .code(fault.status)
              .headers({ ...HEADERS, allow: 'POST' })
              .send(fault.body)
          })
          scope.route({
            method: 'POST',
            url: TOKEN_PATH,
            onRequest: async (request, reply) => checkHeaders(request, reply),
            handler: (request) => grant(request),
          })
        },
        { prefix: PREFIX },
      )
    },
  }
}

/** Runs before the body is read. */
function checkHeaders({ headers }: FastifyRequest, reply: FastifyReply): void {
  reply.headers(HEADERS)
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') {
    throw new TokenError('invalid_request', 'The token endpoint does not support Content-Encoding. Send the body uncompressed.', 415)
  }
}

function faultOf(error: unknown): TokenError {
  if (error instanceof TokenError) return error
  if (error instanceof StoreUnavailable) {
    return new TokenError(
      'temporarily_unavailable',
      'The store is temporarily unavailable. Wait for the number of seconds in the Retry-After header, then try again.',
      503,
    )
  }
  const { code, statusCode } = error as { code?: unknown; statusCode?: unknown }
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new TokenError('invalid_request', `The body is too large. It may have at most ${MAX_BODY_BYTES} bytes.`, 413)
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new TokenError('invalid_request', 'The Content-Type must be application/x-www-form-urlencoded.', 415)
    default:
      // Anyone can send this. It is not an error of the service, so it is not logged.
      if (statusCode === 400) return new TokenError('invalid_request', 'The request body is incomplete. Send the request again.')
      return new TokenError('server_error', 'The service failed unexpectedly. Its log has the details.', 500)
  }
}
