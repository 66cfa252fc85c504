// msw 2 in an ES module, with its server listening: it replaces functions of node:http and global fetch.

import { after, before } from 'node:test'
import { HttpResponse, http } from 'msw'
import { setupServer } from 'msw/node'
import { type Intercept, mockedSuite } from './mocked-suite.ts'

const ownFetch = globalThis.fetch
const server = setupServer()
before(() => server.listen({ onUnhandledRequest: 'error' }))
after(() => server.close())

const intercept: Intercept = (host, replies) => {
  const bodies: string[] = []
  server.use(
    http.post(`${host}/v1/batch`, async ({ request }) => {
      const { status, headers = {}, body } = replies[bodies.push(await request.text()) - 1] ?? { status: 500, body: '' }
      return new HttpResponse(body, { status, headers })
    }),
  )
  return { bodies, restore: () => server.resetHandlers() }
}

mockedSuite('msw 2', intercept)

mockedSuite('msw 2 at node:http', (host, replies) => {
  const mocked = intercept(host, replies)
  const patchedFetch = globalThis.fetch
  globalThis.fetch = ownFetch
  return {
    ...mocked,
    restore() {
      globalThis.fetch = patchedFetch
      mocked.restore?.()
    },
  }
})
