// What the address of the login page says: why single sign-on failed, and where to go after the login. Pure.

import { LOGIN_PROBLEMS } from '../api/rules.ts'

export interface LoginFailure {
  reason: string
  message: string
  advice: string
}

/** The problem that the address names; null if it names none that this version knows. */
export function problemOf(search: string): LoginFailure | null {
  const reason = new URLSearchParams(search).get('login')
  const known = Object.entries(LOGIN_PROBLEMS).find(([name]) => name === reason)
  return known === undefined ? null : { reason: known[0], ...known[1] }
}

/** The path that is shown after the login: the one that the service names, or else the present one. */
export function pathAfterLogin({ origin, pathname, search }: Pick<Location, 'origin' | 'pathname' | 'search'>): string {
  const params = new URLSearchParams(search)
  if (!params.has('login')) return pathname + search
  const wanted = params.get('returnTo') ?? '/'
  if (!wanted.startsWith('/') || !URL.canParse(wanted, origin)) return '/'
  const url = new URL(wanted, origin)
  // `//host` and `/\host` are other hosts for a browser.
  return url.origin === origin && !url.pathname.startsWith('//') ? url.pathname + url.search : '/'
}

/** Where a login with single sign-on starts. */
export function loginAddress(location: Pick<Location, 'origin' | 'pathname' | 'search'>): string {
  return `/api/login/oidc?${new URLSearchParams({ returnTo: pathAfterLogin(location) })}`
}
