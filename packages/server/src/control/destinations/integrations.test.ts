// Integration destinations over the control API, with the real catalogue: creating, updating, showing, and every way to get the settings wrong.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openCatalog } from '../../installation/integrations-catalog.ts'
import { type Answer, type Fixture, startControl } from '../fixtures/start-control.ts'

async function start(t: TestContext): Promise<Fixture> {
  return await startControl(t, { catalog: () => openCatalog('nowhere') })
}

function create({ call }: Fixture, body: object): Promise<Answer> {
  return call('POST', '/api/destinations', { type: 'integration', name: 'x', ...body })
}

const AMPLITUDE = {
  integration: 'actions-amplitude',
  settings: { apiKey: 'api-key-1', secretKey: 'secret-key-1', endpoint: 'north_america' },
}

test('without subscriptions, an integration gets the automatic presets, and its secrets are not shown', async (t) => {
  const fixture = await start(t)
  const { status, body } = await create(fixture, AMPLITUDE)
  assert.equal(status, 201, JSON.stringify(body))
  assert.deepEqual(
    [body.type, body.integration, body.timeoutMs, body.batch.size, body.version],
    ['integration', 'actions-amplitude', 30_000, 1, 1],
  )
  assert.deepEqual(body.settings, { endpoint: 'north_america' })
  assert.deepEqual(body.secretSettings, ['apiKey', 'secretKey'])
  for (const field of ['urls', 'headers', 'hasSharedSecret', 'request', 'transformation', 'auth', 'tls']) assert.ok(!(field in body), field)
  assert.ok(body.subscriptions.length > 1)
  for (const { id, subscribe, enabled } of body.subscriptions) {
    assert.match(id, /^sub_/)
    assert.ok(subscribe.startsWith('type = ') && enabled)
  }
  assert.ok(!JSON.stringify(body).includes('api-key-1'))
})
