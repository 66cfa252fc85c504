// Code to copy that calls the tracking API, with the write key and the URL of this service filled in. Pure; tests run it in a shell and
// parse its JSON. A write key consists of letters, digits and . _ ~ - only, so it needs no quoting.

export const SNIPPET_KINDS = ['curl', 'node', 'browser'] as const
export type SnippetKind = (typeof SNIPPET_KINDS)[number]

export const SNIPPET_LABELS: Readonly<Record<SnippetKind, string>> = { curl: 'curl', node: 'Node.js', browser: 'Browser' }

export interface SnippetFor {
  /** The URL of this service, without a trailing slash. */
  origin: string
  writeKey: string
  /** Whether a write key alone is rejected. */
  requireOAuth?: boolean
}

export function snippetOf(kind: SnippetKind, source: SnippetFor): string {
  if (kind === 'curl') return curl(source)
  return kind === 'node' ? node(source) : browser(source)
}

const MESSAGE = { userId: 'u-1', event: 'Order Completed', properties: { total: 12.5 } }

function curl({ origin, writeKey, requireOAuth = false }: SnippetFor): string {
  const lines = requireOAuth
    ? [`--header "Authorization: Bearer $ACCESS_TOKEN"`, `--data '${JSON.stringify({ writeKey, ...MESSAGE })}'`]
    : [`--user '${writeKey}:'`, `--data '${JSON.stringify(MESSAGE)}'`]
  return [`curl ${origin}/v1/track`, `--header 'Content-Type: application/json'`, ...lines].join(' \\\n  ')
}

function node({ origin, writeKey, requireOAuth = false }: SnippetFor): string {
  const settings = [`writeKey: '${writeKey}'`, `host: '${origin}'`]
  if (requireOAuth) settings.push(`oauthSettings: { clientId: 'app_…', keyId: 'key-1', clientKey: readFileSync('private.pem', 'utf8') }`)
  return `${requireOAuth ? "import { readFileSync } from 'node:fs'\n" : ''}import { Analytics } from '@switchyard/node'

const analytics = new Analytics({
${settings.map((line) => `  ${line},`).join('\n')}
})
analytics.track({ userId: 'u-1', event: 'Order Completed', properties: { total: 12.5 } })
await analytics.closeAndFlush()`
}

function browser({ origin, writeKey }: SnippetFor): string {
  return `fetch('${origin}/v1/track', {
  method: 'POST',
  keepalive: true,
  body: JSON.stringify({
    writeKey: '${writeKey}',
    anonymousId: 'visitor-1',
    event: 'Order Completed',
    properties: { total: 12.5 },
  }),
})`
}

/** A remark below the code. */
export function snippetNote(kind: SnippetKind, { requireOAuth = false }: Pick<SnippetFor, 'requireOAuth'>): string {
  if (kind === 'curl') {
    return requireOAuth
      ? 'Get ACCESS_TOKEN from POST /oauth2/token, for an OAuth application that can send to this source.'
      : 'Run this in a terminal.'
  }
  if (kind === 'node') return "The same code works with Segment's client: import Analytics from @segment/analytics-node instead."
  return requireOAuth
    ? 'Web pages cannot keep a secret: for browsers, use a source that does not require OAuth.'
    : 'Run this in a web page or in the browser console; requests from any origin are allowed. In your pages, generate an anonymousId for each visitor and store it.'
}

/** Viewers get only the end of a write key, after this mark. */
export function isHiddenKey(key: string): boolean {
  return key.startsWith('…')
}

/** Shows enough to distinguish keys, and too little to use one. */
export function maskedKey(key: string): string {
  return key.length >= 16 ? `${key.slice(0, 4)}${'•'.repeat(8)}${key.slice(-4)}` : '•'.repeat(12)
}

/** Whether only programs on the same machine can reach a service at this host name. */
export function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname)
}
