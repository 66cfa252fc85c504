// Hides possible credentials in a URL: the values of its query string, and the user name and password before an @. Viewers and the
// audit log get this form, and the store keeps only this form outside of the encrypted settings of the destination.

/** The placeholder for a hidden value. It is rejected as a value, so that it is never stored in place of the real one. */
export const HIDDEN = '(hidden)'

/** Does not change a URL that is already hidden. The names of query parameters stay, because they show what was set. */
export function hiddenUrl(text: string): string {
  // Called for every attempt, and most URLs have nothing to hide.
  if (!/[?@]/.test(text)) return text
  if (!URL.canParse(text)) return HIDDEN
  const { protocol, host, pathname, search } = new URL(text)
  const query = search.slice(1).split('&')
  const names = query.map((part) => (part.includes('=') ? `${part.slice(0, part.indexOf('='))}=${HIDDEN}` : HIDDEN))
  return `${protocol}//${host}${pathname}${search === '' ? '' : `?${names.join('&')}`}`
}
