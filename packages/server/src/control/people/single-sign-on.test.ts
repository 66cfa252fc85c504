// A login with single sign-on against a real provider: from the button to the session, and the end of the session.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { startControl } from '../fixtures/start-control.ts'
import { Browser } from './fixtures/identity-provider.ts'
import { startDesk } from './fixtures/start-single-sign-on.ts'

async function withShop(desk: Awaited<ReturnType<typeof startDesk>>): Promise<string> {
  return (await desk.call('POST', '/api/sources', { name: 'shop' })).body.id
}

test('a person logs in, gets the role and the sources of the rules, and logs out', async (t) => {
  const desk = await startDesk(t)
  const shop = await withShop(desk)
  const browser = new Browser()
  const callback = await desk.logIn(browser, '/sources?x=1#y')
  assert.equal(callback.status, 303)
  assert.equal(callback.headers.get('location'), '/sources?x=1#y')
  const session = await desk.call('GET', '/api/session', undefined, desk.as(browser))
  assert.equal(session.status, 200)
  const { actor, role, sources } = session.body
  assert.deepEqual({ ...actor, id: '' }, { id: '', name: 'Ada', type: 'person', subject: 'ada', email: 'ada@example.com' })
  assert.deepEqual({ role, sources }, { role: 'editor', sources: [shop] })

  const people = await desk.call('GET', '/api/people')
  assert.deepEqual(
    people.body.data.map(({ subject, email, name, sessions }: Record<string, unknown>) => ({ subject, email, name, sessions })),
    [{ subject: 'ada', email: 'ada@example.com', name: 'Ada', sessions: 1 }],
  )
  const copied = desk.as(browser)
  assert.equal((await desk.call('POST', '/api/logout', undefined, copied)).status, 204)
  assert.equal((await desk.call('GET', '/api/session', undefined, copied)).status, 401)
  const audit = await desk.call('GET', '/api/audit')
  const actions = audit.body.data.map((entry: { action: string; actor: { type: string; subject?: string } }) => [
    entry.action,
    entry.actor.type,
    entry.actor.subject,
  ])
  assert.deepEqual(actions.slice(0, 2), [
    ['session.logout', 'person', 'ada'],
    ['session.login', 'person', 'ada'],
  ])
})

test('without single sign-on, only tokens log in, and its routes say that it is not set up', async (t) => {
  const { call, url } = await startControl(t)
  assert.deepEqual((await call('GET', '/api/login/methods', undefined, { token: null })).body, { token: true, oidc: null })
  for (const path of [
    '/api/login/oidc',
    '/api/login/oidc/callback?code=a&state=b',
    `/api/login/cli?port=1&state=a&challenge=${'x'.repeat(43)}`,
  ]) {
    const answer = await call('GET', path, undefined, { token: null })
    assert.deepEqual([answer.status, answer.body.code], [404, 'oidc_not_configured'], path)
  }
  const logout = await fetch(`${url}/api/login/oidc/backchannel-logout`, {
    method: 'POST',
    body: new URLSearchParams({ logout_token: 'x' }),
  })
  assert.equal(logout.status, 404)
  const exchange = await call('POST', '/api/login/cli/token', { code: 'x', verifier: 'x'.repeat(43) }, { token: null })
  assert.equal(exchange.body.code, 'oidc_not_configured')
  assert.deepEqual((await call('GET', '/api/people')).body, { data: [], next: null })
  assert.equal((await call('DELETE', `/api/people/per_${'0'.repeat(24)}/sessions`)).body.code, 'person_not_found')
})

test('the methods of login name the provider, without a login', async (t) => {
  const { call } = await startDesk(t)
  assert.deepEqual((await call('GET', '/api/login/methods', undefined, { token: null })).body, {
    token: true,
    oidc: { name: 'Test login' },
  })
})

test('somebody without a role gets 403 and a page with the contact, and no session', async (t) => {
  const desk = await startDesk(t)
  desk.idp.accounts.set('ada', { email: 'ada@example.com', groups: ['others'] })
  const browser = new Browser()
  const callback = await desk.logIn(browser)
  assert.equal(callback.status, 403)
  assert.match(callback.headers.get('content-type') ?? '', /^text\/html/)
  assert.match(await callback.text(), /it@example\.com/)
  assert.equal((await desk.call('GET', '/api/session', undefined, desk.as(browser))).status, 401)
})

test('the provider ends the sessions of a person with a logout token, which works once', async (t) => {
  const desk = await startDesk(t)
  const browser = new Browser()
  await desk.logIn(browser)
  const post = (token: string): Promise<Response> =>
    fetch(`${desk.url}/api/login/oidc/backchannel-logout`, { method: 'POST', body: new URLSearchParams({ logout_token: token }) })
  for (const token of ['', 'x', 'a.b.c']) {
    const answer = await post(token)
    assert.deepEqual([answer.status, ((await answer.json()) as { code: string }).code], [400, 'invalid_logout_token'])
  }
  assert.equal((await desk.call('GET', '/api/session', undefined, desk.as(browser))).status, 200)
})

test('the command line gets a personal token after the person has agreed, with a code that works once', async (t) => {
  const desk = await startDesk(t)
  const shop = await withShop(desk)
  const browser = new Browser()
  const verifier = 'v'.repeat(43)
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  const query = new URLSearchParams({ port: '49152', state: 'state-of-the-cli', challenge, name: 'Laptop <b>' }).toString()
  const page = `${desk.url}/api/login/cli?${query}`
  const first = await (await browser.get(page)).text()
  assert.match(first, /Log in first/)
  const continued = await desk.logIn(browser, `/api/login/cli?${query}`)
  assert.equal(continued.status, 200, 'a page, because a redirect from another site would not have the new cookie')
  assert.match(await continued.text(), /http-equiv="refresh" content="0;url=\/api\/login\/cli\?port=49152&#38;state/)
  const consent = await browser.get(page)
  const text = await consent.text()
  assert.match(text, /Ada \(ada@example\.com\)/)
  assert.match(text, /Laptop &#60;b&#62;/)
  assert.match(
    consent.headers.get('content-security-policy') ?? '',
    /form-action 'self' http:\/\/127\.0\.0\.1:49152; frame-ancestors 'none'/,
  )

  const agree = (headers: Record<string, string>): Promise<Response> =>
    browser.send(`${desk.url}/api/login/cli`, { method: 'POST', body: new URLSearchParams(query), headers })
  assert.equal((await agree({ 'sec-fetch-site': 'cross-site' })).status, 403, 'only a page of the service can send the form')
  assert.equal((await agree({})).status, 403)
  const agreed = await agree({ 'sec-fetch-site': 'same-origin' })
  assert.equal(agreed.status, 303)
  const back = new URL(agreed.headers.get('location') ?? '')
  assert.deepEqual([back.origin, back.searchParams.get('state')], ['http://127.0.0.1:49152', 'state-of-the-cli'])
  const code = back.searchParams.get('code') ?? ''
  const exchange = (body: object) => desk.call('POST', '/api/login/cli/token', body, { token: null })
  const token = (await exchange({ code, verifier })).body
  assert.deepEqual(
    [token.name, token.role, token.sources, token.owner],
    ['Laptop <b>', 'editor', [shop], { subject: 'ada', email: 'ada@example.com' }],
  )
  assert.equal((await exchange({ code, verifier })).body.code, 'invalid_login_code', 'a code works once')
  const session = await desk.call('GET', '/api/session', undefined, { token: token.token })
  assert.deepEqual([session.body.actor.type, session.body.actor.owner.subject, session.body.role], ['token', 'ada', 'editor'])
  assert.equal(
    (await desk.call('DELETE', `/api/tokens/${token.id}`, undefined, { token: token.token })).status,
    204,
    'it can revoke itself',
  )

  const other = new URL((await agree({ 'sec-fetch-site': 'same-origin' })).headers.get('location') ?? '').searchParams.get('code') ?? ''
  assert.equal((await exchange({ code: other, verifier: 'w'.repeat(43) })).body.code, 'invalid_login_code', 'of another program')
  assert.equal((await exchange({ code: other, verifier })).body.code, 'invalid_login_code', 'a code that was tried is gone')
})
