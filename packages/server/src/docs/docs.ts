// Serves what there is to read, for everybody, as it holds nothing that is not in the source: the documentation site, the reference of
// the API as a page for people, and the document that it is made from. What they say is given; nothing here knows the API.

import { gzipSync } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { takes } from '../built-files.ts'
import { ORIGIN } from './curl.ts'
import { CONTENT_SECURITY_POLICY, referencePage } from './page.ts'
import type { ReferenceDocument } from './reference-document.ts'
import { registerSite } from './site.ts'

export interface DocsDeps {
  document: () => ReferenceDocument
  /** Where the build of the documentation site lies. */
  site: string
}

const DEFAULT_ORIGIN = 'http://localhost:8080'

export function registerDocs(app: FastifyInstance, { document, site }: DocsDeps): void {
  // Made when somebody asks for them first.
  let made: ReferenceDocument | undefined
  let page: string | undefined
  const known = (): ReferenceDocument => (made ??= document())
  app.get('/docs/api', (request, reply) => {
    page ??= referencePage(known())
    reply
      .header('content-type', 'text/html; charset=utf-8')
      .header('content-security-policy', CONTENT_SECURITY_POLICY)
      .header('x-content-type-options', 'nosniff')
      .header('referrer-policy', 'no-referrer')
      .header('cache-control', 'no-cache')
      .header('vary', 'host, accept-encoding')
    return send(request, reply, page.replaceAll(ORIGIN, originOf(request)))
  })
  app.get('/docs/openapi.json', (request, reply) => {
    reply
      .header('content-type', 'application/json; charset=utf-8')
      .header('x-content-type-options', 'nosniff')
      .header('cache-control', 'no-cache')
      .header('vary', 'accept-encoding')
    return send(request, reply, JSON.stringify(known()))
  })
  registerSite(app, { folder: site })
}

/** Page and document are long and full of repetition: a phone on a slow line is sent a tenth of them. */
function send({ headers }: FastifyRequest, reply: FastifyReply, text: string): FastifyReply {
  return takes(headers['accept-encoding'] ?? '', 'gzip') ? reply.header('content-encoding', 'gzip').send(gzipSync(text)) : reply.send(text)
}

/** Only what a host can be written with gets into the page; the page's script puts right the scheme behind a proxy. */
function originOf({ headers: { host = '' } }: FastifyRequest): string {
  return /^[\w.-]+(:\d{1,5})?$|^\[[\da-fA-F:.]+\](:\d{1,5})?$/.test(host) ? `http://${host}` : DEFAULT_ORIGIN
}
