// The whole API of the service as one document: both APIs, access tokens, and what the process says of itself.

import { VERSION } from '../../version.ts'
import type { Route } from '../route.ts'
import { controlOperations } from './control-operations.ts'
import { type OpenApiDocument, openApiDocument } from './document.ts'
import { serviceOperations } from './service-operations.ts'
import { TAGS } from './tags.ts'
import { trackingOperations } from './tracking-operations.ts'

export type { OpenApiDocument } from './document.ts'

const DESCRIPTION = [
  'A message arrives at the tracking API, is stored, and is delivered to webhooks. With the control API you configure where messages go, and see what happened to each of them.',
  'Bodies are JSON in UTF-8 and names are camelCase. Times are ISO 8601 in UTC. The control API rejects unknown fields and names them in the error.',
  'Lists are `{ "data": [...], "next": cursor | null }`. To get the next page, send `next` as `cursor`, with the same filters.',
  'All errors have the same shape, with a stable code and a sentence. Besides the codes that an operation lists, any request can be answered with `not_found`, `method_not_allowed`, `request_timeout`, `headers_too_large` or `internal_error`.',
  'All operations under `/api` except logging in require a control token. A token with the role `viewer` may read; one with the role `admin` may also change. No response contains a secret that you have set.',
  'HEAD is answered like GET, without the body.',
].join('\n\n')

const SECURITY_SCHEMES = {
  controlToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'A control token. The service prints the first one at its first start, unless it is set with SWITCHYARD_ADMIN_TOKEN.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'switchyard_session',
    description:
      'The cookie of a browser that has logged in; over https its name begins with `__Host-`. Changes are accepted only from the same origin.',
  },
  writeKey: {
    type: 'http',
    scheme: 'basic',
    description: 'The write key of a source as the user name; the password is empty. It can be `writeKey` in the body instead.',
  },
  accessToken: {
    type: 'oauth2',
    description: 'For sources that require OAuth 2.0, with `writeKey` in the body. The client authenticates with a signed assertion.',
    flows: { clientCredentials: { tokenUrl: '/oauth2/token', scopes: { 'tracking_api:write': 'Sending messages.' } } },
  },
}

export function apiDocument(routes: readonly Route[]): OpenApiDocument {
  return openApiDocument({
    title: 'Switchyard',
    version: VERSION,
    summary: 'Analytics routing: a tracking API in, signed and retried webhooks out.',
    description: DESCRIPTION,
    tags: TAGS,
    securitySchemes: SECURITY_SCHEMES,
    security: { control: ['controlToken', 'session'], tracking: ['writeKey', 'accessToken'], none: [] },
    operations: [...trackingOperations(), ...controlOperations(routes), ...serviceOperations()],
  })
}
