import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { type TestContext, test } from 'node:test'
import Fastify from 'fastify'
import { type MetricsAccess, registerMetrics } from './metrics-route.ts'

async function serve(t: TestContext, access: MetricsAccess, text: () => Promise<string | null> = async () => 'the metrics\n') {
  const app = Fastify()
  registerMetrics(app, { access, text, authorize: ({ headers }) => headers.authorization === 'Bearer good' })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  t.after(() => app.close())
  return async (headers: Record<string, string> = {}): Promise<number | undefined> => {
    const asked = request(`${url}/metrics`, { headers, agent: false }).end()
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    response.resume()
    await once(response, 'end')
    return response.statusCode
  }
}

test('on loopback, the metrics are open to this machine, but not through a proxy or by DNS rebinding', async (t) => {
  const scrape = await serve(t, 'local')
  for (const host of ['localhost', 'LOCALHOST:8080', '127.0.0.1:9', '127.1.2.3', '[::1]:80'])
    assert.equal(await scrape({ host }), 200, host)
  for (const host of ['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', 'evil.example:8080', '[::2]']) {
    assert.equal(await scrape({ host }), 401, host)
    assert.equal(await scrape({ host, authorization: 'Bearer good' }), 200, host)
  }
  assert.equal(await scrape({ 'x-forwarded-for': '203.0.113.9' }), 401)
  assert.equal(await scrape({ forwarded: 'for=203.0.113.9' }), 401)
})

test('with open no request needs a token, and with token every request does', async (t) => {
  const open = await serve(t, 'open')
  assert.equal(await open({ host: 'evil.example', 'x-forwarded-for': '203.0.113.9' }), 200)
  const token = await serve(t, 'token')
  assert.deepEqual([await token(), await token({ authorization: 'Bearer good' })], [401, 200])
  assert.equal(await (await serve(t, 'off'))(), 404)
})

test('without the metrics of the other processes, the answer is 503 and not the metrics of one process', async (t) => {
  const scrape = await serve(t, 'open', async () => null)
  assert.equal(await scrape(), 503)
})

test('concurrent scrapes share one text, and the next scrape gets a new one', async (t) => {
  const app = Fastify()
  t.after(() => app.close())
  let written = 0
  let finish: () => void = () => {}
  const finished = new Promise<void>((resolve) => {
    finish = resolve
  })
  const text = async (): Promise<string> => {
    const own = String(++written)
    await finished
    return own
  }
  registerMetrics(app, { access: 'open', text, authorize: () => false })
  let asked = 0
  app.addHook('preHandler', async () => {
    if (++asked === 3) setImmediate(finish)
  })
  const together = await Promise.all([1, 2, 3].map(() => app.inject('/metrics')))
  assert.deepEqual(
    together.map(({ body }) => body),
    ['1', '1', '1'],
  )
  assert.equal((await app.inject('/metrics')).body, '2')
})
