// The route that serves the OpenAPI document, which includes this route itself. It requires a token, like everything under /api;
// /docs/openapi.json serves the same document without one.

import { anyObject } from '../../api/schema.ts'
import { type Route, route } from '../routes/route.ts'
import { apiDocument, type OpenApiDocument } from './api-document.ts'

/** Returns the routes, plus the route that serves their OpenAPI document. */
export function withDescription(routes: readonly Route[]): Route[] {
  let document: OpenApiDocument | undefined
  const all: Route[] = [
    ...routes,
    route('GET', '/openapi.json', {
      summary: 'Retrieve the OpenAPI document',
      access: { role: 'viewer', sources: 'none' },
      description: 'OpenAPI 3.1, for both the tracking API and the control API.',
      answer: anyObject(),
      handle: () => (document ??= apiDocument(all)),
    }),
  ]
  return all
}
