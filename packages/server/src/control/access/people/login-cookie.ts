// The cookie of a login in progress. It is Lax, because the browser comes back from another site.

export const LOGIN_MS = 10 * 60_000

function cookieName(secure: boolean): string {
  return secure ? '__Host-switchyard_login' : 'switchyard_login'
}

/** An empty value removes the cookie. */
export function loginCookie(value: string, secure: boolean): string {
  const maxAge = value === '' ? 0 : LOGIN_MS / 1_000
  return [`${cookieName(secure)}=${value}`, 'Path=/', 'HttpOnly', 'SameSite=Lax', `Max-Age=${maxAge}`, ...(secure ? ['Secure'] : [])].join(
    '; ',
  )
}

export function loginsOfCookies(header: string | undefined, secure: boolean): string[] {
  const start = `${cookieName(secure)}=`
  const cookies = (header ?? '').split(';').map((cookie) => cookie.trim())
  return cookies.filter((cookie) => cookie.startsWith(start)).map((cookie) => cookie.slice(start.length))
}
