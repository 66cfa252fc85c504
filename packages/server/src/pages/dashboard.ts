// Serves the files of the dashboard build. They contain no secrets; the page gets its data from the control API with the session of the user.
// The content security policy allows the page to load from and connect to this service only, to run only its own script files, and forbids
// other pages to frame it.

import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { BuiltFiles, CACHE_FOREVER, HTML, REVALIDATE, responseFor } from '../http/built-files.ts'
import { FILE_PATHS, PAGE_PATHS } from './paths.ts'

export interface DashboardDeps {
  /** The folder of the build. */
  folder: string
}

const NOT_BUILT = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Switchyard</title>
<p>The service is running, but its dashboard has not been built. Run <code>npm run build:dashboard</code> and reload.</p>
<p>The API is described at <a href="/docs/api">/docs/api</a>.</p></html>`

export interface Dashboard {
  /** Without a build, the page explains how to make it. */
  hasBuild: boolean
  /** Sends the page with the status 404: it says that the page does not exist, with its navigation. */
  sendNotFound: (reply: FastifyReply) => FastifyReply
}

export function registerDashboard(app: FastifyInstance, { folder }: DashboardDeps): Dashboard {
  const files = new BuiltFiles(folder)

  const sendPage = (reply: FastifyReply): FastifyReply => {
    const nonce = randomBytes(16).toString('base64')
    reply
      .header('content-type', HTML)
      .header('content-security-policy', policy(nonce))
      .header('x-content-type-options', 'nosniff')
      .header('x-frame-options', 'DENY')
      .header('referrer-policy', 'no-referrer')
      .header('cross-origin-opener-policy', 'same-origin')
      // The names of its files change with their content, so browsers must revalidate the page that refers to them.
      .header('cache-control', REVALIDATE)
    const page = files.get('index.html')
    return reply.send(page === undefined ? NOT_BUILT : page.bytes.toString('utf8').replace('content="NONCE"', `content="${nonce}"`))
  }
  for (const path of PAGE_PATHS) app.get(path, (_request, reply) => sendPage(reply))
  for (const path of FILE_PATHS) {
    // The names of files in assets/ change with their content.
    const cacheControl = path.startsWith('/assets/') ? CACHE_FOREVER : REVALIDATE
    app.get(path, async (request, reply) => {
      const { name } = request.params as { name?: string }
      const file = files.get(name === undefined ? path.slice(1) : `assets/${name}`)
      if (file === undefined) return reply.callNotFound()
      const { status, headers, body } = await responseFor(file, request.headers, cacheControl)
      return reply.code(status).headers(headers).send(body)
    })
  }
  // The files are read at the first request.
  return { hasBuild: existsSync(join(folder, 'index.html')), sendNotFound: (reply) => sendPage(reply.code(404)) }
}

/** The nonce is for styles that Mantine creates at run time. Scripts must be files. */
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
