// The proxy that the environment names for a URL, if NODE_USE_ENV_PROXY=1 (or --use-env-proxy) asks for it. The variables and the
// rules of NO_PROXY are those that Node.js documents. The client makes these requests itself: global fetch sends even plain HTTP
// through CONNECT, and reconnects without a delay and without an end if the proxy closes the connection.

import type * as Http from 'node:http'
import type * as Https from 'node:https'
import type * as Net from 'node:net'
import type { Duplex } from 'node:stream'
import { TimeoutError } from '../http/transport.ts'

export interface Proxy {
  /** The proxy's URL without its credentials, for error messages. */
  name: string
  isSecure: boolean
  address: { host: string; port: number; autoSelectFamily: boolean }
  /** With the credentials, if the proxy's URL has any. */
  headers: Record<string, string>
}

/** Throws if a variable has no usable URL. The error does not contain the value, which may have a password. */
export function proxyFor(net: typeof Net, url: URL, env: NodeJS.ProcessEnv): Proxy | undefined {
  // As global fetch does, HTTP_PROXY also serves HTTPS if HTTPS_PROXY is not set.
  const names = url.protocol === 'https:' ? ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY'] : ['http_proxy', 'HTTP_PROXY']
  const variable = names.find((name) => env[name])
  if (variable === undefined || isExempt(net, url, env['no_proxy'] || env['NO_PROXY'] || '')) return undefined
  let proxy: URL | undefined
  try {
    const text = env[variable] as string
    proxy = new URL(text.includes('://') ? text : `http://${text}`)
  } catch {}
  if (proxy?.protocol !== 'http:' && proxy?.protocol !== 'https:') {
    throw new Error(`${variable} must be the URL of an HTTP proxy, such as http://proxy.example:3128`)
  }
  const isSecure = proxy.protocol === 'https:'
  const { username, password } = proxy
  const credentials = Buffer.from(`${decoded(username)}:${decoded(password)}`).toString('base64')
  return {
    name: proxy.origin,
    isSecure,
    address: { host: hostOf(proxy), port: Number(proxy.port) || (isSecure ? 443 : 80), autoSelectFamily: true },
    headers: username || password ? { 'Proxy-Authorization': `Basic ${credentials}` } : {},
  }
}

/** Without the brackets of an IPv6 address. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '')
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** NO_PROXY has names, `.suffix`, `*.suffix`, addresses, ranges (`10.0.0.1-10.0.0.9`, `10.0.0.0/8`) and `*`, each with an optional port. */
function isExempt(net: typeof Net, url: URL, list: string): boolean {
  const host = hostOf(url).toLowerCase()
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  return list.split(/[\s,]+/).some((entry) => {
    const [, bracketed, plain, ownPort] =
      /^(?:\[([^\]]*)\]|(.*?))(?::(\d+))?$/.exec(net.isIP(entry) ? `[${entry}]` : entry.toLowerCase()) ?? []
    const name = bracketed ?? plain ?? ''
    if (name === '' || (ownPort !== undefined && ownPort !== port)) return false
    if (name === '*' || name === host) return true
    if (/^\*?\./.test(name)) return host.endsWith(name.replace('*', ''))
    return net.isIP(host) > 0 && isInRange(net, host, name)
  })
}

function isInRange({ isIP, BlockList }: typeof Net, address: string, range: string): boolean {
  const family = (text: string): 'ipv4' | 'ipv6' => (isIP(text) === 6 ? 'ipv6' : 'ipv4')
  const [, first = '', separator, last = ''] = /^([^-/]+)([-/]?)(.*)$/.exec(range) ?? []
  const block = new BlockList()
  try {
    if (separator === '/') block.addSubnet(first, Number(last), family(first))
    else if (separator === '-') block.addRange(first, last, family(first))
    else block.addAddress(first, family(first))
  } catch {
    return false
  }
  return block.check(address, family(address))
}

export function refused(what: string, { statusCode, statusMessage = '' }: Http.IncomingMessage): Error {
  return new Error(`the proxy answered ${what} with [${statusCode}] ${statusMessage}`.trimEnd())
}

/** Names the proxy, so that its failure is not taken for one of the service. */
export function throughProxy(error: Error, proxy: Proxy): Error {
  const { code } = error as NodeJS.ErrnoException
  const named = new Error(`${error.message} (through the proxy ${proxy.name})`)
  return Object.assign(named, { name: error.name, ...(code === undefined ? {} : { code }) })
}

/** An agent whose connections are tunnels through the proxy. */
export function tunnelAgent(
  { http, https }: { http: typeof Http; https: typeof Https },
  proxy: Proxy,
  options: Https.AgentOptions,
): Https.Agent {
  const opening = new Set<Http.ClientRequest>()

  /** A tunnel that is not open at the deadline of its request is given up. */
  function open(authority: string, target: TunnelOptions, done: (error: Error | null, socket: Net.Socket) => void): void {
    const module = proxy.isSecure ? https : http
    const headers = { ...proxy.headers, Host: authority }
    // Not kept in the pool: a socket that is a tunnel belongs to its target.
    const request = module.request({ ...proxy.address, method: 'CONNECT', path: authority, headers, agent: false })
    let isOver = false
    const end = (error: Error | null, socket?: Net.Socket): void => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      opening.delete(request)
      if (error) {
        socket?.destroy()
        request.destroy()
      }
      done(error, (error ? undefined : socket) as Net.Socket)
    }
    const timer = setTimeout(() => end(new TimeoutError(target.timeoutMs)), target.deadline - performance.now())
    opening.add(request)
    request.on('error', end)
    request.on('close', () => end(new Error('the proxy closed the connection')))
    request.on('connect', (response, socket, head) => {
      const { statusCode = 0 } = response
      if (statusCode < 200 || statusCode > 299) return end(refused('CONNECT', response), socket)
      // The TLS connection in the tunnel reports its own errors, and ends with this socket.
      socket.on('error', () => {})
      if (head.length > 0) socket.unshift(head)
      end(null, socket)
    })
    request.end()
  }

  class TunnelAgent extends https.Agent {
    override createConnection(options: Https.RequestOptions, done?: (error: Error | null, socket: Duplex) => void): undefined {
      const target = options as TunnelOptions
      const host = target.host.includes(':') ? `[${target.host}]` : target.host
      open(`${host}:${target.port || 443}`, target, (error, socket) => {
        done?.(error, socket && (super.createConnection({ ...target, socket } as Https.RequestOptions) as Duplex))
      })
    }

    override destroy(): void {
      for (const request of opening) request.destroy(new Error('the client is closed'))
      super.destroy()
    }
  }
  return new TunnelAgent(options)
}

interface TunnelOptions extends Https.RequestOptions {
  host: string
  /** A time of performance.now(). */
  deadline: number
  timeoutMs: number
}
