// The address of the authorization server as a client sees it. The host is that of SWITCHYARD_PUBLIC_URL if it is set, otherwise the
// one that the request was sent to, according to its headers or a trusted proxy. A proxy may add TLS and a path prefix without
// reporting it, so neither the scheme nor the leading path is compared; only the host distinguishes servers.

/** Clients put `{base}/oauth2` into `aud`, and some add `/token`. */
const PATH = /\/oauth2(?:\/token)?\/*$/

export function isAddressOf(text: string, host: string | undefined): boolean {
  if (host === undefined || !/^https?:\/\//i.test(text) || !URL.canParse(text)) return false
  const url = new URL(text)
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') return false
  // Uses the scheme of the compared URL, so that the default port is removed from both.
  const own = `${url.protocol}//${host}`
  return PATH.test(url.pathname) && URL.canParse(own) && new URL(own).host === url.host
}

/** `host` must have matched in isAddressOf. Everything in the header that is not part of the origin is removed. */
export function addressOf(protocol: string, host: string | undefined): string {
  return `${new URL(`${protocol}://${host}`).origin}/oauth2`
}
