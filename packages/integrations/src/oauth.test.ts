import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import { errors, integrationOf, MESSAGE, type Request, runSend } from './fixtures/integrations.ts'
import { answerJson, startTool, type Tool } from './fixtures/tool.ts'
import type { Integration, Tokens } from './integration.ts'

const OAUTH = { clientId: 'client-1', clientSecret: 'client-secret', refreshToken: 'refresh-1' }

interface Server {
  tool: Tool
  renewals: () => number
  open: (oauth: JsonObject | undefined, onTokens?: (tokens: Tokens) => void) => Integration
}

/** A tool that accepts the access tokens that it gave out last. `grant` answers at its token endpoint. */
async function startServer(
  t: TestContext,
  grant = (count: number): [number, object] => [200, { access_token: `access-token-${count}` }],
): Promise<Server> {
  let renewals = 0
  const tool = await startTool(t, (response, { path, headers, body }) => {
    if (path === '/token') return answerJson(response, ...grant(++renewals))
    const isValid = headers.authorization === `Bearer access-token-${renewals}` && renewals > 0
    if (path === '/batch')
      return answerJson(
        response,
        200,
        (JSON.parse(body) as unknown[]).map((_, at) => (isValid || at === 0 ? 200 : 401)),
      )
    return answerJson(response, isValid ? 200 : 401, {})
  })
  const authentication = {
    scheme: 'oauth2',
    fields: {},
    refreshAccessToken: async (request: Request, { auth }: { auth: JsonObject }) => {
      const { data } = await request(`${tool.url}/token`, { method: 'POST', json: auth })
      const { access_token: accessToken, refresh_token: refreshToken } = data as Record<string, string>
      return { accessToken, refreshToken }
    },
  } as const
  const more = {
    authentication: authentication as never,
    extendRequest: ({ auth }: { auth: { accessToken?: string } }) => ({ headers: { authorization: `Bearer ${auth.accessToken}` } }),
    onDelete: (request: Request) => request(`${tool.url}/delete`, { method: 'DELETE' }),
  }
  const action = {
    perform: (request: Request) => request(`${tool.url}/send`, { method: 'POST', json: {} }),
    performBatch: async (request: Request, { payload }: { payload: unknown[] }) => {
      const { data } = await request(`${tool.url}/batch`, { method: 'POST', json: payload })
      const response = new errors.MultiStatusResponse()
      for (const status of data as number[]) {
        if (status === 200) response.pushSuccessResponse({ status, body: {}, sent: {} })
        else response.pushErrorResponse({ status, errormessage: 'expired' })
      }
      return response
    },
  }
  return {
    tool,
    renewals: () => renewals,
    open: (oauth, onTokens) => integrationOf(action, more, oauth === undefined ? {} : { oauth }, onTokens),
  }
}

test('an expired access token is renewed once for all runs that wait for it, and they are repeated', async (t) => {
  const { open, renewals, tool } = await startServer(t, (count) => [
    200,
    { access_token: `access-token-${count}`, refresh_token: `refresh-${count + 1}` },
  ])
  const tokens: Tokens[] = []
  const integration = open({ ...OAUTH, accessToken: 'expired-token' }, (renewed) => tokens.push(renewed))
  const runs = await Promise.all(Array.from({ length: 5 }, () => runSend(integration)))
  for (const { results } of runs) assert.deepEqual(results, [{ kind: 'success' }])
  assert.equal(renewals(), 1)
  assert.deepEqual(tokens, [{ accessToken: 'access-token-1', refreshToken: 'refresh-2', usedRefreshToken: 'refresh-1' }])
  const asked = JSON.parse(tool.received.find(({ path }) => path === '/token')?.body ?? '') as JsonObject
  assert.deepEqual(asked, { ...OAUTH, accessToken: 'expired-token' })
  // The renewal is recorded in one of them, without the tokens.
  const recorded = runs.flatMap(({ requests }) => requests).filter(({ url }) => url.endsWith('/token'))
  assert.equal(recorded.length, 1)
  assert.ok(!/access-token-1|refresh-2/.test(JSON.stringify(runs)))
  assert.equal(recorded[0]?.responseStart, '{"access_token":"(hidden)","refresh_token":"(hidden)"}')
  // And the new one is used from then on.
  await runSend(integration)
  assert.equal(renewals(), 1)
})

test('without an access token, or without any credentials of OAuth, one is requested first', async (t) => {
  for (const oauth of [OAUTH, undefined]) {
    const { open, tool } = await startServer(t)
    assert.deepEqual((await runSend(open(oauth))).results, [{ kind: 'success' }])
    assert.deepEqual(
      tool.received.map(({ path }) => path),
      ['/token', '/send'],
    )
  }
})

test('of a batch, only the messages that were refused are repeated', async (t) => {
  const { open, tool } = await startServer(t)
  const { results, requests } = await runSend(open({ ...OAUTH, accessToken: 'expired-token' }), { messages: [MESSAGE, MESSAGE, MESSAGE] })
  assert.deepEqual(results, [{ kind: 'success' }, { kind: 'success' }, { kind: 'success' }])
  assert.deepEqual(
    tool.received.map(({ path, body }) => [path, path === '/batch' ? (JSON.parse(body) as unknown[]).length : null]),
    [
      ['/batch', 3],
      ['/token', null],
      ['/batch', 2],
    ],
  )
  assert.deepEqual(
    requests.map(({ positions }) => positions),
    [
      [0, 1, 2],
      [1, 2],
      [1, 2],
    ],
  )
})

test('a refresh token that is not accepted is a failure of authentication, an outage of the token endpoint is not', async (t) => {
  const refused = await startServer(t, () => [400, { error: 'invalid_grant' }])
  const failed = await runSend(refused.open(OAUTH))
  assert.deepEqual(failed.results, [
    { kind: 'failed', code: 'invalid_authentication', message: 'The access token could not be renewed: Bad Request' },
  ])
  const down = await startServer(t, () => [503, {}])
  const outage = await runSend(down.open(OAUTH))
  assert.equal(outage.results[0]?.kind === 'status' && outage.results[0].status, 503)
  const empty = await startServer(t, () => [200, {}])
  const none = await runSend(empty.open(OAUTH))
  assert.equal(none.results[0]?.kind === 'failed' && none.results[0].code, 'invalid_authentication')
})

test('if the new token is refused too, the run is not repeated again', async (t) => {
  const { open, tool } = await startServer(t, () => [200, { access_token: 'another-one' }])
  const { results } = await runSend(open({ ...OAUTH, accessToken: 'expired-token' }))
  assert.equal(results[0]?.kind === 'status' && results[0].status, 401)
  assert.deepEqual(
    tool.received.map(({ path }) => path),
    ['/send', '/token', '/send'],
  )
})

test('a user is deleted with a renewed token, and a preview of it requests none', async (t) => {
  const { open, tool } = await startServer(t)
  const integration = open(OAUTH)
  const message = { type: 'delete', userId: 'u1' }
  const preview = await integration.erase?.(message, { signal: AbortSignal.timeout(20_000), isPreview: true })
  assert.deepEqual(
    preview?.requests.map(({ method, headers }) => [method, headers?.['authorization']]),
    [['DELETE', '(hidden)']],
  )
  assert.deepEqual(tool.received, [])
  const result = await integration.erase?.(message, { signal: AbortSignal.timeout(20_000) })
  assert.deepEqual(result?.results, [{ kind: 'success' }])
  assert.deepEqual(
    tool.received.map(({ path }) => path),
    ['/token', '/delete'],
  )
})
