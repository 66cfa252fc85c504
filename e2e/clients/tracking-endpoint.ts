// A tracking API for these tests, on the client's test server: accepts every batch, rejects the write key `refused`, and issues one access
// token. It does not validate messages, as the service does.

import { type PlannedAnswer, type ReceivedMessage, startTrackingServer } from '../../packages/node/test/tracking-server.ts'

export interface TrackingEndpoint {
  url: string
  /** Accepted messages, in the order of arrival. */
  messages: ReceivedMessage[]
  /** The headers of each accepted batch. */
  headers: Record<string, string>[]
  /** The form of each request for a token. */
  tokenForms: URLSearchParams[]
  close(): Promise<void>
}

export const REFUSED_KEY = 'refused'
export const ACCESS_TOKEN = 'token-of-the-endpoint'

export async function createTrackingEndpoint(): Promise<TrackingEndpoint> {
  const messages: ReceivedMessage[] = []
  const headers: Record<string, string>[] = []
  const tokenForms: URLSearchParams[] = []
  const server = await startTrackingServer((request): PlannedAnswer => {
    if (request.path === '/oauth2/token') {
      tokenForms.push(new URLSearchParams(request.text))
      return { body: JSON.stringify({ access_token: ACCESS_TOKEN, token_type: 'Bearer', expires_in: 3600 }) }
    }
    if (request.path !== '/v1/batch') return { status: 404, body: '{"success":false,"code":"not_found"}' }
    if (request.body.writeKey === REFUSED_KEY) return { status: 400, body: '{"success":false,"code":"invalid_request"}' }
    const { authorization } = request.headers
    if (authorization?.startsWith('Bearer ') && authorization !== `Bearer ${ACCESS_TOKEN}`) return { status: 401 }
    headers.push(request.headers)
    messages.push(...request.body.batch)
    return {}
  })
  return { url: server.url, messages, headers, tokenForms, close: () => server.close() }
}
