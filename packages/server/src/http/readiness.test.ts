import assert from 'node:assert/strict'
import { test } from 'node:test'
import fastify from 'fastify'
import { registerReadiness } from './readiness.ts'

const SECRET = 'connect ECONNREFUSED 10.1.2.3:5432 (user switchyard)'

function serve(check: () => Promise<{ ok: true } | { ok: false; message: string }>) {
  const app = fastify()
  registerReadiness(app, { check, authorize: ({ headers }) => headers.authorization === 'Bearer right' })
  return app
}

test('the error of the database is shown only to callers with a token', async () => {
  const app = serve(async () => ({ ok: false, message: SECRET }))
  for (const headers of [{}, { authorization: 'Bearer wrong' }]) {
    const answer = await app.inject({ url: '/readyz', headers })
    assert.equal(answer.statusCode, 503)
    assert.equal(answer.headers['retry-after'], '1')
    assert.equal(answer.json().code, 'store_unavailable')
    assert.doesNotMatch(answer.body, /10\.1\.2\.3|switchyard/)
  }
  const told = await app.inject({ url: '/readyz', headers: { authorization: 'Bearer right' } })
  assert.equal(told.json().message, SECRET)
  await app.close()
})

test('concurrent requests share one check, and the next request makes a new one', async () => {
  let checks = 0
  let release = (): void => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  let arrived = 0
  const app = serve(async () => {
    checks += 1
    await held
    return { ok: true }
  })
  app.addHook('preHandler', async () => {
    // All requests arrived before their shared check finished.
    if (++arrived === 50) setImmediate(release)
  })
  for (const { statusCode } of await Promise.all(Array.from({ length: 50 }, () => app.inject('/readyz')))) assert.equal(statusCode, 200)
  assert.equal(checks, 1)
  assert.equal((await app.inject('/readyz')).statusCode, 200)
  assert.equal(checks, 2)
  await app.close()
})
