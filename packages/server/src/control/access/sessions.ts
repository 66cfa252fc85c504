// Sessions of the dashboard: nothing is stored. A session is the id of a token and a time, signed with a key of the
// service's own together with the token's hash: so it ends with the token, when that is revoked or replaced, at that time
// at the latest, and on every node. The cookie's form is here too.

import { createHmac, timingSafeEqual } from 'node:crypto'

export const SESSION_MS = 12 * 60 * 60 * 1_000

/** Long enough for any that was given out. */
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

  /** `hashOf` says the hash of a token that is valid now. */
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

// ── The cookie ──────────────────────────────────────────────────────────────────────────────────────────────────────

/** Over https a browser takes a name that begins so only from this very host, and not from a neighbour under the same domain. */
function cookieName(secure: boolean): string {
  return secure ? '__Host-switchyard_session' : 'switchyard_session'
}

/** An empty value removes it. */
export function sessionCookie(value: string, maxAgeMs: number, secure: boolean): string {
  const attributes = ['Path=/', 'HttpOnly', 'SameSite=Strict', `Max-Age=${Math.floor(maxAgeMs / 1_000)}`, ...(secure ? ['Secure'] : [])]
  return [`${cookieName(secure)}=${value}`, ...attributes].join('; ')
}

/** All of that name: without https, whatever runs on another port of the host can set one more, for a path that comes first. */
export function sessionsOfCookies(header: string | undefined, secure: boolean): string[] {
  const start = `${cookieName(secure)}=`
  return (header ?? '')
    .split(';')
    .map((cookie) => cookie.trim())
    .filter((cookie) => cookie.startsWith(start))
    .map((cookie) => cookie.slice(start.length))
}
