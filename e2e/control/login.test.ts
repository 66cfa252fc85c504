// The dashboard's login, in a whole service: sessions after a restart and a change of the token, headers of proxies, requests from other
// sites, and what is logged about wrong tokens.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { type Service, startService, TOKEN } from '../system/service.ts'

async function call(service: Service, path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${service.url}${path}`, init)
}

function logIn(service: Service, token: string, headers: Record<string, string> = {}): Promise<Response> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify({ token }) }
  return call(service, '/api/login', init)
}

function cookieOf(response: Response): string {
  return response.headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
}

const statusWith = async (service: Service, cookie: string): Promise<number> =>
  (await call(service, '/api/session', { headers: { cookie } })).status

test('a session survives a restart and ends when the admin token is replaced', async () => {
  await using first = await startService()
  const cookie = cookieOf(await logIn(first, TOKEN))
  assert.equal(await statusWith(first, cookie), 200)
  await first.stop()
  await using second = await startService({ folder: first.folder })
  assert.equal(await statusWith(second, cookie), 200)
  await second.stop()
  await using third = await startService({ folder: first.folder, token: 'another-token' })
  assert.equal(await statusWith(third, cookie), 401)
  assert.equal((await logIn(third, TOKEN)).status, 401)
  assert.equal((await logIn(third, 'another-token')).status, 200)
})

test('behind a trusted proxy the cookie is Secure, and each client address is rate-limited separately', async () => {
  await using service = await startService({ env: { SWITCHYARD_TRUSTED_PROXIES: '127.0.0.1' } })
  const https = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'switchyard.example' }
  const secure = await logIn(service, TOKEN, { ...https, origin: 'https://switchyard.example' })
  assert.match(secure.headers.getSetCookie()[0] ?? '', /^__Host-.*; Secure$/)
  const foreign = await logIn(service, TOKEN, { ...https, origin: 'http://switchyard.example' })
  assert.equal(foreign.status, 403)
  const statuses: number[] = []
  for (let at = 0; at < 12; at++) statuses.push((await logIn(service, `guess-${at}`, { 'x-forwarded-for': '198.51.100.9' })).status)
  assert.deepEqual([statuses[0], statuses.at(-1)], [401, 429])
  assert.equal((await logIn(service, TOKEN, { 'x-forwarded-for': '198.51.100.10' })).status, 200)
})

suite('without a proxy', () => {
  let service: Service
  before(async () => {
    service = await startService()
  })
  after(() => service[Symbol.asyncDispose]())

  test('the tracking API is open to pages of every origin, the control API to none', async () => {
    const preflight = { origin: 'https://evil.example', 'access-control-request-method': 'POST' }
    const open = await call(service, '/v1/track', { method: 'OPTIONS', headers: preflight })
    assert.ok(open.headers.has('access-control-allow-origin'))
    const cookie = cookieOf(await logIn(service, TOKEN))
    for (const init of [
      { method: 'OPTIONS', headers: preflight },
      { headers: { origin: 'https://evil.example', authorization: `Bearer ${TOKEN}` } },
      { headers: { cookie, 'sec-fetch-site': 'cross-site' } },
    ]) {
      const { headers } = await call(service, '/api/sources', init)
      assert.deepEqual(
        [...headers.keys()].filter((name) => name.startsWith('access-control')),
        [],
      )
    }
  })

  test('the log has the address that sent a wrong token, but not the token', async () => {
    await logIn(service, 'SECRET-wrong-token')
    await call(service, '/api/sources', { headers: { authorization: 'Bearer SECRET-other-token' } })
    const lines = await Promise.all(
      ['login', 'bearer'].map((how) => service.logged(({ msg, how: of }) => /invalid control token/.test(msg) && of === how)),
    )
    for (const { level, address } of lines) assert.deepEqual([level, address], ['warn', '127.0.0.1'])
    assert.doesNotMatch(service.stderr() + service.stdout(), /SECRET/)
  })

  // The last test, because afterwards this address is rate-limited.
  test('a header cannot claim https or another address without a trusted proxy', async () => {
    const answer = await logIn(service, TOKEN, { 'x-forwarded-proto': 'https' })
    assert.match(answer.headers.getSetCookie()[0] ?? '', /^switchyard_session=.*Max-Age=43200$/)
    const statuses: number[] = []
    for (let at = 0; at < 12; at++) statuses.push((await logIn(service, `guess-${at}`, { 'x-forwarded-for': `198.51.100.${at}` })).status)
    assert.equal(statuses.at(-1), 429)
  })
})
