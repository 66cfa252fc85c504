// Hides possible credentials in a URL: the values of its query string, the user name and password before an @, and parts of its path that look like
// tokens, as in the webhooks of Slack and Discord. Viewers, the audit log and log lines get this form, and the store keeps only this form outside of
// the encrypted settings of the destination.

/** The placeholder for a hidden value. It is rejected as a value, so that it is never stored in place of the real one. */
export const HIDDEN = '(hidden)'

/** Services whose webhook URLs are credentials as a whole, some of them with short parts. */
const WEBHOOK_HOST = /^(?:hooks|webhooks?)\.|(?:^|\.)(?:discord|discordapp|webhook\.office)\.com$/i

/** Does not change a URL that is already hidden. The names of query parameters stay, because they show what was set. */
export function hiddenUrl(text: string): string {
  // Called for every attempt, and most URLs have neither.
  const shown = /[?@]/.test(text) ? withHiddenQuery(text) : text
  const [, start, host, path, rest] = /^(https?:\/\/([^/?#]+))([^?#]+)(.*)$/is.exec(shown) ?? []
  return path === undefined ? shown : `${start}${withPathTokens(host as string, path, () => HIDDEN)}${rest}`
}

function withHiddenQuery(text: string): string {
  if (!URL.canParse(text)) return HIDDEN
  const { protocol, host, pathname, search } = new URL(text)
  const query = search.slice(1).split('&')
  const names = query.map((part) => (part.includes('=') ? `${part.slice(0, part.indexOf('='))}=${HIDDEN}` : HIDDEN))
  return `${protocol}//${host}${pathname}${search === '' ? '' : `?${names.join('&')}`}`
}

/** Replaces the parts of a path that are or look like tokens. `host` may have a port. */
export function withPathTokens(host: string, path: string, instead: () => string): string {
  if (WEBHOOK_HOST.test(host.replace(/:\d+$/, ''))) return path === '' || path === '/' ? path : `/${instead()}`
  return path
    .split('/')
    .map((part) => (looksLikeToken(part) ? instead() : part))
    .join('/')
}

/** The path that `request` adds to each of the URLs, with placeholders such as {{userId}}, which stay. */
export function hiddenPath(urls: readonly string[], path: string, instead = (): string => HIDDEN): string {
  const isWebhook = urls.some((url) => WEBHOOK_HOST.test(new URL(url).hostname))
  // Of a path that is a credential as a whole, only the slashes before its parts stay.
  const hidden = (part: string): string => (isWebhook ? part.replace(/[^/][^]*/, instead) : withPathTokens('', part, instead))
  return path
    .split(/(\{\{[^{}]*\}\})/)
    .map((part) => (part.startsWith('{{') ? part : hidden(part)))
    .join('')
}

/** At least 16 characters with a digit or a capital letter: most tokens, and few names, which are written with small letters and hyphens. */
function looksLikeToken(part: string): boolean {
  return /^[\w~%.:+=-]{16,}$/.test(part) && /[0-9A-Z]/.test(part)
}
