// Where a browser goes after the login: a path of this service, whatever a link or a provider asks for.

const MAX_CHARS = 1_500

/** The path with query and fragment, or `/` for anything that is not a path on this origin. */
export function returnPath(wanted: unknown): string {
  // Browsers read a backslash as a slash, and leave out tabs and line breaks.
  if (typeof wanted !== 'string' || wanted.length > MAX_CHARS || !/^\/[^\\\p{Cc}]*$/u.test(wanted)) return '/'
  const base = 'http://service.invalid'
  if (!URL.canParse(wanted, base)) return '/'
  const { origin, pathname, search, hash } = new URL(wanted, base)
  // `/.//host` becomes `//host`, which is another host.
  return origin === base && !pathname.startsWith('//') ? pathname + search + hash : '/'
}
