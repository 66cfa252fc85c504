import assert from 'node:assert/strict'
import { test } from 'node:test'
import { integrationOf, MESSAGE, type Request, runSend } from '../fixtures/integrations.ts'
import { answerJson, startTool } from '../fixtures/tool.ts'
import { addMappingSecrets, hiddenUrl, Scrubber, settingsScrubber } from './scrub.ts'

test('no form of a secret leaves a run, wherever the action puts it', async (t) => {
  const password = 'p@ss/wörd "quoted"\\ +&'
  const apiKey = 'key-0123456789'
  const { url } = await startTool(t, (response, { headers, path, body }) => answerJson(response, 200, { headers, path, body }))
  const settings = { username: 'ada', password, nested: { access_token: apiKey } }
  const perform = async (request: Request): Promise<never> => {
    const basic = Buffer.from(`ada:${password}`).toString('base64')
    await request(`${url}/${encodeURIComponent(password)}?key=${apiKey}`, {
      method: 'POST',
      headers: { authorization: `Basic ${basic}`, 'x-note': apiKey, 'x-custom': basic, cookie: 'a=b' },
      json: { password, deep: [{ apiKey }], text: JSON.stringify({ password }) },
    })
    console.log('logged in with', password, basic)
    throw new Error(`could not log in with ${password} and ${apiKey}`)
  }
  const authentication = {
    scheme: 'custom',
    fields: { username: { type: 'string' }, password: { type: 'password' }, nested: { type: 'object', additionalProperties: true } },
  } as const
  const result = await runSend(integrationOf({ perform }, { authentication }, settings), { isDetailed: true })
  const text = JSON.stringify(result)
  for (const part of [
    'p@ss',
    'wörd',
    'quoted',
    encodeURIComponent('wörd'),
    'key-0123',
    Buffer.from('ada:p@ss').toString('base64').slice(0, -2),
  ]) {
    assert.ok(!text.includes(part), `${part} in ${text}`)
  }
  const [request] = result.requests
  assert.equal(request?.url, `${url}/(hidden)?key=(hidden)`)
  assert.deepEqual(
    [request?.headers?.['authorization'], request?.headers?.['cookie'], request?.headers?.['x-note'], request?.headers?.['x-custom']],
    ['(hidden)', '(hidden)', '(hidden)', '(hidden)'],
  )
  assert.deepEqual(result.results, [{ kind: 'failed', code: 'integration_failed', message: 'could not log in with (hidden) and (hidden)' }])
  assert.equal(result.logs, 'logged in with (hidden) (hidden)')
})

test('a secret at the place where a text is cut does not stay in part', async () => {
  const settings = { apiKey: 'abcdefghijklmnop' }
  const perform = (): never => {
    console.log(`${'x'.repeat(2_040)}${settings.apiKey}`)
    throw new Error(`${'x'.repeat(990)}${settings.apiKey}`)
  }
  const { logs, results } = await runSend(integrationOf({ perform }, {}, settings))
  assert.ok(!`${logs} ${JSON.stringify(results)}`.includes('abcd'))
})

test('a secret in an answer is hidden also if the recorded start of the answer ends within it', async (t) => {
  const apiKey = 'abcdefghijklmnop'
  const { url } = await startTool(t, (response) => response.end(`${'x'.repeat(4_090)}${apiKey}`))
  const { requests } = await runSend(integrationOf({ perform: (request) => request(url) }, {}, { apiKey }))
  assert.ok(!requests[0]?.responseStart?.includes('abcd'), requests[0]?.responseStart?.slice(-20))
})

test('short settings, and settings with other names, stay readable', () => {
  const scrubber = settingsScrubber(
    { region: 'eu-west-1', apiKey: 'short', key: 'ab', endpoint: 'https://example.com', pin: 'xyz' },
    new Set(['key', 'pin']),
  )
  assert.equal(scrubber.text('eu-west-1 short ab https://example.com xyz'), 'eu-west-1 short ab https://example.com (hidden)')
})

test('a secret that contains another one is hidden as a whole', () => {
  const scrubber = new Scrubber()
  scrubber.add('secret')
  scrubber.add('secret-and-more')
  assert.equal(scrubber.text('secret-and-more, secret'), '(hidden), (hidden)')
})

test('each line of a private key is a secret, because line breaks are written in many ways', () => {
  const scrubber = new Scrubber()
  scrubber.add('-----BEGIN KEY-----\nMIIBVgIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----')
  assert.equal(scrubber.text('MIIBVgIBADANBgkq\r\nhkiG9w0BAQEFAASC'), '(hidden)\r\n(hidden)')
})

test('of a URL in a mapping, the long parts of the path and the query are hidden', async (t) => {
  const { url, received } = await startTool(t)
  const hook = `${url}/services/T00000001/B00000001/XXXXXXXXXXXXXXXXXXXXXXXX?signed=0123456789`
  const perform = (request: Request, { payload }: { payload: { url?: unknown } }): unknown => request(String(payload.url))
  const integration = integrationOf({ fields: { url: { type: 'string' } }, perform })
  const { requests } = await runSend(integration, { mapping: { url: hook }, isDetailed: true })
  assert.equal(received[0]?.path, new URL(hook).pathname + new URL(hook).search)
  assert.equal(requests[0]?.url, `${url}/services/T00000001/B00000001/(hidden)?signed=(hidden)`)
  const scrubber = new Scrubber()
  addMappingSecrets(scrubber, {
    headers: { Authorization: 'Bearer abcdefgh', 'X-Trace': 'trace-12345678' },
    list: [{ deep: hook }],
    text: MESSAGE.event,
  })
  assert.equal(scrubber.text('Bearer abcdefgh XXXXXXXXXXXXXXXXXXXXXXXX trace-12345678'), '(hidden) (hidden) trace-12345678')
})

test('URLs lose their user name, password and the values of their query', () => {
  assert.equal(hiddenUrl('https://user:pass@example.com/a?b=c&d'), 'https://example.com/a?b=(hidden)&(hidden)')
  assert.equal(hiddenUrl('https://example.com/a'), 'https://example.com/a')
  assert.equal(hiddenUrl('not a url?a=b'), '(hidden)')
})

test('of a URL in a setting that is not marked as a secret, the long parts of the path are hidden, and so are constants with the name of a secret', () => {
  const scrubber = settingsScrubber({ movable_ink_url: 'https://collector.example/p/0123456789abcdef01/events' }, new Set())
  assert.equal(
    scrubber.text('POST https://collector.example/p/0123456789abcdef01/events'),
    'POST https://collector.example/p/(hidden)/events',
  )
  addMappingSecrets(scrubber, { data: { clientSecret: 'hunter22', name: 'ordinary' } })
  assert.equal(scrubber.text('{"clientSecret":"hunter22","name":"ordinary"}'), '{"clientSecret":"(hidden)","name":"ordinary"}')
})
