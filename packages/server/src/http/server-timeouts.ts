// The timeouts for receiving requests, for every HTTP server of the service.

import type { ServerOptions } from 'node:http'

/**
 * 1.5 times the body timeout for a whole request, so that the tracking API responds with its own error first. Node.js applies the longer of the two
 * timeouts to the whole request, so headersTimeout, which is a minute by default, must be the shorter one. Node.js only checks the timeouts at an interval.
 */
export function serverTimeouts(bodyTimeoutMs: number) {
  return {
    requestTimeout: 1.5 * bodyTimeoutMs,
    headersTimeout: bodyTimeoutMs,
    connectionsCheckingInterval: bodyTimeoutMs / 2,
    keepAliveTimeout: 72_000,
  } satisfies ServerOptions
}
