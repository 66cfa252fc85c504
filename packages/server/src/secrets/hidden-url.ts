// A URL without possible credentials: the values of its query, and the user and password before an @. This is what viewers and the
// audit log get, and all that the store keeps of a URL outside of the destination's own sealed settings.

/** A placeholder for a value. It is refused as a value, so that it is never stored in place of the real one. */
export const HIDDEN = '(hidden)'

/** Leaves a URL that is hidden already as it is. Names of parameters stay, because they tell what was set. */
export function hiddenUrl(text: string): string {
  // Called for every attempt, and most URLs have nothing to hide.
  if (!/[?@]/.test(text)) return text
  if (!URL.canParse(text)) return HIDDEN
  const { protocol, host, pathname, search } = new URL(text)
  const query = search.slice(1).split('&')
  const names = query.map((part) => (part.includes('=') ? `${part.slice(0, part.indexOf('='))}=${HIDDEN}` : HIDDEN))
  return `${protocol}//${host}${pathname}${search === '' ? '' : `?${names.join('&')}`}`
}
