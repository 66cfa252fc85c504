// The route that gives out the description of all routes, its own among them. It needs a token as everything under /api
// does; /docs/openapi.json has the same document for everybody.

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
      summary: 'The description of the whole API, as OpenAPI 3.1',
      status: 200,
      answer: anyObject(),
      handle: () => (document ??= apiDocument(all)),
    }),
  ]
  return all
}
