import assert from 'node:assert/strict'
import test from 'node:test'
import { until } from '../../store/conformance/fixtures.ts'
import { hashToken } from '../access/admin-token.ts'
import { controlRoutes } from '../control.ts'
import { accept, type Fixture, STILL, settleAll, startControl, TOKEN } from '../fixtures/start-control.ts'

async function newToken({ call }: Fixture, role: 'admin' | 'viewer', name: string = role): Promise<{ id: string; token: string }> {
  const { status, body } = await call('POST', '/api/tokens', { name, role })
  assert.equal(status, 201)
  return body
}

test('a token is shown once, stored as a hash, and authorizes requests', async (t) => {
  const fixture = await startControl(t)
  const { id, token } = await newToken(fixture, 'admin', 'Ann’s laptop')
  assert.match(token, /^sy_[A-Za-z0-9_-]{43}$/)
  assert.equal(fixture.store.configuration().tokens.get(id)?.hash, hashToken(token))
  const list = await fixture.call('GET', '/api/tokens', undefined, { token })
  assert.doesNotMatch(list.text, new RegExp(`${token}|${hashToken(token)}`))
  assert.deepEqual(
    list.body.data.map(({ id: of, name, role }: Record<string, string>) => [of, name, role]),
    [
      ['admin', 'admin', 'admin'],
      [id, 'Ann’s laptop', 'admin'],
    ],
  )
  const session = await fixture.call('GET', '/api/session', undefined, { token })
  assert.deepEqual(session.body, {
    actor: { id, name: 'Ann’s laptop', type: 'token' },
    role: 'admin',
    sources: 'all',
    expiresAt: null,
    dataSince: null,
  })
})

test('a revoked token is rejected from the next request on', async (t) => {
  const fixture = await startControl(t)
  const { id, token } = await newToken(fixture, 'viewer')
  assert.equal((await fixture.call('GET', '/api/sources', undefined, { token })).status, 200)
  assert.equal((await fixture.call('DELETE', `/api/tokens/${id}`)).status, 204)
  assert.equal((await fixture.call('GET', '/api/sources', undefined, { token })).status, 401)
  assert.equal((await fixture.call('DELETE', `/api/tokens/${id}`)).body.code, 'token_not_found')
})

test('an open stream ends when its token is revoked, and not when another one is', { timeout: 180_000 }, async (t) => {
  const streams = { open: 0 }
  const endless = (): AsyncIterable<never> => {
    streams.open++
    let end: ((last: { done: true; value: undefined }) => void) | null = null
    const next = new Promise<{ done: true; value: undefined }>((resolve) => (end = resolve))
    const leave = async (): Promise<{ done: true; value: undefined }> => {
      if (end !== null) streams.open--
      end?.({ done: true, value: undefined })
      end = null
      return next
    }
    return { [Symbol.asyncIterator]: () => ({ next: () => next, return: leave }) }
  }
  const fixture = await startControl(t, { live: { listen: endless } })
  const [one, other] = [await newToken(fixture, 'viewer'), await newToken(fixture, 'viewer')]
  const [first, second] = await Promise.all(
    [one, other].map(({ token }) =>
      fetch(`${fixture.url}/api/live`, { headers: { authorization: `Bearer ${token}` }, signal: AbortSignal.timeout(30_000) }),
    ),
  )
  assert.deepEqual([first?.status, second?.status], [200, 200])
  await fixture.call('DELETE', `/api/tokens/${one.id}`)
  await first?.text()
  await until(
    async () => streams.open,
    (open) => open < 2,
    'the stream of the revoked token ends',
  )
  assert.equal(streams.open, 1)
  await fixture.call('DELETE', `/api/tokens/${other.id}`)
  await second?.text()
})

test('an admin can revoke their own token, because the token of the settings always remains', async (t) => {
  const fixture = await startControl(t)
  const { id, token } = await newToken(fixture, 'admin')
  const first = await fixture.call('DELETE', '/api/tokens/admin', undefined, { token })
  assert.deepEqual([first.status, first.body.code], [409, 'token_of_settings'])
  assert.equal((await fixture.call('DELETE', `/api/tokens/${id}`, undefined, { token })).status, 204)
  assert.equal((await fixture.call('GET', '/api/tokens', undefined, { token })).status, 401)
  assert.equal((await fixture.call('GET', '/api/tokens')).status, 200)
})

test('a viewer cannot use any route that changes something, and is rejected before the body is read; all other routes work', async (t) => {
  const fixture = await startControl(t)
  const { token } = await newToken(fixture, 'viewer')
  const before = fixture.store.configuration()
  for (const { method, path, access } of controlRoutes(fixture.deps)) {
    if (access === 'public') continue
    const url = `/api${path.replaceAll(/:\w+/g, 'x')}`
    const options = method === 'GET' ? { token } : { token, raw: '{"not json' }
    if (path === '/live') continue
    const { status, body } = await fixture.call(method, url, undefined, options)
    if (access.role !== 'viewer') assert.deepEqual([status, body.code], [403, 'forbidden'], `${method} ${path}`)
    else assert.notEqual(body?.code, 'forbidden', `${method} ${path}`)
  }
  assert.equal(fixture.store.configuration(), before)
})

test('viewers do not see header values, and the placeholder is not accepted as a value', async (t) => {
  const fixture = await startControl(t, {
    delivery: {
      ...STILL,
      describeRequest: async () => ({ headers: { 'content-type': 'application/json', AUTHORIZATION: 'Bearer of-the-hook' }, body: '{}' }),
    },
  })
  const { token } = await newToken(fixture, 'viewer')
  const source = (await fixture.call('POST', '/api/sources', { name: 'Shop' })).body
  const headers = { Authorization: 'Bearer of-the-hook', 'X-Plain': 'x' }
  const sent = { name: 'Hook', urls: ['https://example.com/hook'], sourceIds: [source.id], headers }
  const { id } = (await fixture.call('POST', '/api/destinations', sent)).body
  for (const path of ['/api/destinations', `/api/destinations/${id}`]) {
    assert.match((await fixture.call('GET', path)).text, /of-the-hook/)
    const { text, status } = await fixture.call('GET', path, undefined, { token })
    assert.equal(status, 200)
    assert.doesNotMatch(text, /of-the-hook/)
    assert.match(text, /"Authorization":"\(hidden\)"/)
  }
  const deletion = (await fixture.call('POST', '/api/deletions', { userIds: ['u-1'] })).body
  const delivery = `/api/deliveries/${deletion.targets[0].deliveryId}`
  assert.match((await fixture.call('GET', delivery)).text, /of-the-hook/)
  const { body } = await fixture.call('GET', delivery, undefined, { token })
  assert.deepEqual(body.request.headers, { 'content-type': 'application/json', AUTHORIZATION: '(hidden)' })
  const back = await fixture.call('PATCH', `/api/destinations/${id}`, { headers: { Authorization: '(hidden)' } })
  assert.deepEqual([back.status, back.body.field], [400, 'headers.Authorization'])
})

test('viewers do not see query values of URLs anywhere', async (t) => {
  const fixture = await startControl(t)
  const { token } = await newToken(fixture, 'viewer')
  const source = (await fixture.call('POST', '/api/sources', { name: 'Shop' })).body
  const url = 'https://example.com/hook?code=of-the-hook'
  const { id } = (await fixture.call('POST', '/api/destinations', { name: 'Hook', urls: [url], sourceIds: [source.id] })).body
  const plan = { shipments: [{ destinationId: id, indexes: null }] }
  await accept(fixture.store, source.id, [{ type: 'track', event: 'e', userId: 'u', messageId: 'm-1' }], plan)
  const timings = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: 4, totalMs: 5 }
  const outcome = {
    status: 500,
    reason: 'http_500',
    error: 'The receiver answered 500.',
    address: null,
    responseStart: null,
    version: 1,
    logs: null,
  }
  await settleAll(fixture, id, 'failed', { url, ...outcome, ...timings })
  const [delivery] = (await fixture.call('GET', '/api/deliveries')).body.data
  for (const path of ['destinations', `destinations/${id}`, `destinations/${id}/health`, `deliveries/${delivery.id}`, 'messages/m-1']) {
    assert.match((await fixture.call('GET', `/api/${path}`)).text, /of-the-hook/, path)
    const { text, status } = await fixture.call('GET', `/api/${path}`, undefined, { token })
    assert.equal(status, 200)
    assert.doesNotMatch(text, /of-the-hook/, path)
    assert.match(text, /"https:\/\/example\.com\/hook\?code=\(hidden\)"/, path)
  }
  const back = await fixture.call('PATCH', `/api/destinations/${id}`, { urls: ['https://example.com/hook?code=(hidden)'] })
  assert.deepEqual([back.status, back.body.field], [400, 'urls[0]'])
})

test('the last use is shown, and stored at most once a minute', async (t) => {
  const fixture = await startControl(t)
  const { id, token } = await newToken(fixture, 'viewer')
  const used = async (of: string): Promise<string | null> =>
    (await fixture.call('GET', '/api/tokens')).body.data.find((each: { id: string }) => each.id === of).lastUsedAt
  assert.equal(await used(id), null)
  let writes = 0
  const { resources } = fixture.store
  const useToken = resources.useToken.bind(resources)
  resources.useToken = (...use) => {
    writes++
    return useToken(...use)
  }
  for (let at = 0; at < 50; at++) await fixture.call('GET', '/api/sources', undefined, { token })
  assert.equal(writes, 1)
  assert.ok(Math.abs(Date.parse((await used(id)) ?? '') - Date.now()) < 60_000)
  assert.ok(Math.abs(Date.parse((await used('admin')) ?? '') - Date.now()) < 60_000)
  assert.deepEqual(
    (await fixture.store.resources.tokenUses()).map((use) => use.id),
    [id],
  )
})

test('authorization only uses the configuration in memory', async (t) => {
  const fixture = await startControl(t)
  const { token } = await newToken(fixture, 'viewer')
  await fixture.call('GET', '/api/sources', undefined, { token })
  const asked: string[] = []
  const { resources, history, books, replays, deletions } = fixture.store
  for (const topic of [resources, history, books, replays, deletions]) {
    const names = new Set([...Object.keys(topic), ...Object.getOwnPropertyNames(Object.getPrototypeOf(topic))])
    for (const name of names) {
      const real = (topic as unknown as Record<string, unknown>)[name]
      if (typeof real !== 'function' || name === 'constructor') continue
      const watched = (...args: unknown[]): unknown => {
        asked.push(name)
        return real.apply(topic, args)
      }
      Object.defineProperty(topic, name, { value: watched })
    }
  }
  assert.equal((await fixture.call('GET', '/api/session', undefined, { token })).status, 200)
  assert.deepEqual(asked, [])
})

test('there can be at most a hundred tokens', async (t) => {
  const fixture = await startControl(t)
  const tokens = await Promise.all(Array.from({ length: 101 }, () => fixture.call('POST', '/api/tokens', { name: 'one of many' })))
  assert.deepEqual(
    tokens.map(({ body }) => body.code).filter((code) => code !== undefined),
    ['too_many_tokens'],
  )
  assert.equal(fixture.store.configuration().tokens.size, 100)
  const first = (await fixture.call('GET', '/api/tokens?limit=60')).body
  const rest = (await fixture.call('GET', `/api/tokens?limit=60&cursor=${first.next}`)).body
  assert.deepEqual([first.data[0].id, first.data.length, rest.data.length, rest.next], ['admin', 60, 41, null])
})

test('the default role is viewer, and invalid requests are rejected', async (t) => {
  const { call, store } = await startControl(t)
  assert.equal((await call('POST', '/api/tokens', { name: 'plain' })).body.role, 'viewer')
  for (const [sent, code, field] of [
    [{}, 'invalid_field', 'name'],
    [{ name: ' ' }, 'invalid_field', 'name'],
    [{ name: 'a\nb' }, 'invalid_field', 'name'],
    [{ name: 'x'.repeat(101) }, 'invalid_field', 'name'],
    [{ name: 'x', role: 'root' }, 'invalid_field', 'role'],
    [{ name: 'x', role: ['admin'] }, 'invalid_field', 'role'],
    [{ name: 'x', token: 'mine' }, 'unknown_field', 'token'],
    [{ name: 'x', hash: hashToken(TOKEN) }, 'unknown_field', 'hash'],
  ] as const) {
    const { status, body } = await call('POST', '/api/tokens', sent)
    assert.deepEqual([status, body.code, body.field], [400, code, field])
  }
  for (const id of ['__proto__', 'constructor', 'toString', 'tok_x']) {
    assert.equal((await call('DELETE', `/api/tokens/${id}`)).body.code, 'token_not_found')
  }
  assert.equal(store.configuration().tokens.size, 1)
})

test('a write key in place of a control token is recognised by its form, whether or not it exists', async (t) => {
  const { call, url } = await startControl(t)
  const [key] = (await call('POST', '/api/sources', { name: 'web' })).body.writeKeys as [string]
  const said = async (authorization: string): Promise<[number, string]> => {
    const response = await fetch(`${url}/api/sources`, { headers: { authorization } })
    return [response.status, ((await response.json()) as { message: string }).message]
  }
  const [status, message] = await said(`Bearer ${key}`)
  assert.equal(status, 401)
  assert.match(message, /looks like a write key/)
  assert.deepEqual(await said(`Bearer ${'a'.repeat(32)}`), [401, message])
  assert.match((await said(`Basic ${Buffer.from(`${key}:`).toString('base64')}`))[1], /does not accept Basic authentication/)
  assert.match((await said('Bearer wrong'))[1], /^A valid control token is required/)
})
