// Serves the documentation: the site, which includes the API reference, and the OpenAPI document from which the reference is made. No
// token is needed, because both contain nothing that is not in the source code.

import type { FastifyInstance } from 'fastify'
import { type BuiltFile, builtFile, REVALIDATE, responseFor } from '../http/built-files.ts'
import { queryOf, registerSite } from './site.ts'

export interface DocsDeps {
  /** The OpenAPI document. */
  document: () => object
  /** The folder of the built documentation site. */
  site: string
}

export function registerDocs(app: FastifyInstance, { document, site }: DocsDeps): void {
  // Kept because people know this address and other pages link to it.
  app.get('/docs/api', (request, reply) => reply.redirect(`/docs/reference/http${queryOf(request)}`, 308))
  // Written and compressed once, at the first request, because anybody may request it any number of times.
  let json: BuiltFile | undefined
  app.get('/docs/openapi.json', async (request, reply) => {
    json ??= builtFile(Buffer.from(JSON.stringify(document())), 'application/json; charset=utf-8')
    const { status, headers, body } = await responseFor(json, request.headers, REVALIDATE)
    return reply.code(status).headers(headers).send(body)
  })
  registerSite(app, { folder: site })
}
