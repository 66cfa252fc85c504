// Serves the documentation to everybody, as it holds nothing that is not in the source: the site, which has the reference of the API, and
// the OpenAPI document that the reference is made from.

import type { FastifyInstance } from 'fastify'
import { ASKED_ANEW, answerOf, type BuiltFile, builtFile } from '../http/built-files.ts'
import { queryOf, registerSite } from './site.ts'

export interface DocsDeps {
  /** The OpenAPI document. */
  document: () => object
  /** Where the build of the documentation site is. */
  site: string
}

export function registerDocs(app: FastifyInstance, { document, site }: DocsDeps): void {
  // The address that people know and that other pages link to.
  app.get('/docs/api', (request, reply) => reply.redirect(`/docs/reference/http${queryOf(request)}`, 308))
  // Written and compressed once, at the first request: anybody may ask for it as often as they like.
  let json: BuiltFile | undefined
  app.get('/docs/openapi.json', async (request, reply) => {
    json ??= builtFile(Buffer.from(JSON.stringify(document())), 'application/json; charset=utf-8')
    const { status, headers, body } = await answerOf(json, request.headers, ASKED_ANEW)
    return reply.code(status).headers(headers).send(body)
  })
  registerSite(app, { folder: site })
}
