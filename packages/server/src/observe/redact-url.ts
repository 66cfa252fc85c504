// A URL may contain a password or a token in its user info or its query string. Both are removed before it is logged or shown.

export function redactUrl(url: string): string {
  try {
    // The target of an integration is not a web address, and has nothing to hide.
    if (url.startsWith('integration:')) return url
    const { origin, pathname } = new URL(url)
    return `${origin}${pathname}`
  } catch {
    return 'invalid'
  }
}
