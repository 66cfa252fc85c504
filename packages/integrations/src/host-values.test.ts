import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withHostValues } from './host-values.ts'

const OWN = 'SWITCHYARD_TEST_OWN'
const SHARED = 'SWITCHYARD_TEST_SHARED'

test('code of an integration can assign environment variables: those of its run for this run, all others for the process', (t) => {
  t.after(() => {
    delete process.env[OWN]
    delete process.env[SHARED]
  })
  process.env[OWN] = 'of the process'
  process.env[SHARED] = 'before'
  const values = { env: { [OWN]: 'of the run' }, aws: null }
  withHostValues(values, () => {
    assert.equal(process.env[OWN], 'of the run')
    process.env[OWN] = 'assigned'
    process.env[SHARED] = 'after'
    assert.deepEqual([process.env[OWN], process.env[SHARED]], ['assigned', 'after'])
  })
  assert.deepEqual([process.env[OWN], process.env[SHARED]], ['of the process', 'after'])
  withHostValues(values, () => {
    assert.equal(process.env[OWN], 'of the run')
    delete process.env[OWN]
  })
  // Outside of a run too: the proxy stays in place.
  process.env[SHARED] = 'later'
  assert.deepEqual([process.env[OWN], process.env[SHARED]], ['of the process', 'later'])
})
