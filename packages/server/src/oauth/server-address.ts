// The authorization server's own address, as a client sees it. The service does not know it from its settings: the host is
// the one that the request was sent to, or that a trusted proxy says it was sent to. A proxy may add TLS and a path in
// front without telling, so neither scheme nor leading path is compared; the host is what tells one server from another.

/** `{base}/oauth2`: what clients put in `aud`, and add `/token` to. */
const PATH = /\/oauth2(?:\/token)?\/*$/

export function isAddressOf(text: string, host: string | undefined): boolean {
  if (host === undefined || !/^https?:\/\//i.test(text) || !URL.canParse(text)) return false
  const url = new URL(text)
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') return false
  // With the scheme of the one that is compared, so that a default port is left out of both.
  const own = `${url.protocol}//${host}`
  return PATH.test(url.pathname) && URL.canParse(own) && new URL(own).host === url.host
}

/** Of a host that was found to be in an address: whatever else the header has is left out. */
export function addressOf(protocol: string, host: string | undefined): string {
  return `${new URL(`${protocol}://${host}`).origin}/oauth2`
}
