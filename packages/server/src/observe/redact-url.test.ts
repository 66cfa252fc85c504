import assert from 'node:assert/strict'
import { test } from 'node:test'
import { redactUrl } from './redact-url.ts'

test('a URL is shown without user info and query, also that of a warehouse', () => {
  assert.equal(redactUrl('https://ada:secret@hooks.example:8443/in?token=secret'), 'https://hooks.example:8443/(hidden)')
  assert.equal(redactUrl('postgres://ada:secret@db.example:5433/analytics'), 'postgres://db.example:5433/analytics')
  assert.equal(redactUrl('file:///var/lib/lake/main'), 'file:///var/lib/lake/main')
  assert.equal(redactUrl('s3://bucket/prefix'), 's3://bucket/prefix')
  assert.equal(redactUrl('integration:slack'), 'integration:slack')
  assert.equal(redactUrl('no address'), 'invalid')
})
