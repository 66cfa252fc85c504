// People on two nodes with one database: a login that begins on one node and ends on the other, and sessions that end everywhere within a second.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Browser, CLIENT, startIdentityProvider } from '../../packages/server/src/control/people/fixtures/identity-provider.ts'
import { createDatabase, type TestDatabase } from '../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { IS_LONG } from '../system/long-tests.ts'
import { type Cluster, type Node, startCluster } from '../system/nodes-in-process.ts'

/** Where the provider sends browsers. The tests send the request to one of the nodes. */
const PUBLIC_URL = 'http://127.0.0.1:9'
/** Streams also end after 20 s, when they check by themselves whether their token is still allowed. */
const STREAM_ENDS_MS = IS_LONG ? 1_000 : 10_000

/** As long as there is one, the server that the tests share goes on. */
let held: TestDatabase
before(async () => {
  held = await createDatabase()
})
after(() => held.drop())

const nodesOf = ({ nodes }: Cluster): [Node, Node] => nodes as [Node, Node]
const settings = (issuer: string): Record<string, string> => ({
  SWITCHYARD_PUBLIC_URL: PUBLIC_URL,
  SWITCHYARD_OIDC_ISSUER: issuer,
  SWITCHYARD_OIDC_CLIENT_ID: CLIENT.id,
  SWITCHYARD_OIDC_CLIENT_SECRET: CLIENT.secret,
  SWITCHYARD_OIDC_ROLES: '- { claim: groups, value: data-eng, role: editor, sources: all }',
})

test('a login works across nodes, and its end is known everywhere within a second', async (t) => {
  const idp = await startIdentityProvider(t, { redirectUri: `${PUBLIC_URL}/api/login/oidc/callback` })
  await using cluster = await startCluster({ env: settings(idp.issuer) })
  const [one, two] = nodesOf(cluster)

  /** Starts on one node and ends on the other. Returns the cookie. */
  async function logIn(): Promise<string> {
    const browser = new Browser()
    const start = await browser.get(`${one.url}/api/login/oidc?returnTo=/live`)
    browser.jars.set(new URL(two.url).origin, browser.jars.get(new URL(one.url).origin) ?? new Map<string, string>())
    const callback = (await browser.follow(start.headers.get('location') ?? '', idp.issuer)).replace(PUBLIC_URL, two.url)
    const cookies = new Map(browser.jars.get(new URL(two.url).origin))
    const ended = await browser.get(callback)
    assert.deepEqual([ended.status, ended.headers.get('location')], [303, '/live'])
    const session = browser.jars.get(new URL(two.url).origin)?.get('switchyard_session') ?? ''
    // The same callback with a copy of the cookies, on the node that did not see it.
    const replayed = await fetch(callback.replace(two.url, one.url), {
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
    })
    assert.equal(replayed.status, 400)
    return `switchyard_session=${session}`
  }
  const call = (node: Node, path: string, cookie: string, method = 'GET'): Promise<Response> =>
    fetch(`${node.url}${path}`, { method, headers: { cookie, 'sec-fetch-site': 'same-origin' } })
  const statuses = async (cookie: string): Promise<number[]> =>
    Promise.all([one, two].map(async (node) => (await call(node, '/api/session', cookie)).status))

  async function endsEverywhere(cookie: string, end: () => Promise<unknown>): Promise<void> {
    assert.deepEqual(await statuses(cookie), [200, 200])
    const stream = await call(two, '/api/live', cookie)
    assert.equal(stream.status, 200)
    const reader = (stream.body as ReadableStream<Uint8Array>).getReader()
    await end()
    const endedMs = performance.now()
    assert.deepEqual(await statuses(cookie), [401, 401])
    while (!(await reader.read()).done);
    const ms = performance.now() - endedMs
    assert.ok(ms < STREAM_ENDS_MS, `the stream on the other node ended after ${Math.round(ms)} ms`)
  }

  const first = await logIn()
  await endsEverywhere(first, () => call(one, '/api/logout', first, 'POST'))
  const [second, third] = [await logIn(), await logIn()]
  const people = await one.api<{ data: { id: string; sessions: number }[] }>('/people')
  assert.equal(people.data[0]?.sessions, 2)
  await endsEverywhere(second, () => one.api(`/people/${people.data[0]?.id}/sessions`, { method: 'DELETE' }))
  assert.deepEqual(await statuses(third), [401, 401], 'all sessions of the person')

  const fourth = await logIn()
  await two.close()
  cluster.nodes.pop()
  const next = await cluster.start()
  assert.equal((await call(next, '/api/session', fourth)).status, 200, 'a session survives a restart')
  const diagnostics = await next.api<{ checks: { name: string; state: string }[] }>('/diagnostics')
  assert.equal(diagnostics.checks.find(({ name }) => name === 'single_sign_on')?.state, 'good')
})
