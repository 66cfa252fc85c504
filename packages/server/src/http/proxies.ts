// Finds the address of the sender of a request and the origin that it requested, behind trusted proxies. Forwarding headers are used only if they
// come from a configured proxy, because anybody can send them.

import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'

type Sender = Pick<IncomingMessage, 'headers' | 'socket'>

export interface Proxies {
  /** The address of the client that sent the request to the first trusted proxy, or that connected directly. */
  senderAddress(request: Sender): string | null
  /** The protocol and host that the client requested. */
  requestedOrigin(request: IncomingMessage): { protocol: 'http' | 'https'; host: string | undefined }
}

/**
 * `trusted` contains IP addresses and CIDR blocks. Throws for any other entry. If `publicUrl` is set, it is used as the
 * origin of every request, whatever its headers say.
 */
export function createProxies(trusted: readonly string[], publicUrl: string | null = null): Proxies {
  const list = new BlockList()
  for (const entry of trusted) addTo(list, entry)
  const isTrusted = (address: string): boolean => trusted.length > 0 && list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')

  const known = publicUrl === null ? null : new URL(publicUrl)
  const publicAddress = known === null ? null : ({ protocol: known.protocol === 'https:' ? 'https' : 'http', host: known.host } as const)

  const peerOf = (request: Sender): string | null => {
    const address = request.socket.remoteAddress
    return address === undefined ? null : plainAddress(address)
  }

  return {
    senderAddress(request) {
      let address = peerOf(request)
      if (trusted.length === 0) return address
      const forwarded = request.headers['x-forwarded-for']
      if (forwarded === undefined) return address
      // Each proxy appends the address of its client, so the list is trusted from the right, up to the first address that is not a trusted proxy.
      const hops = (typeof forwarded === 'string' ? forwarded : forwarded.join()).split(',')
      while (address !== null && isTrusted(address)) {
        const hop = hops.pop()
        const next = hop === undefined ? undefined : withoutPort(hop.trim())
        if (next === undefined || isIP(next) === 0) return address
        address = plainAddress(next)
      }
      return address
    },
    requestedOrigin(request) {
      if (publicAddress !== null) return publicAddress
      const peer = peerOf(request)
      const proxied = peer !== null && isTrusted(peer)
      const protocol = (proxied && lastOf(request.headers['x-forwarded-proto'])) || ('encrypted' in request.socket ? 'https' : 'http')
      const host = (proxied && lastOf(request.headers['x-forwarded-host'])) || request.headers.host
      return { protocol: protocol === 'https' ? 'https' : 'http', host }
    },
  }
}

/**
 * Node.js uses the first of two Host headers; a proxy in front may have checked the other. RFC 9112 requires that such a request is
 * rejected.
 */
export function hasSeveralHosts({ rawHeaders }: IncomingMessage): boolean {
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  return hosts > 1
}

function addTo(list: BlockList, entry: string): void {
  const [address = '', prefix, ...rest] = entry.split('/')
  const version = isIP(address)
  const longest = version === 6 ? 128 : 32
  const bits = prefix === undefined ? longest : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN
  if (version === 0 || rest.length > 0 || !(bits <= longest))
    throw new Error(`A trusted proxy must be an IP address or a CIDR block, not ${JSON.stringify(entry)}.`)
  list.addSubnet(address, bits, version === 6 ? 'ipv6' : 'ipv4')
}

/** A dual-stack socket shows an IPv4 peer as ::ffff:1.2.3.4. */
function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}

/** Some proxies write `1.2.3.4:5678` or `[::1]:5678`. */
function withoutPort(hop: string): string {
  return /^\[([^\]]+)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop
}

/** Returns the last value, which the trusted proxy appended. The values before it may come from the sender. */
function lastOf(header: string | string[] | undefined): string | undefined {
  return (typeof header === 'string' ? header : header?.at(-1))?.split(',').at(-1)?.trim() || undefined
}
