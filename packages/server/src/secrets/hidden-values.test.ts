import assert from 'node:assert/strict'
import test from 'node:test'
import { hiddenSettings } from './hidden-values.ts'

test('a viewer sees no credentials in the settings of an integration: neither by their names, nor in URLs', () => {
  const settings = {
    region: 'us',
    writeKey: 'key-1',
    endpoint: 'https://eu.tool.example/v1/events',
    collector: 'https://collector.example/p/0123456789abcdef01/events?token=abc',
    last: 'https://collector.example/0123456789abcdef01',
    host: 'https://a-long-name-of-a-host/v1',
  }
  assert.deepEqual(hiddenSettings(settings), {
    region: 'us',
    writeKey: '(hidden)',
    endpoint: 'https://eu.tool.example/v1/events',
    collector: 'https://collector.example/p/(hidden)/events?token=(hidden)',
    last: 'https://collector.example/(hidden)',
    host: 'https://a-long-name-of-a-host/v1',
  })
})
