// Emails that are invalid, and the circuit breaker of a mail server that is down.

import assert from 'node:assert/strict'
import test from 'node:test'
import { MAIL_AUTHORITY, startMailServer } from '../../fixtures/mail-server.ts'
import { startRig } from '../../fixtures/rig.ts'
import { FAILURES_TO_OPEN } from '../../lanes/breaker.ts'

test('an invalid email does not close the circuit breaker', async (t) => {
  let isDown = true
  const server = await startMailServer(t, { answer: (command) => (isDown && command === 'CONNECT' ? '421 closed' : undefined) })
  const rig = await startRig(t)
  const body = { from: 'alerts@example.com', to: { '@path': '$.properties.to' }, subject: 'Subject', text: 'Text' }
  const destination = await rig.destination('email', {
    urls: [`smtp://127.0.0.1:${server.port}`],
    request: { method: 'POST', path: '', headers: {}, format: 'json', body },
    tls: { certificate: null, privateKey: null, ca: MAIL_AUTHORITY.cert },
    maxInFlight: FAILURES_TO_OPEN,
  })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], FAILURES_TO_OPEN, { properties: { to: 'a@example.com' } })
  await rig.until(() => rig.breakers.length === 1)
  const breaker = () => rig.delivery.health(destination.id)?.breaker
  assert.equal(breaker(), 'open')

  await rig.accept([destination], 1, { properties: { to: 'a@example.com, b@example.com' } })
  while (!rig.attempts.some(({ outcome }) => outcome.reason === 'mail_invalid')) {
    rig.clock.advance(1_000)
    await rig.untilStoreAnswered()
  }
  assert.notEqual(breaker(), 'closed')
  assert.equal(rig.breakers.length, 1)

  isDown = false
  while (breaker() !== 'closed') {
    rig.clock.advance(1_000)
    await rig.untilStoreAnswered()
  }
  await rig.stop()
})
