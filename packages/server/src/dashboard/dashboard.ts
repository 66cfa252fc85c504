// Serves the dashboard: files of one build. Nothing of them is secret; what they show they ask of the control API with the viewer's
// session. The policy lets the page load and call nothing but this service, run no script that is not one of its files, and be
// framed by nobody.

import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { BuiltFiles, CACHE_FOREVER, HTML, REVALIDATE, responseFor } from '../http/built-files.ts'
import { FILE_PATHS, PAGE_PATHS } from './paths.ts'

export interface DashboardDeps {
  /** Where the build lies. */
  folder: string
}

const NOT_BUILT = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Switchyard</title>
<p>The service runs. Its dashboard has not been built: run <code>npm run build:dashboard</code> and reload.</p>
<p>The API is described at <a href="/docs/api">/docs/api</a>.</p></html>`

/** Returns whether there is a build to serve; without one, the pages say how to make one. */
export function registerDashboard(app: FastifyInstance, { folder }: DashboardDeps): boolean {
  const files = new BuiltFiles(folder)

  for (const path of PAGE_PATHS) {
    app.get(path, (_request, reply) => {
      const nonce = randomBytes(16).toString('base64')
      reply
        .header('content-type', HTML)
        .header('content-security-policy', policy(nonce))
        .header('x-content-type-options', 'nosniff')
        .header('x-frame-options', 'DENY')
        .header('referrer-policy', 'no-referrer')
        .header('cross-origin-opener-policy', 'same-origin')
        // Its files have names that change with their contents; the page that names them must be asked for anew.
        .header('cache-control', REVALIDATE)
      const page = files.get('index.html')
      return reply.send(page === undefined ? NOT_BUILT : page.bytes.toString('utf8').replace('content="NONCE"', `content="${nonce}"`))
    })
  }
  for (const path of FILE_PATHS) {
    // Those in assets have names that change with their contents.
    const cacheControl = path.startsWith('/assets/') ? CACHE_FOREVER : REVALIDATE
    app.get(path, async (request, reply) => {
      const { name } = request.params as { name?: string }
      const file = files.get(name === undefined ? path.slice(1) : `assets/${name}`)
      if (file === undefined) return reply.callNotFound()
      const { status, headers, body } = await responseFor(file, request.headers, cacheControl)
      return reply.code(status).headers(headers).send(body)
    })
  }
  // Read when it is first asked for.
  return existsSync(join(folder, 'index.html'))
}

/** Styles that Mantine makes at run time carry the nonce; scripts are files alone. */
function policy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ')
}
