// Calls of the tracking API to copy, with the write key and the address of this service filled in. Pure; a test runs them against the rules of
// a shell and of JSON. A write key is letters, digits and . _ ~ - only, so it needs no quoting of its own.

export const SNIPPET_KINDS = ['curl', 'node', 'browser'] as const
export type SnippetKind = (typeof SNIPPET_KINDS)[number]

export const SNIPPET_LABELS: Readonly<Record<SnippetKind, string>> = { curl: 'curl', node: 'Node.js', browser: 'Browser' }

export interface SnippetFor {
  /** Of this service, without a slash at its end. */
  origin: string
  writeKey: string
  /** Where a write key alone is refused. */
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

/** What there is to know beside the lines. */
export function snippetNote(kind: SnippetKind, { requireOAuth = false }: Pick<SnippetFor, 'requireOAuth'>): string {
  if (kind === 'curl') {
    return requireOAuth
      ? 'ACCESS_TOKEN is from POST /oauth2/token, for an OAuth application that this source is attached to.'
      : 'Paste it into a terminal.'
  }
  if (kind === 'node') return "The same lines work with Segment's client: import Analytics from @segment/analytics-node instead."
  return requireOAuth
    ? 'A page cannot keep a secret: for browsers, use a source that does not require OAuth.'
    : 'For any page, or the console of a browser. Calls from other origins are allowed. In your pages, make up an anonymousId for each visitor and keep it.'
}

/** Enough to tell keys apart, too little to use one. */
export function maskedKey(key: string): string {
  return key.length >= 16 ? `${key.slice(0, 4)}${'•'.repeat(8)}${key.slice(-4)}` : '•'.repeat(12)
}

/** Whether only programs on the same machine reach the service at this address. */
export function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname)
}
