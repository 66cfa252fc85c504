// Serves the dashboard: files of one build, read into memory when they are first asked for. Nothing of them is secret; what they show they ask of
// the control API with the viewer's session. The policy lets the page load and call nothing but this service, run no script
// that is not one of its files, and be framed by nobody.

import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { FILE_PATHS, PAGE_PATHS } from './paths.ts'

export interface DashboardDeps {
  /** Where the build lies. */
  folder: string
}

interface StoredFile {
  bytes: Buffer
  type: string
  /** Made when first asked for, beside the loop: the service takes calls meanwhile. */
  brotli?: Promise<Buffer>
  gzip?: Promise<Buffer>
}

const toBrotli = promisify(brotliCompress)
const toGzip = promisify(gzip)

const TYPES: Record<string, string> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  woff2: 'font/woff2',
  map: 'application/json; charset=utf-8',
}

const NOT_BUILT = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Switchyard</title>
<p>The service runs. Its dashboard has not been built: run <code>npm run build:dashboard</code> and reload.</p>
<p>The API is described at <a href="/docs">/docs</a>.</p></html>`

export function registerDashboard(app: FastifyInstance, { folder }: DashboardDeps): void {
  let files: Map<string, StoredFile> | undefined
  const known = (): Map<string, StoredFile> => (files?.size ? files : (files = readBuild(folder)))

  for (const path of PAGE_PATHS) {
    app.get(path, (_request, reply) => {
      const nonce = randomBytes(16).toString('base64')
      reply
        .header('content-type', TYPES['html'])
        .header('content-security-policy', policy(nonce))
        .header('x-content-type-options', 'nosniff')
        .header('x-frame-options', 'DENY')
        .header('referrer-policy', 'no-referrer')
        .header('cross-origin-opener-policy', 'same-origin')
        // Its files have names that change with their contents; the page that names them must be asked for anew.
        .header('cache-control', 'no-cache')
      const page = known().get('index.html')
      return reply.send(page === undefined ? NOT_BUILT : page.bytes.toString('utf8').replace('content="NONCE"', `content="${nonce}"`))
    })
  }
  for (const path of FILE_PATHS) {
    // Those in assets have names that change with their contents.
    const cacheControl = path.startsWith('/assets/') ? 'public, max-age=31536000, immutable' : 'no-cache'
    app.get(path, (request, reply) => {
      const { name } = request.params as { name?: string }
      return send(request, reply, known().get(name === undefined ? path.slice(1) : `assets/${name}`), cacheControl)
    })
  }
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

async function send(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  file: StoredFile | undefined,
  cacheControl: string,
): Promise<FastifyReply> {
  if (file === undefined) {
    reply.callNotFound()
    return reply
  }
  reply
    .header('content-type', file.type)
    .header('x-content-type-options', 'nosniff')
    .header('cache-control', cacheControl)
    .header('vary', 'accept-encoding')
  const accepted = headers['accept-encoding'] ?? ''
  if (takes(accepted, 'br')) {
    file.brotli ??= toBrotli(file.bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } })
    return reply.header('content-encoding', 'br').send(await file.brotli)
  }
  if (takes(accepted, 'gzip')) {
    file.gzip ??= toGzip(file.bytes, { level: 9 })
    return reply.header('content-encoding', 'gzip').send(await file.gzip)
  }
  return reply.send(file.bytes)
}

function takes(accepted: string, encoding: string): boolean {
  return new RegExp(`\\b${encoding}\\b(?!\\s*;\\s*q=0(?:\\.0*)?\\s*(?:,|$))`).test(accepted)
}

/** Names come from the folder, so that no path that is asked for ever reaches the disk. */
function readBuild(folder: string): Map<string, StoredFile> {
  const files = new Map<string, StoredFile>()
  let names: string[]
  try {
    names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  } catch {
    return files
  }
  for (const name of names) {
    const type = TYPES[name.slice(name.lastIndexOf('.') + 1)]
    if (type === undefined) continue
    const file: StoredFile = { bytes: readFileSync(join(folder, name)), type }
    // The build may have done it, with more care than there is time for here.
    if (names.includes(`${name}.br`)) file.brotli = Promise.resolve(readFileSync(join(folder, `${name}.br`)))
    files.set(name.replaceAll('\\', '/'), file)
  }
  return files
}
