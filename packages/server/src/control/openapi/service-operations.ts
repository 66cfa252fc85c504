// The operations besides the two APIs: health checks, metrics, the OpenAPI document and access tokens. They are served by app.ts and by
// stages without control routes, so they are described here by hand; e2e/control/api-description.test.ts compares the two.

import type { JsonSchema } from '../../api/schema.ts'
import { type Answer, getOperation, type Operation, objectSchema } from './operation.ts'
import { OAUTH, OPENAPI, SERVICE } from './tags.ts'

const OK = objectSchema('Success', { success: { type: 'boolean', const: true } }, ['success'])
const SUCCESS = { description: 'Success.', type: 'application/json', schema: OK }

export function serviceOperations(): Operation[] {
  return [
    tokenOperation(),
    getOperation('/healthz', 'getHealthz', SERVICE, 'Check whether the process is alive', SUCCESS),
    {
      ...getOperation('/readyz', 'getReadyz', SERVICE, 'Check whether the service can accept messages', SUCCESS),
      description: 'Checks whether the store can commit a transaction.',
      errors: ['store_unavailable'],
    },
    {
      ...getOperation('/metrics', 'getMetrics', SERVICE, 'Retrieve metrics for Prometheus', {
        description: 'The metrics, in the text format of Prometheus. The metrics reference describes each of them.',
        type: 'text/plain',
        schema: { type: 'string' },
      }),
      description:
        'The setting SWITCHYARD_METRICS determines who may read the metrics: everybody, callers with a control token, or nobody.',
      errors: ['unauthorized'],
    },
    {
      ...getOperation('/docs/openapi.json', 'getDocsOpenapiJson', OPENAPI, 'Retrieve the OpenAPI document without a token', {
        ...SUCCESS,
        schema: { type: 'object', additionalProperties: true },
      }),
      description: 'The same document as `GET /api/openapi.json`.',
    },
  ]
}

/** Its errors have the codes and the shape that RFC 6749 defines. */
function tokenOperation(): Operation {
  const constant = (value: string): JsonSchema => ({ type: 'string', const: value })
  const schema = objectSchema(
    undefined,
    {
      grant_type: constant('client_credentials'),
      client_assertion_type: constant('urn:ietf:params:oauth:client-assertion-type:jwt-bearer'),
      client_assertion: {
        type: 'string',
        description:
          'A signed JWT (RS256, ES256 or EdDSA) that is valid for at most 5 minutes and can be used once. Header: `kid`, the id of the key. Claims: `sub` and `iss` (the id of the application), `aud` (the address of this authorization server), `iat`, `exp` and `jti`.',
      },
      client_id: { type: 'string', description: 'Optional, because the assertion identifies the application.' },
      scope: { ...constant('tracking_api:write'), description: 'Optional.' },
    },
    ['grant_type', 'client_assertion_type', 'client_assertion'],
  )
  const failed = objectSchema('OAuthError', { error: { type: 'string' }, error_description: { type: 'string' } }, ['error'])
  const oauthError = (status: number, description: string): Answer => ({ status, description, type: 'application/json', schema: failed })
  return {
    method: 'post',
    path: '/oauth2/token',
    id: 'postOauth2Token',
    tag: OAUTH,
    summary: 'Request an access token for the tracking API',
    security: 'none',
    parameters: [],
    body: { type: 'application/x-www-form-urlencoded', required: true, schema },
    answers: [
      {
        status: 200,
        description: 'The access token. Send it as `Authorization: Bearer <token>`, with `writeKey` in the body of the request.',
        type: 'application/json',
        schema: objectSchema(
          'AccessToken',
          {
            access_token: { type: 'string' },
            token_type: constant('Bearer'),
            expires_in: { type: 'integer', description: 'How long the token is valid, in seconds.' },
            scope: { type: 'string' },
          },
          ['access_token', 'token_type', 'expires_in'],
        ),
      },
      oauthError(400, '`invalid_request`, `unsupported_grant_type` or `invalid_scope`: a parameter of the request is not valid.'),
      oauthError(401, '`invalid_client`: the assertion is not valid or was used before, or its application does not exist.'),
      oauthError(413, '`invalid_request`: the body is too large.'),
      oauthError(415, '`invalid_request`: the body is not a form, or is compressed.'),
      oauthError(500, '`server_error`: the service failed unexpectedly. Its log has the details.'),
      oauthError(
        503,
        '`temporarily_unavailable`: the store is unavailable. Wait for the number of seconds in the Retry-After header, then try again.',
      ),
    ],
    errors: [],
  }
}
