// Sessions of the dashboard. A session is the id of a token and an expiry time, signed with a key of the service and the hash of the token. So a
// session ends on every node when its token is revoked or replaced, and at its expiry time at the latest. Only a session that ended earlier, by
// a logout, is stored (EndedSessions), until it would have expired. The format of the cookie is here too.

import { createHmac, timingSafeEqual } from 'node:crypto'
import type { DocumentStore } from '../../store/port/documents.ts'

export const SESSION_MS = 12 * 60 * 60 * 1_000

const ENDED = 'ended_session'

/** Longer than any session that the service issues. */
const MAX_LENGTH = 500

export interface Session {
  tokenId: string
  expiresAtMs: number
}

export class Sessions {
  readonly #key: string

  constructor(key: string) {
    this.#key = key
  }

  issue({ tokenId, expiresAtMs }: Session, tokenHash: string): string {
    const content = Buffer.from(JSON.stringify([tokenId, expiresAtMs]), 'utf8').toString('base64url')
    return `${content}.${this.#signature(content, tokenHash).toString('base64url')}`
  }

  /** Returns the session if the signature is valid and it has not expired. `hashOf` returns the hash of a token, if it is valid now. */
  open(text: string, hashOf: (tokenId: string) => string | undefined, nowMs: number): Session | null {
    const [, content, signature] = text.length > MAX_LENGTH ? [] : (/^([\w-]+)\.([\w-]+)$/.exec(text) ?? [])
    if (content === undefined || signature === undefined) return null
    const session = parseContent(content)
    const hash = session === null ? undefined : hashOf(session.tokenId)
    if (session === null || hash === undefined) return null
    const given = Buffer.from(signature, 'base64url')
    const expected = this.#signature(content, hash)
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return null
    return session.expiresAtMs > nowMs ? session : null
  }

  #signature(content: string, tokenHash: string): Buffer {
    return createHmac('sha256', this.#key).update(`session v1 ${content} ${tokenHash}`).digest()
  }
}

function parseContent(content: string): Session | null {
  try {
    const parsed = JSON.parse(Buffer.from(content, 'base64url').toString('utf8')) as unknown
    if (!Array.isArray(parsed) || parsed.length !== 2) return null
    const [tokenId, expiresAtMs] = parsed as unknown[]
    return typeof tokenId === 'string' && Number.isSafeInteger(expiresAtMs) ? { tokenId, expiresAtMs: expiresAtMs as number } : null
  } catch {
    return null
  }
}

/** The sessions that were ended by a logout, on any node. Checking one is a lookup by key, however many there are. */
export class EndedSessions {
  readonly #documents: DocumentStore

  constructor(documents: DocumentStore) {
    this.#documents = documents
  }

  async has(sessionId: string): Promise<boolean> {
    return (await this.#documents.get(ENDED, sessionId)) !== undefined
  }

  /** Also drops the sessions that have expired since. */
  async add(sessionId: string, expiresAtMs: number, nowMs: number): Promise<void> {
    await this.#documents.update(ENDED, [], () => new Map([[sessionId, { atMs: expiresAtMs, doc: {} }]]))
    await this.#documents.drop(ENDED, { beforeMs: nowMs })
  }
}

/** Part of the signature, so that it is known for every session and says nothing about the cookie. */
export function sessionId(text: string): string {
  return text.slice(text.indexOf('.') + 1).slice(0, 20)
}

// ── The cookie ──────────────────────────────────────────────────────────────────────────────────────────────────────

/** Over https, browsers accept a cookie with this prefix only from the host itself, not from other hosts of the same domain. */
function cookieName(secure: boolean): string {
  return secure ? '__Host-switchyard_session' : 'switchyard_session'
}

/** An empty value removes the cookie. */
export function sessionCookie(value: string, maxAgeMs: number, secure: boolean): string {
  const attributes = ['Path=/', 'HttpOnly', 'SameSite=Strict', `Max-Age=${Math.floor(maxAgeMs / 1_000)}`, ...(secure ? ['Secure'] : [])]
  return [`${cookieName(secure)}=${value}`, ...attributes].join('; ')
}

/** Returns all cookies of that name: without https, a service on another port of the host can set one more, for a path that comes first. */
export function sessionsOfCookies(header: string | undefined, secure: boolean): string[] {
  const start = `${cookieName(secure)}=`
  return (header ?? '')
    .split(';')
    .map((cookie) => cookie.trim())
    .filter((cookie) => cookie.startsWith(start))
    .map((cookie) => cookie.slice(start.length))
}
