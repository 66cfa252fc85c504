// What the process answers besides the two APIs: whether it is well, its metrics, its reference, and access tokens. Served
// by app.ts and by stages without routes of this kind; e2e/api-description.test.ts holds the two together.

import type { JsonSchema } from '../../api/schema.ts'
import type { Answer, Operation } from './operation.ts'
import { OAUTH, SERVICE } from './tags.ts'

const OK: JsonSchema = {
  title: 'Success',
  type: 'object',
  properties: { success: { type: 'boolean', const: true } },
  required: ['success'],
}

export function serviceOperations(): Operation[] {
  return [
    tokenOperation(),
    get('/healthz', 'getHealthz', 'Whether the process is alive', { description: 'It is.', type: 'application/json', schema: OK }),
    {
      ...get('/readyz', 'getReadyz', 'Whether the store can be used', { description: 'It can.', type: 'application/json', schema: OK }),
      errors: ['store_unavailable'],
    },
    {
      ...get('/metrics', 'getMetrics', 'Metrics for Prometheus', {
        description: 'In the text format of Prometheus; docs/reference/metrics.md names them all.',
        type: 'text/plain',
        schema: { type: 'string' },
      }),
      description: 'SWITCHYARD_METRICS says who may read it: everybody, who has a control token, or nobody.',
      errors: ['unauthorized'],
    },
    get('/docs/openapi.json', 'getDocsOpenapiJson', 'The OpenAPI document: the same as /api/openapi.json, without a token', {
      description: 'OpenAPI 3.1.',
      type: 'application/json',
      schema: { type: 'object', additionalProperties: true },
    }),
  ]
}

function get(path: string, id: string, summary: string, answer: Omit<Answer, 'status'>): Operation {
  return {
    method: 'get',
    path,
    id,
    tag: SERVICE,
    summary,
    security: 'none',
    parameters: [],
    answers: [{ status: 200, ...answer }],
    errors: [],
  }
}

/** Errors are those of RFC 6749, in its own shape. */
function tokenOperation(): Operation {
  const constant = (value: string): JsonSchema => ({ type: 'string', const: value })
  const schema: JsonSchema = {
    type: 'object',
    properties: {
      grant_type: constant('client_credentials'),
      client_assertion_type: constant('urn:ietf:params:oauth:client-assertion-type:jwt-bearer'),
      client_assertion: {
        type: 'string',
        description:
          'A JWT (RS256, ES256 or EdDSA) that lives at most 5 minutes and is good once. Header: `kid`. Claims: `sub` and `iss` the application’s id, `aud` the address of this authorization server, `iat`, `exp`, `jti`.',
      },
      client_id: { type: 'string', description: 'May be left out: the assertion says who it is.' },
      scope: { ...constant('tracking_api:write'), description: 'May be left out.' },
    },
    required: ['grant_type', 'client_assertion_type', 'client_assertion'],
  }
  const failed: JsonSchema = {
    title: 'OAuthError',
    type: 'object',
    properties: { error: { type: 'string' }, error_description: { type: 'string' } },
    required: ['error'],
  }
  const refusal = (status: number, description: string): Answer => ({ status, description, type: 'application/json', schema: failed })
  return {
    method: 'post',
    path: '/oauth2/token',
    id: 'postOauth2Token',
    tag: OAUTH,
    summary: 'Issues an access token for the tracking API',
    security: 'none',
    parameters: [],
    body: { type: 'application/x-www-form-urlencoded', required: true, schema },
    answers: [
      {
        status: 200,
        description: 'To be sent as Authorization: Bearer, with `writeKey` in the body of the call.',
        type: 'application/json',
        schema: {
          title: 'AccessToken',
          type: 'object',
          properties: {
            access_token: { type: 'string' },
            token_type: constant('Bearer'),
            expires_in: { type: 'integer', description: 'Seconds.' },
            scope: { type: 'string' },
          },
          required: ['access_token', 'token_type', 'expires_in'],
        },
      },
      refusal(400, '`invalid_request`, `unsupported_grant_type`, `invalid_scope`'),
      refusal(401, '`invalid_client`: the assertion is not valid or was used before, or its application does not exist.'),
      refusal(413, '`invalid_request`: the body is too large.'),
      refusal(415, '`invalid_request`: the body is not a form, or is compressed.'),
      refusal(500, '`server_error`: the service failed unexpectedly. Its log has the details.'),
      refusal(
        503,
        '`temporarily_unavailable`: the store is unavailable. Wait for the number of seconds in the Retry-After header, then try again.',
      ),
    ],
    errors: [],
  }
}
