// nock 14 replaces both functions of node:http and global fetch. With the runtime's own fetch back in its place the client
// sends by node:http, which must work as well.

import nock from 'nock14'
import { type Intercept, mockedSuite } from './mocked-suite.ts'

const patchedFetch = globalThis.fetch
nock.restore()
const ownFetch = globalThis.fetch
nock.activate()

const intercept: Intercept = (host, replies) => {
  const bodies: string[] = []
  for (const { status, headers, body } of replies) {
    nock(host)
      .post('/v1/batch', (sent: unknown) => bodies.push(JSON.stringify(sent)) > 0)
      .reply(status, body, headers)
  }
  return { bodies, restore: () => nock.cleanAll() }
}

mockedSuite('nock 14', intercept)

mockedSuite('nock 14 at node:http', (host, replies) => {
  const mocked = intercept(host, replies)
  globalThis.fetch = ownFetch
  return {
    ...mocked,
    restore() {
      globalThis.fetch = patchedFetch
      mocked.restore?.()
    },
  }
})
