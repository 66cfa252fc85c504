// Serves the files of the documentation build, under addresses without file extensions. The content security policy allows only the inline
// scripts of the built pages (by hash), only stylesheets for styles, and nothing from other origins. A build that is made while the service
// runs is served as soon as it is complete.

import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type BuiltFile, BuiltFiles, CACHE_FOREVER, HTML, REVALIDATE, responseFor } from '../http/built-files.ts'

export interface SiteDeps {
  /** The folder of the build. */
  folder: string
}

const NOT_BUILT = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Switchyard</title>
<p>The documentation has not been built yet. After <code>npm start</code> this takes a moment: reload this page. Otherwise run <code>npm run build:docs</code>.</p>
<p>Its sources can be read as Markdown files in <code>docs/</code>; the HTTP API is in <code>docs/reference/http.md</code>, and as OpenAPI at
<a href="/docs/openapi.json">/docs/openapi.json</a>.</p></html>`

export function registerSite(app: FastifyInstance, { folder }: SiteDeps): void {
  const files = new BuiltFiles(folder, { follow: true })
  let policyOf: { files: ReadonlyMap<string, BuiltFile>; policy: string } | undefined
  const policy = (): string => {
    const all = files.all()
    if (policyOf?.files !== all) policyOf = { files: all, policy: contentSecurityPolicy(all) }
    return policyOf.policy
  }

  async function send(request: FastifyRequest, reply: FastifyReply, file: BuiltFile, cacheControl: string): Promise<FastifyReply> {
    const { status, headers, body } = await responseFor(file, request.headers, cacheControl)
    if (file.type === HTML) reply.headers(securityHeaders(policy()))
    return reply.code(status).headers(headers).send(body)
  }

  async function sendMissing(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | void> {
    const page = files.get('404.html')
    // Programs get the error as JSON, like everywhere else.
    if (page === undefined || !isForPeople(request)) return reply.callNotFound()
    const { headers, body } = await responseFor(page, { 'accept-encoding': request.headers['accept-encoding'] }, REVALIDATE)
    return reply
      .code(404)
      .headers({ ...headers, ...securityHeaders(policy()) })
      .send(body)
  }

  app.get('/docs', (request, reply) => reply.redirect(`/docs/${queryOf(request)}`, 308))
  app.get('/docs/*', async (request, reply) => {
    const { '*': name } = request.params as { '*': string }
    if (files.all().size === 0) {
      if (name !== '' && !isForPeople(request)) return reply.callNotFound()
      return reply
        .code(name === '' ? 200 : 404)
        .headers({ ...securityHeaders(policy()), 'content-type': HTML, 'cache-control': REVALIDATE })
        .send(NOT_BUILT)
    }
    const page = files.get(name === '' || name.endsWith('/') ? `${name}index.html` : `${name}.html`)
    if (page !== undefined && !/(^|\/)(index|404)$/.test(name)) return send(request, reply, page, REVALIDATE)
    const file = files.get(name)
    if (file !== undefined && file.type !== HTML) return send(request, reply, file, name.startsWith('assets/') ? CACHE_FOREVER : REVALIDATE)
    const path = canonicalPath(files.all(), name)
    if (path !== undefined) return reply.redirect(`/docs/${path}${queryOf(request)}`, 308)
    return sendMissing(request, reply)
  })
}

/** Returns the path of a page for other spellings of it: with a file extension, or with too many or too few slashes at the end. */
function canonicalPath(files: ReadonlyMap<string, BuiltFile>, name: string): string | undefined {
  // Not a regular expression: one for trailing slashes takes quadratic time if there are many slashes that are not at the end.
  let end = name.length
  while (name[end - 1] === '/') end--
  const bare = name.slice(0, end).replace(/\.(?:html|md)$/, '')
  if (bare === '404') return undefined
  if (bare === 'index') return ''
  if (bare.endsWith('/index') && files.has(`${bare}.html`)) return bare.slice(0, -'index'.length)
  if (bare !== name && files.has(`${bare}.html`)) return encodeURI(bare)
  return files.has(`${bare}/index.html`) ? `${encodeURI(bare)}/` : undefined
}

function isForPeople({ headers }: FastifyRequest): boolean {
  return (headers.accept ?? '').includes('text/html')
}

export function queryOf({ url }: FastifyRequest): string {
  const at = url.indexOf('?')
  return at === -1 ? '' : url.slice(at)
}

function securityHeaders(policy: string): Record<string, string> {
  return {
    'content-security-policy': policy,
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
  }
}

function contentSecurityPolicy(files: ReadonlyMap<string, BuiltFile>): string {
  return [
    "default-src 'none'",
    ["script-src 'self'", ...[...inlineScripts(files)].sort()].join(' '),
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

/** Hashes the text between the script tags, like browsers do. The files come from our own build; nothing in them comes from a request. */
function inlineScripts(files: ReadonlyMap<string, BuiltFile>): Set<string> {
  const hashes = new Set<string>()
  for (const { type, bytes } of files.values()) {
    if (type !== HTML) continue
    for (const [, attributes = '', script = ''] of bytes.toString('utf8').matchAll(/<script\b([^>]*)>([^]*?)<\/script>/g))
      if (!/\ssrc=/.test(attributes)) hashes.add(`'sha256-${createHash('sha256').update(script).digest('base64')}'`)
  }
  return hashes
}
