import assert from 'node:assert/strict'
import dns from 'node:dns'
import http from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import { connect, createServer } from 'node:net'
import { test } from 'node:test'
import { connect as tlsConnect } from 'node:tls'
import { require } from '../definitions.ts'
import { errors, integrationOf, type Request, runSend } from '../fixtures/integrations.ts'
import { startTool } from '../fixtures/tool.ts'
import type { StepResult } from '../integration.ts'

/** No name of this domain exists, so a lookup would fail. */
const HOST = 'https://api.example.invalid'

function messageOf(result: StepResult | undefined): string {
  return result === undefined || result.kind === 'success' ? '' : result.message
}

test('a preview shows every request with its headers and body, and sends none', async (t) => {
  const { url, received } = await startTool(t)
  const perform = async (request: Request): Promise<unknown> => {
    const first = await request(`${HOST}/first`, { method: 'POST', json: { a: 1 }, headers: { 'x-one': 'two' } })
    const second = await fetch(`${url}/second`, { method: 'PUT', body: 'text', headers: { authorization: 'secret' } })
    const third = await new Promise<string>((resolve, reject) => {
      const made = https.request(`${HOST}/third`, { method: 'PATCH', agent: new https.Agent({ keepAlive: true }) }, (answer) => {
        answer.setEncoding('utf8').once('data', resolve)
      })
      made.on('error', reject)
      made.write('part one, ')
      made.end('part two')
    })
    return [first.data, await second.json(), third]
  }
  let answers: unknown
  const integration = integrationOf({
    perform: async (request) => {
      answers = await perform(request)
    },
  })
  const { results, requests } = await runSend(integration, { isPreview: true })
  assert.deepEqual(results, [{ kind: 'success' }])
  assert.deepEqual(answers, [{}, {}, '{}'])
  assert.deepEqual(
    requests.map(({ method, url: address, body, status, error, responseStart }) => [method, address, body, status, error, responseStart]),
    [
      ['POST', `${HOST}/first`, '{"a":1}', null, null, null],
      ['PUT', `${url}/second`, 'text', null, null, null],
      ['PATCH', `${HOST}/third`, 'part one, part two', null, null, null],
    ],
  )
  assert.equal(requests[0]?.headers?.['x-one'], 'two')
  assert.equal(requests[0]?.headers?.['content-type'], 'application/json')
  assert.equal(requests[1]?.headers?.['authorization'], '(hidden)')
  assert.deepEqual(received, [])
})

test('an action that needs an answer to go on says so in a preview', async () => {
  const perform = async (request: Request): Promise<unknown> => {
    const { data } = await request(`${HOST}/contacts`)
    return (data as { results: { id: string }[] }).results[0]?.id
  }
  const { results, requests } = await runSend(integrationOf({ perform }), { isPreview: true })
  assert.equal(requests.length, 1)
  assert.match(messageOf(results[0]), /^The action needs the answer to its last request to go on: Cannot read properties of undefined/)
  const invalid = integrationOf({
    perform: () => {
      throw new errors.PayloadValidationError('no email')
    },
  })
  const without = await runSend(invalid, { isPreview: true })
  assert.deepEqual(without.results, [{ kind: 'failed', code: 'invalid_payload', message: 'no email' }])
})

test('a preview opens no connection of any kind', async (t) => {
  const accepted: unknown[] = []
  const server = createServer((socket) => {
    accepted.push(socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const { port } = server.address() as { port: number }
  const failing = (emitter: { on(event: 'error', listener: (error: Error) => void): unknown }): Promise<never> =>
    new Promise((_, reject) => {
      emitter.on('error', reject)
    })
  const dials: (() => unknown)[] = [
    () => failing(connect(port, '127.0.0.1')),
    () => failing(tlsConnect(port, '127.0.0.1')),
    () => failing(http2.connect(`http://127.0.0.1:${port}`)),
    () => dns.promises.lookup('example.invalid'),
    () => dns.lookup('example.invalid', () => {}),
    () => dns.promises.resolve4('example.invalid'),
    () => {
      const { Kafka, logLevel } = require('kafkajs') as {
        Kafka: new (options: object) => { producer(): { connect(): Promise<void> } }
        logLevel: { NOTHING: number }
      }
      return new Kafka({ brokers: [`127.0.0.1:${port}`], retry: { retries: 0 }, logLevel: logLevel.NOTHING }).producer().connect()
    },
  ]
  for (const perform of dials) {
    const { results } = await runSend(integrationOf({ perform }), { isPreview: true })
    assert.match(messageOf(results[0]), /A preview opens no connections/, String(perform))
  }
  // The same code outside of a preview.
  const connected = new AbortController()
  server.once('connection', () => connected.abort())
  const signal = AbortSignal.any([connected.signal, AbortSignal.timeout(10_000)])
  assert.equal((await runSend(integrationOf({ perform: dials[0] as () => unknown }), { signal })).results[0]?.kind, 'failed')
  assert.equal(accepted.length, 1)
})

test('a client that waits for permission to send its body gets it in a preview', async () => {
  const { S3Client, PutObjectCommand } = require('@aws-sdk/client-s3') as {
    S3Client: new (options: object) => { send(command: unknown): Promise<unknown> }
    PutObjectCommand: new (input: object) => unknown
  }
  const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'aws-secret-key' }
  const perform = async (): Promise<void> => {
    await new S3Client({ region: 'us-east-1', credentials })
      .send(new PutObjectCommand({ Bucket: 'b', Key: 'k', Body: 'x'.repeat(3 << 20) }))
      .catch(() => {})
    await new Promise<void>((resolve, reject) => {
      const request = http.request(
        HOST.replace('https', 'http'),
        { method: 'PUT', headers: { expect: '100-continue', 'content-length': 4 } },
        (answer) => answer.resume().on('end', resolve),
      )
      request.on('error', reject)
      request.on('continue', () => request.end('body'))
    })
  }
  const { results, requests } = await runSend(integrationOf({ perform }), { isPreview: true })
  assert.deepEqual(results, [{ kind: 'success' }])
  assert.equal(requests.length, 2)
  // A long body is cut.
  assert.equal(requests[0]?.body?.length, 64 * 1024)
  assert.equal(requests[1]?.body, 'body')
})
