import assert from 'node:assert/strict'
import { sep } from 'node:path'
import { test } from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import type { CatalogPreset } from './catalog.ts'
import { readIntegration } from './catalog.ts'
import { definitionsFolder, loadDefinition, require } from './definitions.ts'
import { integrationOf, MESSAGE, type Request, runSend } from './fixtures/integrations.ts'
import { startTool } from './fixtures/tool.ts'
import { openIntegration, type RunResult } from './runner.ts'

const signal = (): AbortSignal => AbortSignal.timeout(20_000)

async function presetOf(slug: string, name: string): Promise<CatalogPreset> {
  const preset = (await readIntegration(slug))?.presets.find((each) => each.name === name)
  assert.ok(preset)
  return preset
}

function urlsOf({ requests }: RunResult): string[] {
  return requests.map(({ url }) => url)
}

test('opening an integration loads its code and that of no other', async () => {
  await openIntegration('actions-webhook', {})
  const folder = definitionsFolder() + sep
  const loaded = Object.keys(require.cache).flatMap((file) => (file.startsWith(folder) ? file.slice(folder.length).split(sep)[0] : []))
  assert.deepEqual([...new Set(loaded)], ['webhook'])
})

test('a slug that the catalogue does not have is an error', async () => {
  await assert.rejects(openIntegration('no-such-tool', {}), { message: 'There is no integration "no-such-tool" in the catalogue.' })
  await assert.rejects(openIntegration('../webhook', {}), { message: 'There is no integration "../webhook" in the catalogue.' })
})

test('a run makes the same requests as the library with the same subscription, alone and in a batch', async (t) => {
  const { url, received } = await startTool(t)
  const settings = { sharedSecret: 'a-shared-secret' }
  const mapping = { url: `${url}/hook`, method: 'PUT', headers: { 'x-one': 'two' }, data: { '@path': '$.properties' } }
  const { Destination } = require('@segment/actions-core') as {
    Destination: new (definition: unknown) => Record<'onEvent' | 'onBatch', (data: unknown, settings: object) => Promise<unknown>>
  }
  const direct = new Destination(loadDefinition('webhook'))
  const subscription = { subscribe: 'type = "track"', partnerAction: 'send', mapping }
  const messages = [MESSAGE, { ...MESSAGE, properties: { total: 13 } }]
  await direct.onEvent(structuredClone(MESSAGE), { ...settings, subscription })
  await direct.onBatch(structuredClone(messages), { ...settings, subscription })
  const integration = await openIntegration('actions-webhook', settings)
  await integration.run({ action: 'send', mapping }, [MESSAGE], { signal: signal() })
  await integration.run({ action: 'send', mapping }, messages, { signal: signal() })
  assert.equal(received.length, 4)
  assert.deepEqual(received.slice(2), received.slice(0, 2))
  assert.ok(received[0]?.headers['x-signature'])
})

test('messages with different batch keys are in different batches, and no batch is longer than its size', async (t) => {
  const { url, received } = await startTool(t)
  const integration = await openIntegration('actions-webhook', {})
  const mapping = { url: { '@path': '$.to' }, method: 'POST', data: { id: { '@path': '$.id' } }, batch_size: 2 }
  const messages = ['a', 'b', 'a', 'a', 'b'].map((path, id) => Object.assign({}, MESSAGE, { to: `${url}/${path}`, id }))
  const { results, requests } = await integration.run({ action: 'send', mapping }, messages, { signal: signal() })
  assert.deepEqual(new Set(results.map(({ kind }) => kind)), new Set(['success']))
  const sent = received.map(({ path, body }) => `${path} ${body}`).sort()
  assert.deepEqual(sent, ['/a [{"id":0},{"id":2}]', '/a {"id":3}', '/b [{"id":1},{"id":4}]'])
  assert.deepEqual(requests.map(({ positions }) => positions.join(' ')).sort(), ['0 2', '1 4', '3'])
})

test('messages run one by one if the action has no batches, or if its mapping turns them off', async (t) => {
  const { url, received } = await startTool(t)
  let atOnce = 0
  let most = 0
  const perform = async (request: Request): Promise<void> => {
    most = Math.max(most, ++atOnce)
    await request(url)
    atOnce--
  }
  const messages = Array.from({ length: 20 }, () => MESSAGE)
  const alone = await runSend(integrationOf({ perform }), { messages })
  assert.deepEqual(
    alone.requests.map(({ positions }) => positions[0]).sort((a, b) => Number(a) - Number(b)),
    messages.map((_, position) => position),
  )
  assert.ok(most > 1 && most <= 8, `${most} at once`)
  const off = await runSend(integrationOf({ perform, performBatch: () => assert.fail() }), {
    messages,
    mapping: { enable_batching: false },
  })
  assert.equal(off.results.length, 20)
  assert.equal(received.length, 40)
})

test('one message that fails does not stop the others', async () => {
  const perform = (_: Request, { payload }: { payload: JsonObject }): void => {
    if (payload.id === 1) throw new Error('no')
  }
  const messages = [0, 1, 2].map((id) => ({ id }))
  const { results } = await runSend(integrationOf({ fields: { id: { type: 'number' } }, perform }), {
    messages,
    mapping: { id: { '@path': '$.id' } },
  })
  assert.deepEqual(
    results.map(({ kind }) => kind),
    ['success', 'failed', 'success'],
  )
})

test('an action cannot change its settings, mapping or messages for anyone else', async () => {
  const settings = { region: 'eu', list: ['a'] }
  const mapping = { deep: { value: 'x' } }
  const message = { ...MESSAGE, properties: { total: 1 } }
  const before = structuredClone({ settings, mapping, message })
  const seen: unknown[] = []
  const integration = integrationOf(
    {
      fields: { deep: { type: 'object', additionalProperties: true } },
      perform: (_, data) => {
        const raw = data.rawData as { properties: JsonObject }
        seen.push(structuredClone([data.settings, data.rawMapping, raw]))
        data.settings.region = 'us'
        ;(data.settings.list as string[]).push('b')
        ;(data.rawMapping.deep as JsonObject).value = 'y'
        raw.properties.total = 2
      },
    },
    {},
    settings,
  )
  await runSend(integration, { mapping, messages: [message] })
  await runSend(integration, { mapping, messages: [message] })
  assert.deepEqual({ settings, mapping, message }, before)
  assert.deepEqual(seen[0], seen[1])
})

test('an action gets the messages themselves only if nothing else reads them', async () => {
  const perform = (_: unknown, { rawData }: { rawData?: JsonObject }): void => {
    if (rawData !== undefined) rawData['event'] = 'changed'
  }
  const changed = async (ownsMessages: boolean, more: object = {}): Promise<boolean> => {
    const message: JsonObject = { ...MESSAGE }
    await runSend(integrationOf({ perform } as never, more, { oauth: { accessToken: 'token' } }), { messages: [message], ownsMessages })
    return message['event'] === 'changed'
  }
  assert.deepEqual([await changed(true), await changed(false)], [true, false])
  // With an access token that may have expired, the message may be needed again.
  assert.equal(
    await changed(true, { authentication: { scheme: 'oauth2', fields: {}, refreshAccessToken: async () => ({ accessToken: 'new' }) } }),
    false,
  )
})

test('a property with the name of the prototype stays a property', async () => {
  const message = JSON.parse('{"type":"track","__proto__":{"polluted":true}}') as JsonObject
  let own: unknown
  const perform = (_: Request, { rawData }: { rawData: unknown }): void => {
    own = [Object.keys(rawData as object), Object.getPrototypeOf(rawData) === Object.prototype]
  }
  await runSend(integrationOf({ perform }), { messages: [message] })
  assert.deepEqual(own, [['type', '__proto__'], true])
})

test('settings that the definition does not accept, and an action that it does not have, fail every message', async () => {
  const fields = { apiKey: { type: 'password', label: 'API key', required: true } } as const
  const integration = integrationOf({}, { authentication: { scheme: 'custom', fields } }, {})
  const { results } = await runSend(integration, { messages: [MESSAGE, MESSAGE] })
  const [result] = results
  assert.equal(results.length, 2)
  assert.equal(result?.kind === 'failed' && result.code, 'integration_failed')
  assert.match(result?.kind === 'failed' ? result.message : '', /^The integration does not accept the settings: .*apiKey/)
  for (const action of ['missing', 'constructor', '__proto__']) {
    const unknown = await integrationOf({}).run({ action, mapping: {} }, [MESSAGE], { signal: signal() })
    assert.deepEqual(unknown.results, [
      { kind: 'failed', code: 'integration_failed', message: `The integration has no action "${action}".` },
    ])
  }
})

test('after the deadline, no message is started', async () => {
  const { results } = await runSend(integrationOf({ perform: () => assert.fail() }), {
    signal: AbortSignal.abort(),
    messages: [MESSAGE, MESSAGE],
  })
  assert.deepEqual(
    results.map((result) => result.kind === 'failed' && result.code),
    ['timeout', 'timeout'],
  )
})

test('the preview of Slack shows the message, and hides the secret part of its URL', async () => {
  const integration = await openIntegration('actions-slack', {})
  const mapping = { url: 'https://hooks.slack.com/services/T0000001/B0000001/abcdefghijklmnopqrstuvwx', text: 'Ordered by {{userId}}' }
  const step = { action: 'postToChannel', mapping: { ...mapping, text: { '@template': mapping.text } } }
  const preview = await integration.run(step, [MESSAGE], { signal: signal(), isPreview: true })
  assert.deepEqual(preview.results, [{ kind: 'success' }])
  assert.deepEqual(urlsOf(preview), ['https://hooks.slack.com/services/T0000001/B0000001/(hidden)'])
  assert.equal((JSON.parse(preview.requests[0]?.body ?? '') as JsonObject).text, 'Ordered by u1')
  const other = { ...step, mapping: { ...step.mapping, url: 'https://example.com/hook' } }
  const refused = await integration.run(other, [MESSAGE], { signal: signal() })
  assert.deepEqual(refused.results, [{ kind: 'failed', code: 'integration_failed', message: 'Invalid Slack URL' }])
})

test('the preview of a preset shows the request with the key hidden, and a user can be deleted', async () => {
  const settings = { apiKey: 'amplitude-api-key', secretKey: 'amplitude-secret-key', endpoint: 'north_america' }
  const integration = await openIntegration('actions-amplitude', settings)
  const { action, mapping } = await presetOf('actions-amplitude', 'Track Calls')
  const preview = await integration.run({ action, mapping }, [MESSAGE], { signal: signal(), isPreview: true })
  assert.deepEqual(preview.results, [{ kind: 'success' }])
  assert.deepEqual(urlsOf(preview), ['https://api2.amplitude.com/2/httpapi'])
  const body = JSON.parse(preview.requests[0]?.body ?? '') as { api_key: string; events: JsonObject[] }
  assert.equal(body.api_key, '(hidden)')
  assert.equal(body.events[0]?.event_type, 'Order Completed')
  const erased = await integration.erase?.({ type: 'delete', userId: 'u1' }, { signal: signal(), isPreview: true })
  assert.deepEqual(erased?.results, [{ kind: 'success' }])
  assert.equal(erased?.requests.length, 1)
  assert.equal((await openIntegration('actions-slack', {})).erase, null)
})

test('the messages of a batch share no values, and leave none for the actions after it', async () => {
  const seen: unknown[] = []
  const use = (_: Request, data: object): object => {
    const { transactionContext } = data as {
      transactionContext: { transaction: object; setTransaction: (key: string, value: string) => void }
    }
    seen.push(transactionContext.transaction)
    transactionContext.setTransaction('id', 'new')
    return { status: 200 }
  }
  const integration = integrationOf({ perform: use, performBatch: use })
  const transactions = ['first', 'second'].map((id) => new Map([['id', id]]))
  await runSend(integration, { mapping: { enable_batching: true }, messages: [MESSAGE, MESSAGE], transactions })
  assert.deepEqual(
    transactions.map((transaction) => transaction.get('id')),
    ['first', 'second'],
  )
  await runSend(integration, { messages: [MESSAGE], transactions })
  assert.deepEqual(seen, [{}, { id: 'first' }])
  assert.equal(transactions[0]?.get('id'), 'new')
})
