// nock 13 replaces functions of node:http and leaves fetch alone.

import nock from 'nock13'
import { mockedSuite } from './mocked-suite.ts'

mockedSuite('nock 13', (host, replies) => {
  const bodies: string[] = []
  for (const { status, headers, body } of replies) {
    nock(host)
      .post('/v1/batch', (sent: unknown) => bodies.push(JSON.stringify(sent)) > 0)
      .reply(status, body, headers)
  }
  return { bodies, restore: () => nock.cleanAll() }
})
