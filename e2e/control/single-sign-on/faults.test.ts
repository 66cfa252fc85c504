// People when the service is killed or its key is rotated: what has ended stays ended, a login in progress goes on, and the grants with which the
// provider is asked stay readable.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Browser, CLIENT } from '../../../packages/server/src/control/people/fixtures/identity-provider.ts'
import { type Script, startScriptedProvider } from '../../../packages/server/src/control/people/fixtures/scripted-provider.ts'
import { switchyardWith } from '../../system/command-line.ts'
import type { Service } from '../../system/service.ts'
import { eventually } from '../../system/signals.ts'
import { newAddress, startServiceAt } from './service.ts'

const EDITOR = [{ claim: 'groups', value: 'data-eng', role: 'editor', sources: 'all' }]
/** Rules that have changed make the service ask the provider about everybody. */
const VIEWER = [{ claim: 'groups', value: 'data-eng', role: 'viewer', sources: 'all' }]
const KEY = 'the first key of this test'

async function start(t: TestContext): Promise<{ idp: Script; service: Service }> {
  const idp = await startScriptedProvider(t)
  const settings = { issuer: idp.issuer, clientId: CLIENT.id, clientSecret: CLIENT.secret, roles: EDITOR }
  return { idp, service: await startServiceAt(await newAddress(), { ...settings, env: { SWITCHYARD_SECRET_KEY: KEY } }) }
}

/** Everything but what is given stays the same, also the port. */
function restart({ idp, service }: { idp: Script; service: Service }, roles: readonly object[], key = KEY): Promise<Service> {
  return service.restart({
    env: {
      SWITCHYARD_PORT: new URL(service.url).port,
      SWITCHYARD_PUBLIC_URL: service.url,
      SWITCHYARD_OIDC_ISSUER: idp.issuer,
      SWITCHYARD_OIDC_CLIENT_ID: CLIENT.id,
      SWITCHYARD_OIDC_CLIENT_SECRET: CLIENT.secret,
      SWITCHYARD_OIDC_ROLES: JSON.stringify(roles),
      SWITCHYARD_SECRET_KEY: key,
    },
  })
}

async function callbackOf({ idp, service }: { idp: Script; service: Service }, browser: Browser): Promise<string> {
  const begun = await browser.get(`${service.url}/api/login/oidc`)
  return browser.follow(begun.headers.get('location') ?? '', idp.issuer)
}

const cookieOf = (browser: Browser, { url }: Service): string => browser.jars.get(new URL(url).origin)?.get('switchyard_session') ?? ''

async function logIn(desk: { idp: Script; service: Service }): Promise<string> {
  const browser = new Browser()
  assert.equal((await browser.get(await callbackOf(desk, browser))).status, 303)
  return `switchyard_session=${cookieOf(browser, desk.service)}`
}

interface Answer {
  status: number
  body: { role?: string; token?: string; [field: string]: unknown }
}

async function as({ url }: Service, headers: Record<string, string>, path: string, method = 'GET', body?: object): Promise<Answer> {
  const response = await fetch(`${url}/api${path}`, {
    method,
    headers: { ...headers, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? {} : (JSON.parse(text) as Answer['body']) }
}

async function killed(service: Service): Promise<void> {
  service.kill('SIGKILL')
  await service.ended
}

test('after kill -9, sessions that were ended stay ended, others and tokens go on, and a callback still works once', async (t) => {
  const desk = await start(t)
  const { service } = desk
  await using _ = service
  const [left, kept] = [await logIn(desk), await logIn(desk)]
  const { token = '' } = (await as(service, { cookie: kept }, '/tokens', 'POST', { name: 'own' })).body
  const browsers = [new Browser(), new Browser()] as const
  const used = await callbackOf(desk, browsers[0])
  const copy = new Browser()
  copy.jars.set(service.url, new Map(browsers[0].jars.get(service.url)))
  assert.equal((await browsers[0].get(used)).status, 303)
  const inProgress = await callbackOf(desk, browsers[1])
  assert.equal((await as(service, { cookie: left }, '/logout', 'POST')).status, 204)
  await killed(service)

  const next = await restart(desk, EDITOR)
  assert.equal((await as(next, { cookie: left }, '/session')).status, 401, 'the logout was stored before it was answered')
  assert.equal((await as(next, { cookie: kept }, '/session')).status, 200)
  assert.equal((await as(next, { authorization: `Bearer ${token}` }, '/session')).body.role, 'editor')
  assert.equal((await copy.get(used)).status, 400, 'a callback that was used stays used')
  assert.equal((await browsers[1].get(inProgress)).status, 303, 'a login in progress goes on')
  const entered = cookieOf(browsers[1], next)
  assert.equal((await as(next, { cookie: `switchyard_session=${entered}` }, '/session')).status, 200)

  const { data } = await next.api<{ data: { id: string }[] }>('/people')
  await next.api(`/people/${data[0]?.id}/sessions`, { method: 'DELETE' })
  await killed(next)
  const last = await restart({ ...desk, service: next }, EDITOR)
  for (const cookie of [kept, `switchyard_session=${entered}`]) assert.equal((await as(last, { cookie }, '/session')).status, 401)
  await last.stop()
})

test('kill -9 while the provider is asked about a person: the next process asks again, and the person goes on', async (t) => {
  const desk = await start(t)
  const { idp, service } = desk
  await using _ = service
  const cookie = await logIn(desk)
  await service.stop()
  let isAsked = (): void => {}
  let wasAsked = false
  const asked = new Promise<void>((resolve) => (isAsked = resolve)).then(() => {
    wasAsked = true
  })
  let release = (): void => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  idp.beforeToken = () => {
    isAsked()
    return held
  }
  const second = await restart(desk, VIEWER)
  // On a busy machine, the service may not reach the provider in time. Then it asks again with a later request, which does not wait for it.
  const lost: Promise<Answer | null>[] = []
  await eventually(
    async () => {
      const call = as(second, { cookie }, '/session').catch(() => null)
      lost.push(call)
      await Promise.race([asked, call])
    },
    () => wasAsked,
    { what: 'the provider is asked' },
  )
  // The provider has not answered: the refresh token was not used.
  await killed(second)
  for (const answer of await Promise.all(lost)) assert.notEqual(answer?.body.role, 'viewer')
  idp.beforeToken = async () => {}
  const third = await restart({ ...desk, service: second }, VIEWER)
  // Waits until the lease of the lost process is over.
  await eventually(
    () => as(third, { cookie }, '/session'),
    ({ status, body }) => status === 200 && body.role === 'viewer',
    { what: 'the person goes on with the new role' },
  )
  release()
  await third.stop()
})

test('after rotate-key, the grants of people are readable, and with --end-tokens everybody logs in again', async (t) => {
  const desk = await start(t)
  const { idp, service } = desk
  await using _ = service
  const cookie = await logIn(desk)
  const token = (await as(service, { cookie }, '/tokens', 'POST', { name: 'own' })).body.token ?? ''
  const byToken = { authorization: `Bearer ${token}` }
  const rotate = async (from: string, to: string, ...args: string[]): Promise<void> => {
    const env = { ...service.storeEnv, SWITCHYARD_SECRET_KEY: from, SWITCHYARD_NEW_SECRET_KEY: to }
    const { code, stderr } = await switchyardWith(env, service, 'rotate-key', ...args)
    assert.equal(code, 0, stderr)
  }
  const browser = new Browser()
  const inProgress = await callbackOf(desk, browser)
  await service.stop()
  await rotate(KEY, 'the second key of this test')

  const second = await restart(desk, VIEWER, 'the second key of this test')
  const asked = (): number => idp.requests.filter((path) => path === '/token').length
  const before = asked()
  assert.deepEqual((await as(second, { cookie }, '/session')).body.role, 'viewer')
  assert.equal(asked(), before + 1, 'the provider was asked with the stored refresh token')
  assert.equal((await as(second, byToken, '/session')).body.role, 'viewer')
  assert.equal((await browser.get(inProgress)).status, 303, 'a login in progress goes on')
  await second.stop()

  await rotate('the second key of this test', 'the third key of this test', '--end-tokens')
  const third = await restart({ ...desk, service: second }, EDITOR, 'the third key of this test')
  assert.equal((await as(third, { cookie }, '/session')).status, 401)
  assert.equal((await as(third, byToken, '/session')).status, 401)
  const again = await logIn({ ...desk, service: third })
  assert.equal((await as(third, { cookie: again }, '/session')).body.role, 'editor')
  assert.equal((await as(third, byToken, '/session')).body.role, 'editor', 'the token works again while its owner has access')
  await third.stop()
  const { stderr } = await third.ended
  assert.doesNotMatch(stderr, /refresh-\d|SecretBoxError/)
})
