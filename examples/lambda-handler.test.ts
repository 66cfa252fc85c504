import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startInProcess } from '../e2e/system/in-process.ts'
import { startReceiver } from '../e2e/system/receiver.ts'
import { wire } from '../e2e/system/wiring.ts'
import { collectingEndpoint, deferred } from './testing/collecting-endpoint.ts'
import { runExample, startExample } from './testing/run-example.ts'

/** The default of one second is too short on a loaded machine, in tests that are not about it. */
const AMPLE = { ANALYTICS_FLUSH_MS: '30000' }

const line = (stored: number, failed: number, pending: number): string =>
  `${JSON.stringify({ statusCode: 200, analytics: { stored, failed, pending } })}\n`

// Tests run concurrently, because each one mostly waits for its own process.
suite('the Lambda handler', { concurrency: 4 }, () => {
  test('each invocation, cold and warm, has delivered its message when it returns', async (t) => {
    const { url, messages } = await collectingEndpoint(t)
    const { code, stdout, stderr } = await runExample(t, 'lambda-handler.ts', { env: { SWITCHYARD_HOST_URL: url, ...AMPLE } })
    assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: line(1, 0, 0).repeat(2), stderr: '' })
    assert.deepEqual(
      messages.map(({ messageId }) => messageId),
      ['order-completed-order-1', 'order-completed-order-2'],
    )
  })

  test('an invocation returns in time although the service does not answer, and the next one delivers its message', async (t) => {
    const { promise: held, resolve: letGo } = deferred()
    const { url, messages } = await collectingEndpoint(t, { hold: held })
    const lambda = startExample(t, 'lambda-handler.ts', { env: { SWITCHYARD_HOST_URL: url, ANALYTICS_FLUSH_MS: '5000' } })
    // Both invocations wait for so long: the first until it is over, the second only until its messages have been delivered.
    await lambda.waitFor(/\n/)
    assert.equal(lambda.stdout(), line(0, 0, 1))
    assert.match(lambda.stderr(), /analytics: 1 pending, 0 failed/)
    letGo()
    const { code, stdout } = await lambda.finished
    assert.deepEqual([code, stdout], [0, line(0, 0, 1) + line(2, 0, 0)])
    // A message that had to be sent twice has the same ID.
    assert.deepEqual(new Set(messages.map(({ messageId }) => messageId)), new Set(['order-completed-order-1', 'order-completed-order-2']))
  })

  test('failures are reported, and the handler still answers', async (t) => {
    const { url } = await collectingEndpoint(t)
    // The test endpoint rejects only a blank key.
    const { code, stdout, stderr } = await runExample(t, 'lambda-handler.ts', {
      env: { SWITCHYARD_HOST_URL: url, SWITCHYARD_WRITE_KEY: ' ', ...AMPLE },
    })
    assert.deepEqual([code, stdout], [1, line(0, 1, 0).repeat(2)])
    assert.match(stderr, /analytics: delivery_failure: .*401.*\nanalytics: 0 pending, 1 failed\n/)
  })

  test('its messages reach the webhook through the service, each once although the invocations are repeated', async (t) => {
    await using service = await startInProcess()
    await using receiver = await startReceiver()
    const wiring = await wire(service, { urls: [receiver.url] })
    for (let run = 0; run < 2; run++) {
      const env = { SWITCHYARD_HOST_URL: service.url, SWITCHYARD_WRITE_KEY: wiring.writeKey, ...AMPLE }
      const { code, stdout } = await runExample(t, 'lambda-handler.ts', { env })
      assert.deepEqual([code, stdout], [0, line(1, 0, 0).repeat(2)])
    }
    // A sentinel: everything sent before it has arrived when it arrives.
    const last = await wiring.track()
    await receiver.until(() => receiver.byMessageId.size === 3)
    assert.deepEqual(new Set(receiver.byMessageId.keys()), new Set(['order-completed-order-1', 'order-completed-order-2', last]))
    assert.equal(receiver.messages().length, 3)
  })
})
