// The first mapping that a thread evaluates, before anything else has loaded the mapping kit. A file of its own, because the kit is loaded only once.

import assert from 'node:assert/strict'
import test from 'node:test'
import { webhookOf } from '../../fixtures/webhook.ts'
import { shaperOf } from './shaper.ts'

test('the first evaluation reads the secrets of the destination', () => {
  const body = { key: { '@path': '$.secrets.key' } }
  const request = { method: 'POST', path: '', headers: {}, body, format: 'json' } as const
  const shape = shaperOf(webhookOf({ request, secrets: { key: 'value' } })) ?? assert.fail()
  assert.equal(shape({ secrets: { key: 'of the message' } }).text, '{"key":"value"}')
})
