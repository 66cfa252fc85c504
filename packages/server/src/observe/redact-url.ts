// A URL may contain a password or a token in its user info, its path or its query string. All are removed before it is logged or shown.

import { hiddenUrl } from '../secrets/hidden-url.ts'

export function redactUrl(url: string): string {
  try {
    // The target of an integration is not a web address, and has nothing to hide.
    if (url.startsWith('integration:')) return url
    const { protocol, host, pathname } = new URL(hiddenUrl(url))
    // Addresses such as file: and postgres: have no origin.
    return `${protocol}//${host}${pathname}`
  } catch {
    return 'invalid'
  }
}
