// A lake in a bucket of an S3-compatible store. There are no locks: the manifest is replaced with a conditional put (`If-Match`), which is what keeps two
// writers apart. A store that ignores the condition would lose loads, so it is refused (`verify`). An object is visible as a whole or not at all, because it is
// put in one request; names are used once (`nameEnding`), so nobody overwrites what another writer has committed.

import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { AwsV4Signer } from 'aws4fetch'
import { problemOf, WarehouseProblem } from '../failure.ts'
import { AnswerTooLarge, type HttpAnswer, HttpConnections } from '../http/request.ts'
import type { ParquetSettings } from '../warehouse.ts'
import type { LakeFile, LakeFiles, Listed, NewFile } from './lake-files.ts'
import { s3Problem } from './s3-failures.ts'

const ATTEMPTS = 4
const FIRST_WAIT_MS = 200
/** Largest object: a file is at most 128 MB. */
const MAX_OBJECT_BYTES = 128 * 1024 * 1024
const MAX_LISTED = 1_000_000
const EMPTY_HASH = createHash('sha256').digest('hex')
const TEST_OBJECT = '_switchyard_test/conditions'

interface Sent {
  method: 'GET' | 'HEAD' | 'PUT' | 'DELETE'
  path?: string
  query?: Readonly<Record<string, string>>
  headers?: Readonly<Record<string, string>>
  body?: readonly Uint8Array[]
  /** In hex, if it is known already. */
  hash?: string
  signal?: AbortSignal | undefined
  maxBytes?: number | undefined
}

export class S3Files implements LakeFiles {
  readonly place: string
  readonly hasLocks = false
  readonly #settings: ParquetSettings
  readonly #bucket: URL
  /** Ends in a slash if it is not empty. */
  readonly #prefix: string
  readonly #connections = new HttpConnections()
  #isVerified = false

  constructor(settings: ParquetSettings) {
    const { hostname: bucket, pathname } = new URL(settings.url)
    const prefix = decodeURIComponent(pathname).replace(/^\/+|\/+$/g, '')
    this.#settings = settings
    this.#prefix = prefix === '' ? '' : `${prefix}/`
    this.#bucket = bucketUrl(bucket, settings)
    this.place = `s3://${bucket}/${this.#prefix}`.replace(/\/$/, '')
  }

  async read(path: string, signal?: AbortSignal, maxBytes?: number): Promise<{ bytes: Uint8Array; version: string } | null> {
    const answer = await this.#send({ method: 'GET', path, signal, maxBytes }).catch((error: unknown) => {
      if (maxBytes === undefined || !((error as { cause?: unknown }).cause instanceof AnswerTooLarge)) throw error
      throw new WarehouseProblem(
        'table_changed',
        `${this.place}/${path} is larger than ${Math.floor(maxBytes / 2 ** 20)} MB. If the table has so many files, merge them; otherwise restore the object from a backup, or delete it to start the table anew.`,
        error,
      )
    })
    if (answer.status === 404) return null
    return { bytes: answer.body, version: String(answer.headers.etag) }
  }

  async open(path: string, signal?: AbortSignal): Promise<LakeFile | null> {
    const about = await this.#send({ method: 'HEAD', path, signal })
    if (about.status === 404) return null
    const size = Number(about.headers['content-length'])
    return {
      byteLength: size,
      slice: async (start, end = size) => {
        const last = Math.min(end, size) - 1
        if (last < start) return new ArrayBuffer(0)
        const { status, body } = await this.#send({ method: 'GET', path, headers: { range: `bytes=${start}-${last}` }, signal })
        if (status === 404) throw new WarehouseProblem('file_missing', `${this.place}/${path} was removed while it was read.`)
        // A store that does not know ranges sends everything.
        const part = status === 206 ? body : body.subarray(start, last + 1)
        const bytes = new Uint8Array(part.byteLength)
        bytes.set(part)
        return bytes.buffer
      },
      close: async () => {},
    }
  }

  async create(path: string): Promise<NewFile> {
    let parts: Uint8Array[] = []
    let bytes = 0
    const hash = createHash('sha256')
    let isPublished = false
    return {
      write: async (part) => {
        bytes += part.byteLength
        if (bytes > MAX_OBJECT_BYTES)
          throw new WarehouseProblem('failed', `${this.place}/${path} would be larger than ${MAX_OBJECT_BYTES} bytes.`)
        hash.update(part)
        parts.push(part)
      },
      publish: async () => {
        if (isPublished) return
        await this.#send({ method: 'PUT', path, body: parts, hash: hash.copy().digest('hex') })
        isPublished = true
        parts = []
      },
      discard: async () => {
        parts = []
      },
    }
  }

  async replace(path: string, version: string | null, bytes: Uint8Array): Promise<boolean> {
    const { status } = await this.#send({
      method: 'PUT',
      path,
      body: [bytes],
      headers: version === null ? { 'if-none-match': '*' } : { 'if-match': version },
    })
    // 409: another conditional put is going on. 404: somebody removed the object that was read.
    return status !== 412 && status !== 409 && status !== 404
  }

  async remove(path: string): Promise<void> {
    await this.#send({ method: 'DELETE', path })
  }

  async list(folder: string, signal?: AbortSignal): Promise<Listed[]> {
    const prefix = `${this.#prefix}${folder === '' ? '' : `${folder}/`}`
    const found: Listed[] = []
    let token: string | null = null
    do {
      const query: Record<string, string> = {
        'list-type': '2',
        delimiter: '/',
        'encoding-type': 'url',
        prefix,
        ...(token === null ? {} : { 'continuation-token': token }),
      }
      const xml: string = (await this.#send({ method: 'GET', query, signal })).body.toString()
      for (const [, entry = ''] of xml.matchAll(/<Contents>([\s\S]*?)<\/Contents>/g)) {
        const name = keyOf(entry, 'Key').slice(prefix.length)
        if (name !== '') found.push({ name, isFolder: false, modifiedMs: Date.parse(textOf(entry, 'LastModified')) })
      }
      for (const [, entry = ''] of xml.matchAll(/<CommonPrefixes>([\s\S]*?)<\/CommonPrefixes>/g))
        found.push({ name: keyOf(entry, 'Prefix').slice(prefix.length, -1), isFolder: true, modifiedMs: 0 })
      if (found.length > MAX_LISTED) throw new WarehouseProblem('failed', `${this.place}/${folder} has more than ${MAX_LISTED} objects.`)
      token = textOf(xml, 'IsTruncated') === 'true' ? unescaped(textOf(xml, 'NextContinuationToken')) : null
    } while (token !== null)
    return found
  }

  exclusively<T>(_folder: string, work: () => Promise<T>): Promise<T> {
    return work()
  }

  /** Throws if the store ignores the conditions of puts. */
  async verify(): Promise<void> {
    if (this.#isVerified) return
    const path = `${TEST_OBJECT}-${randomUUID()}`
    const bytes = Buffer.from('test')
    try {
      const isCreated = await this.replace(path, null, bytes)
      const version = (await this.read(path))?.version ?? ''
      const obeys =
        isCreated && version !== '' && !(await this.replace(path, null, bytes)) && !(await this.replace(path, '"0123456789abcdef"', bytes))
      if (!obeys || !(await this.replace(path, version, Buffer.from('other'))))
        throw new WarehouseProblem(
          'failed',
          `${this.place}: this store ignores the conditions of writes (If-Match, If-None-Match), so two nodes could overwrite the loads of each other. Use a newer version of it, or another store.`,
        )
      this.#isVerified = true
    } finally {
      await this.remove(path).catch(() => {})
    }
  }

  async close(): Promise<void> {
    this.#connections.close()
  }

  /** Repeats what can succeed later. Statuses that callers look at are returned, others are thrown. */
  async #send(sent: Sent): Promise<HttpAnswer> {
    for (let attempt = 1; ; attempt++) {
      try {
        const answer = await this.#once(sent)
        const { status } = answer
        const isExpected = status < 300 || status === 412 || status === 409 || (status === 404 && isObjectMissing(sent, answer))
        if (isExpected) return answer
        if (attempt === ATTEMPTS || (status < 500 && status !== 429 && status !== 408)) throw s3Problem(sent.method, answer, this.place)
      } catch (error) {
        if (attempt === ATTEMPTS || !isTransient(error)) {
          const { code, message } = problemOf(error, this.place)
          throw new WarehouseProblem(code, message, error)
        }
      }
      await sleep(FIRST_WAIT_MS * 2 ** (attempt - 1) * (0.5 + Math.random()))
    }
  }

  async #once({ method, path, query = {}, headers = {}, body = [], hash, signal, maxBytes }: Sent): Promise<HttpAnswer> {
    const url = new URL(this.#bucket)
    if (path !== undefined) url.pathname += `${this.#prefix}${path}`.split('/').map(encodeURIComponent).join('/')
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    const { accessKeyId = '', secretAccessKey = '', region } = this.#settings
    const content = hash ?? (body.length === 0 ? EMPTY_HASH : sha256(body))
    const signer = new AwsV4Signer({
      method,
      url: url.href,
      headers: { ...headers, 'x-amz-content-sha256': content },
      accessKeyId,
      secretAccessKey,
      service: 's3',
      region: region ?? 'us-east-1',
    })
    const signed = await signer.sign()
    return this.#connections.request({ method, url: signed.url, headers: Object.fromEntries(signed.headers), body, signal, maxBytes })
  }
}

function bucketUrl(bucket: string, { endpoint, region = 'us-east-1', pathStyle = false }: ParquetSettings): URL {
  const url = new URL(endpoint ?? `https://s3.${region}.amazonaws.com`)
  if (!url.pathname.endsWith('/')) url.pathname += '/'
  // Certificates for *.s3.… are not valid for names with more dots.
  if (pathStyle || bucket.includes('.')) url.pathname += `${bucket}/`
  else url.hostname = `${bucket}.${url.hostname}`
  return url
}

/** Some stores answer with status 404 also if the bucket, or the user of the access key, does not exist. HEAD has no body that would say what is missing. */
function isObjectMissing({ method, path }: Sent, { body }: HttpAnswer): boolean {
  return path !== undefined && (method === 'HEAD' || ['', 'NoSuchKey', 'NotFound'].includes(textOf(body.toString(), 'Code')))
}

function isTransient(error: unknown): boolean {
  return /^(ECONNRESET|EPIPE|ETIMEDOUT|EAI_AGAIN)$/.test(String((error as { code?: string } | null)?.code))
}

function sha256(parts: readonly Uint8Array[]): string {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest('hex')
}

function keyOf(xml: string, name: string): string {
  return decodeURIComponent(unescaped(textOf(xml, name)).replaceAll('+', ' '))
}

export function textOf(xml: string, name: string): string {
  return new RegExp(`<${name}>([\\s\\S]*?)</${name}>`).exec(xml)?.[1] ?? ''
}

function unescaped(text: string): string {
  const names: Record<string, string> = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&', '#34': '"', '#39': "'" }
  return text.replace(/&(lt|gt|quot|apos|amp|#34|#39);/g, (_, name: string) => names[name] as string)
}
