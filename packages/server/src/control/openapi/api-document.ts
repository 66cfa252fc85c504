// The OpenAPI document of the whole service: both APIs, access tokens, health checks and metrics.

import { VERSION } from '../../api/version.ts'
import type { Route } from '../routes/route.ts'
import { controlOperations } from './control-operations.ts'
import { type OpenApiDocument, openApiDocument } from './document.ts'
import { serviceOperations } from './service-operations.ts'
import { TAGS } from './tags.ts'
import { trackingOperations } from './tracking-operations.ts'

export type { OpenApiDocument } from './document.ts'

const DESCRIPTION = [
  'Send messages to the tracking API. The service stores them and delivers them to webhooks. With the control API you configure sources and destinations, and see what happened to each message.',
  'Request and response bodies are JSON in UTF-8, with names in camelCase. Times are ISO 8601 in UTC. The control API rejects unknown fields; the error contains the name of the field.',
  'Lists have the form `{ "data": [...], "next": cursor | null }`. To get the next page, send the value of `next` as `cursor`, with the same filters.',
  'All errors have the same shape, with a stable code and a human-readable message. In addition to the codes that an operation lists, any request can fail with `not_found`, `method_not_allowed`, `request_timeout`, `headers_too_large` or `internal_error`.',
  'All operations under `/api` require a control token, except login and logout. A token with the role `viewer` can only read, one with the role `editor` can also change what belongs to its sources, and one with the role `admin` can do everything. If a token is limited to some sources, everything that belongs to others answers as if it did not exist. No response contains a secret that you have set.',
  'A HEAD request gets the same response as GET, without the body.',
].join('\n\n')

const SECURITY_SCHEMES = {
  controlToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'A control token. The service prints the first token at its first start, unless you set one with SWITCHYARD_ADMIN_TOKEN.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'switchyard_session',
    description:
      'The session cookie of a browser that is logged in. Over HTTPS, its name begins with `__Host-`. Requests that change something are accepted only from the same origin.',
  },
  writeKey: {
    type: 'http',
    scheme: 'basic',
    description: 'The write key of a source as the user name, with an empty password. You can send `writeKey` in the body instead.',
  },
  accessToken: {
    type: 'oauth2',
    description:
      'An access token, for sources that require OAuth 2.0. Send `writeKey` in the body as well. The client authenticates with a signed assertion.',
    flows: { clientCredentials: { tokenUrl: '/oauth2/token', scopes: { 'tracking_api:write': 'Send messages.' } } },
  },
}

export function apiDocument(routes: readonly Route[]): OpenApiDocument {
  return openApiDocument({
    title: 'Switchyard',
    version: VERSION,
    summary: 'Analytics routing: accepts messages through a tracking API and delivers them to webhooks, signed and with retries.',
    description: DESCRIPTION,
    tags: TAGS,
    securitySchemes: SECURITY_SCHEMES,
    security: { control: ['controlToken', 'session'], tracking: ['writeKey', 'accessToken'], none: [] },
    operations: [...trackingOperations(), ...controlOperations(routes), ...serviceOperations()],
  })
}
