// Whether requests must go through global fetch instead of node:http, because somebody has changed what fetch does: test
// suites replace it (msw, nock 14, vi.fn), tools wrap it, and undici's dispatcher behind it is replaced for proxies
// (NODE_USE_ENV_PROXY=1) and mocks (MockAgent). This is checked before each request, because a test may change it at any time.

/** The source text of the runtime's own fetch, the same in every Node.js since 18. Remembering the function at import would not work, because a mock may already be installed. */
const RUNTIME_FETCH = /^(async )?function fetch\(input, init = undefined\) \{[^]*undici/i
/** The symbols under which undici stores its global dispatcher; since version 7 it uses both. */
const DISPATCHERS = [Symbol.for('undici.globalDispatcher.1'), Symbol.for('undici.globalDispatcher.2')] as const

let seenFetch: unknown
let isRuntimeFetch = true

export function isFetchChanged(): boolean {
  const { fetch } = globalThis
  if (fetch !== seenFetch) {
    seenFetch = fetch
    // There is no fetch with --no-experimental-fetch.
    isRuntimeFetch = typeof fetch !== 'function' || RUNTIME_FETCH.test(Function.prototype.toString.call(fetch))
  }
  return !isRuntimeFetch || isDispatcherChanged()
}

/** The runtime sets an EnvHttpProxyAgent to use a proxy; undici's default is an Agent. */
function isDispatcherChanged(): boolean {
  for (const key of DISPATCHERS) {
    const dispatcher = (globalThis as { [key: symbol]: object | undefined })[key]
    if (dispatcher !== undefined && dispatcher.constructor?.name !== 'Agent') return true
  }
  return false
}

let isProxyChecked = false

/** Warns once if a proxy is configured that the runtime does not use. */
export function warnOfUnusedProxy(): void {
  if (isProxyChecked) return
  isProxyChecked = true
  const { env, version } = process
  const proxy = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy'].find((name) => env[name])
  if (env['NODE_USE_ENV_PROXY'] !== '1' || proxy === undefined || isDispatcherChanged()) return
  process.emitWarning(
    `NODE_USE_ENV_PROXY=1 has no effect in this process (Node.js ${version}): ${proxy} is not used, and requests are sent directly. ` +
      'Set it before Node.js starts, and use Node.js 22.21, 24 or later; or pass an httpClient that uses the proxy.',
    'SwitchyardWarning',
  )
}
