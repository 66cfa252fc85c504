import assert from 'node:assert/strict'
import test from 'node:test'
import { openCatalog } from '../../installation/integrations-catalog.ts'
import { startControl } from '../fixtures/start-control.ts'

test('a second destination with the same name and URL for the same source is refused, unless it is allowed', async (t) => {
  const { call } = await startControl(t)
  const [web, app] = await Promise.all(['web', 'app'].map(async (name) => (await call('POST', '/api/sources', { name })).body.id))
  const hook = { name: 'orders', urls: ['https://receiver.example/hook'], sourceIds: [web] }
  const first = await call('POST', '/api/destinations', hook)
  assert.equal(first.status, 201)

  const again = await call('POST', '/api/destinations', { ...hook, urls: ['https://other.example/', ...hook.urls], sourceIds: [app, web] })
  assert.deepEqual([again.status, again.body.code, again.body.field], [409, 'destination_exists', 'name'])
  assert.equal(again.body.destinationId, first.body.id)
  assert.ok(again.body.message.includes(first.body.id))
  assert.equal((await call('GET', '/api/destinations')).body.data.length, 1)

  for (const other of [
    { ...hook, name: 'orders 2' },
    { ...hook, urls: ['https://receiver.example/other'] },
    { ...hook, sourceIds: [app] },
    { ...hook, sourceIds: [] },
  ])
    assert.equal((await call('POST', '/api/destinations', other)).status, 201, JSON.stringify(other))
  assert.equal((await call('POST', '/api/destinations?allowDuplicate=true', hook)).status, 201)
})

test('of two requests at the same time, one creates the destination', async (t) => {
  const { call } = await startControl(t)
  const { id } = (await call('POST', '/api/sources', { name: 'web' })).body
  const hook = { name: 'orders', urls: ['https://receiver.example/hook'], sourceIds: [id] }
  const answers = await Promise.all(Array.from({ length: 5 }, () => call('POST', '/api/destinations', hook)))
  assert.deepEqual(
    answers.map(({ status }) => status).sort((a, b) => a - b),
    [201, 409, 409, 409, 409],
  )
})

test('a second integration with the same name for the same source is refused', async (t) => {
  const { call } = await startControl(t, { catalog: () => openCatalog('nowhere') })
  const { id } = (await call('POST', '/api/sources', { name: 'web' })).body
  const settings = { apiKey: 'a', secretKey: 's', endpoint: 'north_america' }
  const amplitude = { type: 'integration', integration: 'actions-amplitude', name: 'Amplitude', settings, sourceIds: [id] }
  assert.equal((await call('POST', '/api/destinations', amplitude)).status, 201)
  const again = await call('POST', '/api/destinations', amplitude)
  assert.deepEqual([again.status, again.body.code], [409, 'destination_exists'])
  assert.match(again.body.message, /already has the name "Amplitude" and the same integration/)
  assert.equal((await call('POST', '/api/destinations', { ...amplitude, name: 'Amplitude EU' })).status, 201)
  const hook = { name: 'Amplitude', urls: ['https://receiver.example/hook'], sourceIds: [id] }
  assert.equal((await call('POST', '/api/destinations', hook)).status, 201, 'a webhook is something else')
})
