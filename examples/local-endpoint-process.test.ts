// The local endpoint as a process: what it says at its start, what it prints, how it fails and how it ends.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { suite, type TestContext, test } from 'node:test'
import { collectingEndpoint } from './testing/collecting-endpoint.ts'
import { type ExampleOptions, type RunningExample, runExample, startExample, startNode } from './testing/run-example.ts'

const FILE = 'local-endpoint.ts'
const hasCurl = spawnSync('curl', ['--version']).status === 0

async function started(t: TestContext, options: ExampleOptions = {}): Promise<{ endpoint: RunningExample; url: string }> {
  const endpoint = startExample(t, FILE, { ...options, args: ['--port', '0', ...(options.args ?? [])] })
  const json = options.args?.includes('--json') === true
  const [, url] = await endpoint.waitFor(/ on (http:\S+):[^]*Messages follow\.\n/, json ? 'stderr' : 'stdout')
  return { endpoint, url: url as string }
}

function track(url: string, event: string): Promise<Response> {
  return fetch(`${url}/v1/track`, { method: 'POST', body: JSON.stringify({ writeKey: 'k', userId: 'u', event }) })
}

// At once, because each test mostly waits for a process of its own.
suite('the local endpoint as a process', { concurrency: 4 }, () => {
  test('its first line says where it listens, and that it stores and delivers nothing', async (t) => {
    const { endpoint, url } = await started(t)
    assert.match(
      endpoint.stdout().split('\n')[0] ?? '',
      /local endpoint on http:\/\/127\.0\.0\.1:\d+: .*stores nothing and delivers nothing/,
    )
    assert.equal((await fetch(`${url}/healthz`)).status, 200)
  })

  test('the curl line of its start message works when pasted', { skip: !hasCurl && 'curl is not installed' }, async (t) => {
    const { endpoint } = await started(t)
    const curl = /^ *(curl .*)$/m.exec(endpoint.stdout())?.[1] as string
    const { stdout } = spawnSync('sh', ['-c', curl], { encoding: 'utf8' })
    assert.equal(stdout, '{"success":true}\n')
    await endpoint.waitFor(/track {5}"Order Completed" {2}user user-1 {2}\{"total":42\}\n/)
  })

  test('the Node.js lines of its start message work when pasted', async (t) => {
    const { endpoint } = await started(t)
    const program = /^ *import .*\n(?: +\S.*\n)+/m.exec(endpoint.stdout())?.[0] as string
    const { code, stdout } = await startNode(t, ['--input-type=module', '--eval', program]).finished
    assert.deepEqual([code, stdout], [0, '{ delivered: 1, failed: 0, pending: 0 }\n'])
    await endpoint.waitFor(/track {5}"Order Completed" {2}user user-1 {2}\{"total":42\}\n/)
  })

  test('messages and rejections are printed, harmless and without colour in a pipe', async (t) => {
    const { endpoint, url } = await started(t)
    await track(url, '\u001b[2J\u009b31m\nfake')
    await track(url, '')
    await endpoint.waitFor(/rejected {2}event_required/)
    assert.match(endpoint.stdout(), /"\\u001b\[2J\\u009b31m\\nfake"/)
    // oxlint-disable-next-line no-control-regex -- these are what must not be there
    assert.doesNotMatch(endpoint.stdout(), /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
  })

  test('with --json, stdout is one JSON object for each message and nothing else', async (t) => {
    const { endpoint, url } = await started(t, { args: ['--json'] })
    await track(url, 'One\u001b\u009b')
    await track(url, '')
    await track(url, 'Two')
    await endpoint.waitFor(/Two.*\n/)
    const lines = endpoint.stdout().trimEnd().split('\n')
    assert.deepEqual(
      lines.map((line) => JSON.parse(line)),
      [
        { userId: 'u', event: 'One\u001b\u009b', type: 'track' },
        { userId: 'u', event: 'Two', type: 'track' },
      ],
    )
    assert.ok(!endpoint.stdout().includes('\u009b'))
    assert.match(endpoint.stderr(), /rejected {2}event_required/)
  })

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`${signal} ends it with 0, even with connections open`, async (t) => {
      const { endpoint, url } = await started(t)
      await track(url, 'One')
      endpoint.child.kill(signal)
      const { code, stdout } = await endpoint.finished
      assert.equal(code, 0)
      assert.match(stdout, /Stopped\. 1 received, 0 rejected\.\n$/)
    })
  }

  test('the environment says where to listen, and a flag wins over it', async (t) => {
    const byVariable = startExample(t, FILE, { env: { SWITCHYARD_HOST: 'localhost', SWITCHYARD_PORT: '0' } })
    await byVariable.waitFor(/ on http:\/\/(127\.0\.0\.1|\[::1\]):\d+:/)
    const byFlag = startExample(t, FILE, {
      args: ['--host=0.0.0.0', '--port=0'],
      env: { SWITCHYARD_HOST: 'localhost', SWITCHYARD_PORT: 'bad' },
    })
    const [, url] = await byFlag.waitFor(/ on (http:\/\/localhost:\d+):/)
    assert.equal((await fetch(`${url}/healthz`)).status, 200)
  })

  test('a port that is taken is said, with a way out', async (t) => {
    const { port } = await collectingEndpoint(t)
    const { code, stdout, stderr } = await runExample(t, FILE, { env: { SWITCHYARD_PORT: String(port) } })
    assert.deepEqual([code, stdout], [1, ''])
    assert.equal(
      stderr,
      `Port ${port} on 127.0.0.1 is taken. Stop what listens there, or choose another: npm start -- --port ${port + 1}\n`,
    )
  })

  test('an address of another machine cannot be listened on', async (t) => {
    const { code, stderr } = await runExample(t, FILE, { args: ['--host', '192.0.2.1', '--port', '0'] })
    assert.equal(code, 1)
    assert.match(stderr, /192\.0\.2\.1 is not an address of this machine/)
  })

  test('bad values and unknown flags end it with 2 and a reason', async (t) => {
    const cases: [options: ExampleOptions, reason: RegExp][] = [
      [{ args: ['--port', '70000'] }, /^The port must be a whole number from 0 to 65535; it is "70000"\.\n$/],
      [{ env: { SWITCHYARD_PORT: 'http' } }, /^The port must be .* it is "http"\.\n$/],
      [{ args: ['--host', 'http://localhost:80'] }, /^The host must be a name or an address/],
      [{ args: ['--prot', '1'] }, /--prot[^]*Usage:/],
    ]
    const results = await Promise.all(cases.map(([options]) => runExample(t, FILE, options)))
    for (const [index, { code, stdout, stderr }] of results.entries()) {
      assert.deepEqual([code, stdout], [2, ''])
      assert.match(stderr, cases[index]?.[1] as RegExp)
    }
  })

  test('--help names every flag and variable', async (t) => {
    const { code, stdout, stderr } = await runExample(t, FILE, { args: ['--help'] })
    assert.deepEqual([code, stderr], [0, ''])
    for (const name of ['--host', '--port', '--json', 'SWITCHYARD_HOST', 'SWITCHYARD_PORT', 'NO_COLOR'])
      assert.ok(stdout.includes(name), name)
  })

  test('a reader that leaves first is no failure', async (t) => {
    const { endpoint, url } = await started(t)
    endpoint.child.stdout?.destroy()
    // The first line after the reader has left finds it gone, and that ends the process.
    await track(url, 'One').catch(() => {})
    assert.equal((await endpoint.finished).code, 0)
  })
})
