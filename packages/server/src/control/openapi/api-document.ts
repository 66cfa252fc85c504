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
  'A message arrives at the tracking API, is stored, and is delivered to webhooks. The control API says where, and what became of it.',
  'Bodies are JSON in UTF-8 and names are camelCase. Times are ISO 8601 in UTC. The control API refuses fields that it does not know, by name.',
  'Lists are `{ "data": [...], "next": cursor | null }`: give `next` back as `cursor` for the next page, with the same filters.',
  'Every error has one shape, a stable code and a sentence. Besides those that an operation names, any request can be answered with `not_found`, `method_not_allowed`, `request_timeout`, `headers_too_large` or `internal_error`.',
  'Everything under `/api` but logging in takes a control token. A token with the role `viewer` may read; `admin` may change, too. Secrets go in and never come out.',
  'HEAD answers as GET does, without the body.',
].join('\n\n')

const SECURITY_SCHEMES = {
  controlToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'A control token. The first one is printed by the first start, or is SWITCHYARD_ADMIN_TOKEN.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'switchyard_session',
    description: 'Of a browser that has logged in; over https its name begins with `__Host-`. Changes are taken only from the same origin.',
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
