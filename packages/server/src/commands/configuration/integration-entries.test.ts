import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resolvedSubscriptions } from './integration-entries.ts'

test('a @transform around all fields of a mapping does not differ from its saved form', () => {
  const apply = { total: { '@path': '$.properties.total' } }
  const fields = { text: { '@path': '$.total' } }
  const saved = { name: 'Post', mapping: { __segment_internal_directive: { '@transform': { apply } }, ...fields }, enabled: true }
  const asIs = (text: unknown): unknown => text
  const [given] = resolvedSubscriptions([{ name: 'Post', mapping: { '@transform': { apply, mapping: fields } } }], undefined, asIs)
  assert.equal(JSON.stringify(given), JSON.stringify({ enabled: true, name: 'Post', mapping: saved.mapping }))
  assert.deepEqual(resolvedSubscriptions([saved], undefined, asIs), [saved])
})
