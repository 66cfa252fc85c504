// Whether requests must go through global fetch instead of node:http, because somebody has changed what fetch does: test
// suites replace it (msw, nock 14, vi.fn), tools wrap it, and undici's dispatcher behind it is replaced for proxies
// (ProxyAgent) and mocks (MockAgent). This is checked before each request, because a test may change it at any time. The dispatcher
// that the runtime sets for NODE_USE_ENV_PROXY=1 is not such a change: node-proxy.ts reads the same variables.

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

/** Undici's default is an Agent. For NODE_USE_ENV_PROXY=1, the runtime sets an EnvHttpProxyAgent. */
function isDispatcherChanged(): boolean {
  for (const key of DISPATCHERS) {
    const name = (globalThis as { [key: symbol]: object | undefined })[key]?.constructor?.name
    if (name !== undefined && name !== 'Agent' && !(name === 'EnvHttpProxyAgent' && usesEnvProxy())) return true
  }
  return false
}

/** Whether the environment's proxies are to be used. Older versions of Node.js do not know the setting, but the client follows it. */
export function usesEnvProxy(): boolean {
  const { env, execArgv } = process
  if (env['NODE_USE_ENV_PROXY'] !== undefined) return env['NODE_USE_ENV_PROXY'] === '1'
  return [...execArgv, ...(env['NODE_OPTIONS'] ?? '').split(' ')].includes('--use-env-proxy')
}
