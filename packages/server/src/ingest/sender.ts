// Reads the write key or the access token from the Authorization header.

const MAX_CACHED = 1_000
const userOf = new Map<string, string | undefined>()

/** Returns the user name of Basic authentication. Some clients leave out the colon after it. */
export function basicUser(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined
  // A client sends the same header with every request, so the decoded user name is cached.
  if (userOf.has(authorization)) return userOf.get(authorization)
  const encoded = /^basic +(\S+)\s*$/i.exec(authorization)?.[1]
  const user = encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString('utf8').split(':', 1)[0] || undefined
  if (userOf.size >= MAX_CACHED) userOf.clear()
  userOf.set(authorization, user)
  return user
}

export function bearerToken(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : /^bearer +(\S+)\s*$/i.exec(authorization)?.[1]
}

/**
 * Recognises a control token that was sent in place of a write key; undefined if it is none. It judges only the form of what was sent, so the
 * response says nothing about which tokens exist.
 */
export function unknownKeyMessage(authorization: string | undefined, key: unknown): string | undefined {
  const given = typeof key === 'string' ? key : bearerToken(authorization)
  if (given === undefined || !/^sy_[\w-]{20,}$/.test(given)) return undefined
  return 'This is a control token, not a write key. Control tokens are for /api and must stay secret; send the write key of a source, which the dashboard and GET /api/sources show.'
}
