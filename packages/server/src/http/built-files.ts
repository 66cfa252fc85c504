// Serves the files of a build (the dashboard, the documentation). They are read into memory at the first request and sent with an
// encoding that the browser accepts. File names come from listing the folder, so a requested path never reaches the disk. The callers
// decide who may request which file, and set the content security policy.

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

export interface BuiltFile {
  bytes: Buffer
  type: string
  /** Changes with the content. Weak, because the same file is sent in several encodings. */
  etag: string
  /** Compressed at the first request, off the event loop, so that the service keeps answering other requests. */
  brotli?: Promise<Buffer>
  gzip?: Promise<Buffer>
}

export interface FileAnswer {
  status: 200 | 304
  headers: Record<string, string>
  /** Undefined for status 304. */
  body: Buffer | undefined
}

/** For files whose names change with their content. */
export const CACHE_FOREVER = 'public, max-age=31536000, immutable'
export const REVALIDATE = 'no-cache'

const toBrotli = promisify(brotliCompress)
const toGzip = promisify(gzip)

export const HTML = 'text/html; charset=utf-8'
const TYPES: Record<string, string> = {
  html: HTML,
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  woff2: 'font/woff2',
  map: 'application/json; charset=utf-8',
  json: 'application/json; charset=utf-8',
  yml: 'text/plain; charset=utf-8',
}

/** Whether files of this type are already compressed. */
const isCompressed = (type: string): boolean => type === 'image/png' || type === 'font/woff2'

export function builtFile(bytes: Buffer, type: string): BuiltFile {
  return { bytes, type, etag: `W/"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"` }
}

export class BuiltFiles {
  readonly #folder: string
  readonly #follow: boolean
  #files: ReadonlyMap<string, BuiltFile> = new Map()
  #stamp = 0

  /** With `follow`, a new build in the folder replaces the one in memory; otherwise the first build that was read stays. */
  constructor(folder: string, { follow = false } = {}) {
    this.#folder = folder
    this.#follow = follow
  }

  /** Returns all files; none if there is no build. Returns the same map until the files change. */
  all(): ReadonlyMap<string, BuiltFile> {
    if (this.#files.size > 0 && !this.#follow) return this.#files
    const stamp = stampOf(this.#folder)
    if (this.#files.size > 0 && (stamp === 0 || stamp === this.#stamp)) return this.#files
    const found = readBuild(this.#folder)
    if (found.size > 0) {
      this.#files = found
      this.#stamp = stamp
    }
    return this.#files
  }

  get(name: string): BuiltFile | undefined {
    return this.all().get(name)
  }
}

export async function responseFor(
  file: BuiltFile,
  asked: { 'accept-encoding'?: string | undefined; 'if-none-match'?: string | undefined },
  cacheControl: string,
): Promise<FileAnswer> {
  const headers: Record<string, string> = {
    'content-type': file.type,
    'x-content-type-options': 'nosniff',
    'cache-control': cacheControl,
    etag: file.etag,
    vary: 'accept-encoding',
  }
  if (asked['if-none-match']?.split(',').some((each) => each.trim() === file.etag || each.trim() === '*'))
    return { status: 304, headers, body: undefined }
  const accepted = asked['accept-encoding'] ?? ''
  if (!isCompressed(file.type) && acceptsEncoding(accepted, 'br')) {
    file.brotli ??= toBrotli(file.bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } })
    return { status: 200, headers: { ...headers, 'content-encoding': 'br' }, body: await file.brotli }
  }
  if (!isCompressed(file.type) && acceptsEncoding(accepted, 'gzip')) {
    file.gzip ??= toGzip(file.bytes, { level: 9 })
    return { status: 200, headers: { ...headers, 'content-encoding': 'gzip' }, body: await file.gzip }
  }
  return { status: 200, headers, body: file.bytes }
}

/** Whether an Accept-Encoding header accepts this encoding. */
export function acceptsEncoding(accepted: string, encoding: string): boolean {
  return new RegExp(`\\b${encoding}\\b(?!\\s*;\\s*q=0(?:\\.0*)?\\s*(?:,|$))`).test(accepted)
}

/** When the build finished: its stamp file is written last. */
function stampOf(folder: string): number {
  return statSync(join(folder, '.built-from'), { throwIfNoEntry: false })?.mtimeMs ?? 0
}

/** Returns no files if there is no build, or if it is being replaced at the moment. */
function readBuild(folder: string): Map<string, BuiltFile> {
  const files = new Map<string, BuiltFile>()
  try {
    const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    for (const name of names) {
      const type = TYPES[name.slice(name.lastIndexOf('.') + 1)]
      if (type === undefined) continue
      const bytes = readFileSync(join(folder, name))
      const file = builtFile(bytes, type)
      // The build may have compressed the file already, with a higher quality than there is time for here.
      if (names.includes(`${name}.br`)) file.brotli = Promise.resolve(readFileSync(join(folder, `${name}.br`)))
      files.set(name.replaceAll('\\', '/'), file)
    }
  } catch {
    return new Map()
  }
  return files
}
