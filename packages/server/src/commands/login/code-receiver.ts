// Receives the code of a login from the browser: a server on a free port of 127.0.0.1 that answers one request. Any page in the browser can send requests to
// it, so only one with the state of this login counts, and a name that was pointed at 127.0.0.1 is not answered.

import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface CodeReceiver extends AsyncDisposable {
  port: number
  /** The code, and what answers the waiting browser. Rejects when the signal is aborted. */
  received(signal: AbortSignal): Promise<{ code: string | null; answer: (page: { title: string; text: string }) => void }>
}

const CALLBACK = '/'
const MAX_CODE = 1_000

export async function startCodeReceiver(state: string, wantedPort = 0): Promise<CodeReceiver> {
  let resolve: (received: { code: string | null; response: ServerResponse }) => void = () => {}
  const promise = new Promise<{ code: string | null; response: ServerResponse }>((resolved) => {
    resolve = resolved
  })
  let isReceived = false
  const server = createServer({ maxHeaderSize: 8_192, requestTimeout: 10_000 }, (request, response) => {
    const { port } = server.address() as AddressInfo
    const url = URL.canParse(request.url ?? '', 'http://127.0.0.1') ? new URL(request.url ?? '', 'http://127.0.0.1') : null
    const isOurs =
      request.method === 'GET' &&
      request.headers.host === `127.0.0.1:${port}` &&
      url?.pathname === CALLBACK &&
      isSame(url.searchParams.get('state') ?? '', state)
    if (!isOurs || url === null || isReceived)
      return send(response, 404, { title: 'Not found', text: 'This address belongs to a login of the Switchyard command line.' })
    isReceived = true
    const code = url.searchParams.get('code')
    resolve({ code: code !== null && code.length <= MAX_CODE ? code : null, response })
  })
  await new Promise<void>((listening, failed) => {
    server.once('error', failed)
    server.listen(wantedPort, '127.0.0.1', listening)
  })
  return {
    port: (server.address() as AddressInfo).port,
    async received(signal) {
      const aborted = new Promise<never>((_, reject) => {
        const stop = (): void => reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'))
        if (signal.aborted) stop()
        else signal.addEventListener('abort', stop, { once: true })
      })
      const { code, response } = await Promise.race([promise, aborted])
      return { code, answer: (page) => send(response, 200, page) }
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((done) => server.close(done))
      server.closeIdleConnections()
      setTimeout(() => server.closeAllConnections(), 1_000).unref()
      await closed
    },
  }
}

/** Compares in a time that does not depend on where they differ. */
function isSame(given: string, expected: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(expected))
}

/** The texts are ours, and contain no markup. */
function send(response: ServerResponse, status: number, { title, text }: { title: string; text: string }): void {
  if (response.headersSent) return
  response
    .writeHead(status, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      connection: 'close',
    })
    .end(
      `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>${title} · Switchyard</title><h1>${title}</h1><p>${text}</p></html>\n`,
    )
}
