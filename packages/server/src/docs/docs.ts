// Serves what there is to read, for everybody, as it holds nothing that is not in the source: the documentation site, the reference of
// the API as a page for people, and the document that it is made from. What they say is given; nothing here knows the API.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ASKED_ANEW, answerOf, type BuiltFile, builtFile, HTML } from '../http/built-files.ts'
import { ORIGIN } from './curl.ts'
import { CONTENT_SECURITY_POLICY, referencePage } from './page.ts'
import type { ReferenceDocument } from './reference-document.ts'
import { registerSite } from './site.ts'

export interface DocsDeps {
  document: () => ReferenceDocument
  /** Where the build of the documentation site lies. */
  site: string
}

/** The page's script replaces it with the address under which the page was opened. */
const DEFAULT_ORIGIN = 'http://localhost:8080'

export function registerDocs(app: FastifyInstance, { document, site }: DocsDeps): void {
  // Rendered once, at the first request: the page has half a megabyte, and anybody may ask for it as often as they like. So they must
  // not contain anything from a request.
  let made: ReferenceDocument | undefined
  let page: BuiltFile | undefined
  let json: BuiltFile | undefined
  const known = (): ReferenceDocument => (made ??= document())
  app.get('/docs/api', (request, reply) => {
    page ??= builtFile(Buffer.from(referencePage(known()).replaceAll(ORIGIN, DEFAULT_ORIGIN)), HTML)
    reply.header('content-security-policy', CONTENT_SECURITY_POLICY).header('referrer-policy', 'no-referrer')
    return send(request, reply, page)
  })
  app.get('/docs/openapi.json', (request, reply) => {
    json ??= builtFile(Buffer.from(JSON.stringify(known())), 'application/json; charset=utf-8')
    return send(request, reply, json)
  })
  registerSite(app, { folder: site })
}

async function send(request: FastifyRequest, reply: FastifyReply, file: BuiltFile): Promise<FastifyReply> {
  const { status, headers, body } = await answerOf(file, request.headers, ASKED_ANEW)
  return reply.code(status).headers(headers).send(body)
}
