// Who sends: the write key or the access token of the Authorization header.

const MAX_REMEMBERED = 1_000
const userOf = new Map<string, string | undefined>()

/** The user name of Basic authentication. Some clients leave out the colon behind it. */
export function basicUser(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined
  // A client sends the same header with every request.
  if (userOf.has(authorization)) return userOf.get(authorization)
  const encoded = /^basic +(\S+)\s*$/i.exec(authorization)?.[1]
  const user = encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString('utf8').split(':', 1)[0] || undefined
  if (userOf.size >= MAX_REMEMBERED) userOf.clear()
  userOf.set(authorization, user)
  return user
}

export function bearerToken(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : /^bearer +(\S+)\s*$/i.exec(authorization)?.[1]
}
