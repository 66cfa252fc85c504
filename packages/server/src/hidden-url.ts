// A URL without what may be a credential in it: the values of its query, and what stands before an @. It is what viewers and
// the audit log are shown, and all that the store keeps of a URL outside of the destination's own sealed settings.

/** Stands for a value. It is not taken as one, so that what a viewer was shown is never stored in its place. */
export const HIDDEN = '(hidden)'

/** The same for what is hidden already. Names of parameters stay: they tell what was set. */
export function hiddenUrl(text: string): string {
  // Asked for every attempt, and most URLs have nothing to hide.
  if (!/[?@]/.test(text)) return text
  if (!URL.canParse(text)) return HIDDEN
  const { protocol, host, pathname, search } = new URL(text)
  const query = search.slice(1).split('&')
  const names = query.map((part) => (part.includes('=') ? `${part.slice(0, part.indexOf('='))}=${HIDDEN}` : HIDDEN))
  return `${protocol}//${host}${pathname}${search === '' ? '' : `?${names.join('&')}`}`
}
