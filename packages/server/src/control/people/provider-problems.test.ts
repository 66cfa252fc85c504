// What a person and an operator read when the identity provider cannot be used, and that the admin token works all the time. Certificates are tested with
// a whole service: e2e/control/single-sign-on/certificates.test.ts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CALLBACK_PATH } from '../access/people/single-sign-on.ts'
import { Browser } from './fixtures/identity-provider.ts'
import { type Script, startScriptedProvider } from './fixtures/scripted-provider.ts'
import { type Desk, PUBLIC_URL, startDesk, startDeskWith } from './fixtures/start-single-sign-on.ts'

type Finding = { state: string; message: string; advice: string | null }

async function checkOf({ call }: Pick<Desk, 'call'>): Promise<Finding> {
  const { status, body } = await call('GET', '/api/diagnostics')
  assert.equal(status, 200, 'the admin token works')
  return body.checks.find(({ name }: { name: string }) => name === 'single_sign_on')
}

/** What the login page shows without a login. */
async function shownProblem({ call }: Pick<Desk, 'call'>): Promise<{ reason: string; message: string } | undefined> {
  return (await call('GET', '/api/login/methods', undefined, { token: null })).body.oidc.problem
}

async function startScripted(t: Parameters<typeof startScriptedProvider>[0], options = {}): Promise<Desk<Script>> {
  const desk = await startDeskWith(t, await startScriptedProvider(t), options)
  await desk.call('POST', '/api/sources', { name: 'shop' })
  return desk
}

test('a provider that works is good, and the check leaves nothing at the provider', async (t) => {
  const desk = await startDesk(t)
  assert.deepEqual([(await checkOf(desk)).state, await shownProblem(desk)], ['good', undefined])
  assert.equal((await desk.logIn()).status, 303)
})

test('a wrong client secret is found by the diagnostics before anybody logs in, and by the login page', async (t) => {
  const desk = await startDesk(t, { settings: { clientSecret: 'another secret' } })
  const check = await checkOf(desk)
  assert.equal(check.state, 'bad')
  assert.match(check.message, /rejects the client id or the client secret/)
  assert.match(check.advice ?? '', /SWITCHYARD_OIDC_CLIENT_SECRET/)
  const callback = await desk.logIn(new Browser(), '/live')
  assert.deepEqual([callback.status, callback.headers.get('location')], [303, '/?login=client_rejected&returnTo=%2Flive'])
  assert.equal((await shownProblem(desk))?.reason, 'client_rejected')
})

test('a client secret that was replaced at the provider is a problem until it is put right', async (t) => {
  const desk = await startScripted(t)
  assert.equal((await desk.logIn()).status, 303)
  desk.idp.secret = 'the next secret'
  assert.equal((await desk.logIn()).headers.get('location'), '/?login=client_rejected')
  assert.equal((await shownProblem(desk))?.reason, 'client_rejected')
  assert.ok(
    desk.events.some(({ problem }) => problem.includes('rejects the client id or the client secret')),
    'it is in the log',
  )
  assert.equal((await checkOf(desk)).state, 'bad')
  desk.idp.secret = 'a-client-secret-of-the-tests'
  assert.equal((await desk.logIn()).status, 303)
  assert.deepEqual([(await checkOf(desk)).state, await shownProblem(desk)], ['good', undefined])
})

for (const [what, idp] of Object.entries({
  'a client id': { settings: { clientId: 'unknown' } },
  'a redirect URI': { settings: { publicUrl: 'http://127.0.0.1:10' } },
})) {
  test(`${what} that the provider does not know is found by the diagnostics: the provider shows a page of its own to the browser`, async (t) => {
    const check = await checkOf(await startDesk(t, idp))
    assert.equal(check.state, 'bad')
    assert.match(check.message, /rejects the client id or the client secret/)
    assert.match(check.advice ?? '', /redirect URI/)
  })
}

test('a redirect URI is compared by the provider as it is registered', async (t) => {
  const desk = await startScripted(t)
  desk.idp.redirectUri = PUBLIC_URL + CALLBACK_PATH
  assert.equal((await checkOf(desk)).state, 'good')
  desk.idp.redirectUri = `${PUBLIC_URL}${CALLBACK_PATH}/`
  assert.match((await checkOf(desk)).message, /rejects the client id/)
})

test('a clock that is wrong is a warning of the diagnostics, and the reason on the login page if tokens are not accepted because of it', async (t) => {
  const desk = await startScripted(t)
  desk.idp.clockAheadMs = -600_000
  const check = await checkOf(desk)
  assert.equal(check.state, 'warning')
  assert.match(check.message, /is (599|600|601) s behind this machine's/)
  assert.equal((await desk.logIn()).headers.get('location'), '/?login=clock_wrong')
  assert.equal((await shownProblem(desk))?.reason, 'clock_wrong')
  assert.match((await checkOf(desk)).message, /expired or not valid yet/)
  desk.idp.clockAheadMs = 600_000
  assert.match((await checkOf(desk)).message, /ahead of this machine's|expired or not valid yet/)
})

test('an issuer that is no provider, or another one, is said to be misconfigured', async (t) => {
  for (const body of [{}, { issuer: 'https://another.example' }, '<html>', []]) {
    const desk = await startScripted(t)
    desk.idp.answers.set('/.well-known/openid-configuration', { status: 200, body })
    const start = await new Browser().get(`${desk.url}/api/login/oidc`)
    assert.equal(start.headers.get('location'), '/?login=misconfigured', JSON.stringify(body))
    assert.match((await checkOf(desk)).advice ?? '', /SWITCHYARD_OIDC_ISSUER/)
  }
})

test('what the provider says about a login that it refuses is in the log, as a code and nothing else', async (t) => {
  const desk = await startScripted(t)
  const refuse = async (error: string): Promise<string | null> => {
    desk.idp.callback = { error }
    return (await desk.logIn()).headers.get('location')
  }
  assert.equal(await refuse('access_denied'), '/?login=login_refused')
  assert.equal(desk.events.length, 0, 'somebody cancelled')
  assert.equal(await refuse('invalid_scope'), '/?login=login_refused')
  assert.match(desk.events.at(-1)?.problem ?? '', /invalid_scope/)
  assert.equal(await refuse('unauthorized_client'), '/?login=client_rejected')
  await refuse('<b>Call 555\nnow</b>')
  assert.doesNotMatch(JSON.stringify(desk.events), /555/)
})
