// Decides which addresses may be dialled: public unicast ones, and those that the configuration allows. An address that is not clearly
// public is rejected in any notation. It checks addresses only; connections.ts resolves names and dials the checked address.

import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6

export interface AddressRange {
  address: Address
  prefixBits: number
}

export interface AddressGuard {
  /** Whether this address, in the notation of a resolver or of a parsed URL, may be dialled. */
  permits(ip: string): boolean
}

export interface AddressGuardOptions {
  /** Permits loopback, private and reserved addresses; never link-local, metadata services, multicast or unspecified. */
  allowPrivate: boolean
  /** Ranges permitted besides, as CIDR. A link-local address or a metadata service has to be named by its exact address. */
  allow: readonly string[]
}

/** public: may be dialled. internal: the configuration may allow it. metadata: must be allowed by its exact address. never: cannot be allowed. */
type Category = 'public' | 'internal' | 'metadata' | 'never'

/**
 * Where clouds hand out credentials to any caller inside. Most of them are link-local (169.254.169.254 and its neighbours), and new ones
 * appear there, so every link-local address counts as one; these are the others. Azure's is a public address.
 */
const METADATA = new Set(
  [
    '100.100.100.200', // Alibaba Cloud
    '192.0.0.192', // Oracle Cloud, older
    '168.63.129.16', // Azure WireServer
    'fd00:ec2::254', // AWS
    'fd00:ec2::23', // AWS EKS pod identity
    'fd00:c1::a9fe:a9fe', // Oracle Cloud
    'fd20:ce::254', // Google Cloud
    'fd00:42::42', // Scaleway
  ].map((ip) => ipaddr.parse(ip).toNormalizedString()),
)

const GLOBAL_UNICAST_V6 = ipaddr.parseCIDR('2000::/3')
const V4_COMPATIBLE = ipaddr.parseCIDR('::/96')
const WELL_KNOWN_NAT64 = ipaddr.parseCIDR('64:ff9b::/96')

/** Throws a RangeError if a range of `allow` is invalid. */
export function createAddressGuard({ allowPrivate, allow }: AddressGuardOptions): AddressGuard {
  const ranges = parseAddressRanges(allow)
  return {
    permits(ip) {
      // ipaddr.js also reads 0x7f.1 and 017700000001; a resolver and a parsed URL write neither.
      if (isIP(ip) === 0) return false
      const address = unmapped(parseAddress(ip))
      const category = categoryOf(address)
      if (category === 'public') return true
      if (category === 'never') return false
      if (category === 'internal' && allowPrivate) return true
      return ranges.some((range) => contains(range, address) && (category === 'internal' || isExact(range)))
    },
  }
}

/** Reads `10.0.0.0/8`, `fd00::/8`, or a single address. Throws a RangeError that names the invalid entry. */
export function parseAddressRanges(ranges: readonly string[]): AddressRange[] {
  return ranges.map(parseAddressRange)
}

function parseAddressRange(text: string): AddressRange {
  const [ip = '', prefix, ...rest] = text.split('/')
  if (isIP(ip) === 0 || ip.includes('%') || rest.length > 0 || (prefix !== undefined && !/^\d{1,3}$/.test(prefix))) {
    throw new RangeError(`"${text}" is not an address range: write it like 10.0.0.0/8, fd00::/8 or 192.0.2.7.`)
  }
  const address = parseAddress(ip)
  const maxBits = address.kind() === 'ipv4' ? 32 : 128
  const prefixBits = prefix === undefined ? maxBits : Number(prefix)
  if (prefixBits > maxBits) throw new RangeError(`"${text}" is not an address range: the prefix is at most ${maxBits}.`)
  if (address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress()) {
    throw new RangeError(`"${text}" is an IPv4 range written as IPv6: write it as IPv4.`)
  }
  const network = networkOf(address, prefixBits)
  if (network !== address.toString()) {
    throw new RangeError(`"${text}" has address bits beyond its prefix: write ${network}/${prefixBits}, or ${ip} for that address alone.`)
  }
  return { address, prefixBits }
}

function networkOf(address: Address, prefixBits: number): string {
  const cidr = `${address.toString()}/${prefixBits}`
  return (address.kind() === 'ipv4' ? ipaddr.IPv4 : ipaddr.IPv6).networkAddressFromCIDR(cidr).toString()
}

/** The dotted end is turned to hexadecimal first: ipaddr.js reads ::8.8.8.8 as ::ffff:8.8.8.8, and the kernel does not. */
function parseAddress(ip: string): Address {
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)(%.*)?$/.exec(ip)
  if (dotted === null) return ipaddr.parse(ip)
  const [, start = '', a, b, c, d, zone = ''] = dotted
  const hex = [Number(a) * 256 + Number(b), Number(c) * 256 + Number(d)].map((part) => part.toString(16))
  return ipaddr.parse(start + hex.join(':') + zone)
}

/** ::ffff:10.0.0.1 is dialled as 10.0.0.1 by the kernel, so it is that address in every respect. */
function unmapped(address: Address): Address {
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() ? address.toIPv4Address() : address
}

function categoryOf(address: Address): Category {
  if (METADATA.has(withoutZone(address))) return 'metadata'
  return address instanceof ipaddr.IPv6 ? categoryOfV6(address) : categoryOfV4(address)
}

function categoryOfV4(address: ipaddr.IPv4): Category {
  switch (address.range()) {
    case 'unicast':
      return 'public'
    case 'unspecified':
    case 'multicast':
    case 'broadcast':
      return 'never'
    case 'linkLocal':
      return 'metadata'
    default:
      return 'internal'
  }
}

function categoryOfV6(address: ipaddr.IPv6): Category {
  const range = address.range()
  if (range === 'unspecified' || range === 'multicast') return 'never'
  if (range === 'loopback') return 'internal'
  if (range === 'linkLocal') return 'metadata'
  const embedded = embeddedV4(address).map(categoryOf)
  // NAT64's well-known prefix is how an IPv6-only network reaches public IPv4 at all; DNS64 answers with it.
  if (address.match(WELL_KNOWN_NAT64)) return embedded[0] ?? 'internal'
  // The other embeddings are obsolete. They are never public, and get the strictest category of the addresses they embed.
  if (embedded.includes('never')) return 'never'
  if (embedded.includes('metadata')) return 'metadata'
  return range === 'unicast' && address.match(GLOBAL_UNICAST_V6) ? 'public' : 'internal'
}

/** The IPv4 addresses that a transition mechanism would take out of this one. */
function embeddedV4(address: ipaddr.IPv6): ipaddr.IPv4[] {
  const bytes = address.toByteArray()
  const at = (offset: number, flip = 0): ipaddr.IPv4 => new ipaddr.IPv4(bytes.slice(offset, offset + 4).map((byte) => byte ^ flip))
  switch (address.range()) {
    case 'rfc6052':
      return [at(12)]
    case 'rfc6145':
      return [at(12)]
    case '6to4':
      return [at(2)]
    case 'teredo':
      // The server, and the client behind it with every bit flipped.
      return [at(4), at(12, 0xff)]
    default:
      return address.match(V4_COMPATIBLE) ? [at(12)] : []
  }
}

function contains({ address: network, prefixBits }: AddressRange, address: Address): boolean {
  return network.kind() === address.kind() && address.match(network, prefixBits)
}

function isExact({ address, prefixBits }: AddressRange): boolean {
  return prefixBits === (address.kind() === 'ipv4' ? 32 : 128)
}

function withoutZone(address: Address): string {
  return address.toNormalizedString().split('%', 1)[0] as string
}
