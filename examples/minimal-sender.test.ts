import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startTrackingServer } from '../packages/node/test/tracking-server.ts'
import { collectingEndpoint } from './testing/collecting-endpoint.ts'
import { runExample } from './testing/run-example.ts'

// Tests run concurrently, because each one mostly waits for its own process.
suite('the minimal sender', { concurrency: 4 }, () => {
  test('it delivers an identify and a track message', async (t) => {
    const { url, messages, writeKeys } = await collectingEndpoint(t)
    const byArgument = await runExample(t, 'minimal-sender.ts', { args: [url] })
    assert.deepEqual(byArgument, { code: 0, stdout: `${url}: 2 stored, 0 failed, 0 pending\n`, stderr: '' })
    const byVariable = await runExample(t, 'minimal-sender.ts', { env: { SWITCHYARD_HOST_URL: url, SWITCHYARD_WRITE_KEY: 'mine' } })
    assert.equal(byVariable.code, 0)
    assert.deepEqual(
      messages.map(({ type, userId }) => [type, userId]),
      [
        ['identify', 'user-1'],
        ['track', 'user-1'],
        ['identify', 'user-1'],
        ['track', 'user-1'],
      ],
    )
    assert.deepEqual([...writeKeys], ['dev', 'mine'])
  })

  test('it exits with 1 and a reason when the service does not answer', async (t) => {
    const gone = await startTrackingServer()
    await gone.close()
    const { code, stdout, stderr } = await runExample(t, 'minimal-sender.ts', { args: [gone.url] })
    assert.deepEqual([code, stdout], [1, `${gone.url}: 0 stored, 2 failed, 0 pending\n`])
    assert.match(stderr, /^delivery_failure: the request to the tracking API failed: .*ECONNREFUSED/)
  })
})
