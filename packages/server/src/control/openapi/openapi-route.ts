// The route that serves the OpenAPI document, which describes this route too. It needs a token like everything under /api;
// /docs/openapi.json serves the same document without one.

import { anyObject } from '../../api/schema.ts'
import { type Route, route } from '../route.ts'
import { apiDocument, type OpenApiDocument } from './api-document.ts'

/** All routes, with one more that describes them. */
export function withDescription(routes: readonly Route[]): Route[] {
  let document: OpenApiDocument | undefined
  const all: Route[] = [
    ...routes,
    route({
      method: 'GET',
      path: '/openapi.json',
      summary: 'The OpenAPI 3.1 document of the whole API',
      status: 200,
      answer: anyObject(),
      handle: () => (document ??= apiDocument(all)),
    }),
  ]
  return all
}
