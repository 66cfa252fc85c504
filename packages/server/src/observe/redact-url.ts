// A URL may carry a password or a token, in its user part or its query: what is logged or shown has neither.

export function redactUrl(url: string): string {
  try {
    const { origin, pathname } = new URL(url)
    return `${origin}${pathname}`
  } catch {
    return 'invalid'
  }
}
