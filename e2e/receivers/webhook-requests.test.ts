// The request that a webhook gets: its URL, all of its headers, its signatures, and the settings that
// control them.

import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { generateSecret, verifySignature, verifyWebhook } from '@switchyard/webhook'
import { type InProcessService, startInProcess } from '../system/in-process.ts'
import { type Arrival, type Receiver, startReceiver } from '../system/receiver.ts'
import { type DestinationSettings, type Wiring, wire } from '../system/wiring.ts'

const SECRET = 'a shared secret, é ✓'

let service: InProcessService
let receiver: Receiver

before(async () => {
  service = await startInProcess()
  receiver = await startReceiver()
})

after(async () => {
  await service[Symbol.asyncDispose]()
  await receiver.close()
})

const webhook = (settings: Partial<DestinationSettings> = {}): Promise<Wiring> => wire(service, { urls: [receiver.url], ...settings })

async function arrivalOf(messageId: string, count = 1): Promise<Arrival> {
  await receiver.until(() => (receiver.byMessageId.get(messageId)?.length ?? 0) >= count)
  return receiver.byMessageId.get(messageId)?.[count - 1] as Arrival
}

/** Three messages that are sent as one batch. */
async function batchOf(wiring: Wiring): Promise<Arrival> {
  const ids = [1, 2, 3].map((number) => `${wiring.sourceId}-${number}`)
  await wiring.send(ids.map((messageId) => ({ type: 'track', messageId, userId: 'u-1', event: 'é ✓', properties: { messageId } })))
  const arrival = await arrivalOf(ids[0] as string)
  assert.deepEqual(
    arrival.messages.map(({ messageId }) => messageId),
    ids,
  )
  return arrival
}

async function refusalOf(settings: object): Promise<{ status: number; field: string | undefined }> {
  const error = await wire(service, { urls: [receiver.url], ...settings }).then(
    () => assert.fail(`taken: ${JSON.stringify(settings)}`),
    (error: Error) => error.message,
  )
  const [, status, body] = /: (\d+) (\{.*)$/s.exec(error) as RegExpExecArray
  return { status: Number(status), field: (JSON.parse(body as string) as { field?: string }).field }
}

describe('Webhook destination settings', () => {
  test('webhook URLs: a list of URLs, required, 1 to 5 entries', async () => {
    const urls = ['one', 'two', 'three', 'four', 'five'].map((path) => `${receiver.url}${path}`)
    for (const count of [1, 5]) {
      const wiring = await webhook({ urls: urls.slice(0, count) })
      const id = await wiring.track()
      assert.equal((await wiring.settled(id)).state, 'delivered')
      assert.deepEqual(
        receiver.byMessageId
          .get(id)
          ?.map(({ path }) => path)
          .sort(),
        ['/one', '/two', '/three', '/four', '/five'].slice(0, count).sort(),
      )
    }
    for (const [refused, field] of [
      [undefined, 'urls'],
      [[], 'urls'],
      [[...urls, `${receiver.url}six`], 'urls'],
      [['ftp://receiver.example/'], 'urls[0]'],
      [[receiver.url, '/path'], 'urls[1]'],
      ['https://receiver.example/', 'urls'],
    ] as const) {
      assert.deepEqual(await refusalOf({ urls: refused }), { status: 400, field })
    }
  })

  test('headers: name/value pairs, added to every outbound request', async () => {
    const headers = { Authorization: 'Bearer of-the-customer', 'X-Tenant': 'a b', 'x-empty': '' }
    const wiring = await webhook({ headers })
    const failing = receiver.arrivals.length
    receiver.answer = ({ number }) => (number <= failing + 1 ? { status: 500 } : undefined)
    const id = await wiring.track()
    await wiring.attempted(id, 1)
    await service.later(5_000)
    const { id: deliveryId } = await wiring.settled(id)
    await service.api(`/deliveries/${deliveryId}/replay`, { method: 'POST' })
    await arrivalOf(id, 3)
    await service.api('/deletions', { method: 'POST', body: { userIds: ['u-1'], sourceIds: [wiring.sourceId] } })
    await service.api(`/destinations/${wiring.destinationId}/test`, { method: 'POST' })
    await receiver.until(() => receiver.arrivals.length === failing + 5)
    for (const arrival of receiver.arrivals.slice(failing)) {
      assert.equal(arrival.headers['authorization'], 'Bearer of-the-customer')
      assert.equal(arrival.headers['x-tenant'], 'a b')
      assert.equal(arrival.headers['x-empty'], '')
    }
  })

  test('headers: those that the service or the connection sets, and invalid ones, are refused', async () => {
    const names = [
      'Host',
      'content-length',
      'Content-Type',
      'User-Agent',
      'X-Signature',
      'Connection',
      'Transfer-Encoding',
      'TE',
      'Upgrade',
    ]
    for (const name of [
      ...names,
      'Keep-Alive',
      'Proxy-Authorization',
      'Trailer',
      'webhook-id',
      'Webhook-Signature',
      'with space',
      '',
      'é',
    ]) {
      assert.equal((await refusalOf({ headers: { [name]: 'x' } })).status, 400, name)
    }
    for (const value of ['two\r\nlines', 'é', '\0']) assert.equal((await refusalOf({ headers: { 'X-A': value } })).status, 400)
  })

  test('sharedSecret: optional; requests are signed while it is set', async () => {
    const wiring = await webhook()
    assert.equal((await arrivalOf(await wiring.track())).headers['x-signature'], undefined)
    await wiring.change({ sharedSecret: SECRET })
    const { bytes, headers } = await arrivalOf(await wiring.track())
    assert.ok(verifySignature(bytes, headers['x-signature'], SECRET))
    await wiring.change({ sharedSecret: null })
    assert.equal((await arrivalOf(await wiring.track())).headers['x-signature'], undefined)
  })

  test('sharedSecret and signingSecrets are write-only: answers only show whether they are set', async () => {
    const signingSecrets = [generateSecret(), generateSecret()]
    const { id } = await service.api<{ id: string }>('/destinations', {
      method: 'POST',
      body: { name: 'secretive', urls: [receiver.url], sharedSecret: SECRET, signingSecrets },
    })
    const answers = [
      await service.api<object>(`/destinations/${id}`),
      await service.api<object>(`/destinations/${id}`, { method: 'PATCH', body: { name: 'renamed' } }),
      await service.api<object>('/destinations?limit=1000'),
    ]
    for (const answer of answers) {
      const text = JSON.stringify(answer)
      for (const secret of [SECRET, ...signingSecrets]) assert.ok(!text.includes(secret) && !text.includes(secret.slice(6)))
    }
    const { hasSharedSecret, hasSigningSecrets } = answers[0] as { hasSharedSecret: boolean; hasSigningSecrets: boolean }
    assert.deepEqual({ hasSharedSecret, hasSigningSecrets }, { hasSharedSecret: true, hasSigningSecrets: true })
  })

  test('a destination is attached to one or more sources, and gets messages of no other source', async () => {
    const [first, second, other] = [await webhook(), await wire(service), await wire(service)]
    await first.change({ sourceIds: [first.sourceId, second.sourceId] })
    const strange = await other.track()
    const ids = [await first.track(), await second.track()]
    for (const id of ids) await arrivalOf(id)
    const { deliveries, skips } = await other.message(strange)
    assert.deepEqual([deliveries, skips.map(({ reason }) => reason)], [[], ['no_destination']])
    assert.ok(!receiver.byMessageId.has(strange))
  })
})

describe('Receiver endpoint', () => {
  test('method and path: POST to the configured URL, with any path and query', async () => {
    const wiring = await webhook({ urls: [`${receiver.url}hooks/é?token=a%20b&x=1`] })
    const { method, path } = await arrivalOf(await wiring.track())
    assert.deepEqual({ method, path }, { method: 'POST', path: '/hooks/%C3%A9?token=a%20b&x=1' })
  })

  test('request headers: User-Agent, Content-Type and X-Attempt, and no others by default', async () => {
    const { headers, bytes } = await arrivalOf(await (await webhook()).track())
    assert.deepEqual(headers, {
      host: new URL(receiver.url).host,
      connection: 'keep-alive',
      'user-agent': 'Switchyard/1.0',
      'content-type': 'application/json',
      'content-length': String(bytes.length),
      'x-attempt': '1',
    })
  })

  test('request headers: X-Signature only when sharedSecret is set, plus the headers configured in the destination', async () => {
    const { headers, bytes } = await arrivalOf(await (await webhook({ sharedSecret: SECRET, headers: { 'X-Mine': 'yes' } })).track())
    assert.deepEqual(headers, {
      host: new URL(receiver.url).host,
      connection: 'keep-alive',
      'user-agent': 'Switchyard/1.0',
      'content-type': 'application/json',
      'content-length': String(bytes.length),
      'x-mine': 'yes',
      'x-attempt': '1',
      'x-signature': createHmac('sha1', SECRET).update(bytes).digest('hex'),
    })
  })

  test('X-Attempt counts the attempts at a message; X-Replay: true marks a replay', async () => {
    const wiring = await webhook()
    const before = receiver.arrivals.length
    receiver.answer = ({ number }) => (number <= before + 2 ? { status: 503 } : undefined)
    const id = await wiring.track()
    await wiring.attempted(id, 1)
    await service.later(5_000)
    await wiring.attempted(id, 2)
    await service.later(10_000)
    const { id: deliveryId } = await wiring.settled(id)
    await service.api(`/deliveries/${deliveryId}/replay`, { method: 'POST' })
    await arrivalOf(id, 4)
    assert.deepEqual(
      receiver.byMessageId.get(id)?.map(({ headers }) => [headers['x-attempt'], headers['x-replay']]),
      [
        ['1', undefined],
        ['2', undefined],
        ['3', undefined],
        ['1', 'true'],
      ],
    )
  })

  test('request body: one JSON message, or an array of messages for batch delivery', async () => {
    const single = await arrivalOf(await (await webhook()).track())
    assert.deepEqual([single.isBatch, single.messages.length], [false, 1])
    const batch = await batchOf(await webhook({ batch: { size: 3 } }))
    assert.deepEqual([batch.isBatch, batch.messages.length], [true, 3])
    for (const { bytes } of [single, batch]) assert.equal(bytes.toString(), JSON.stringify(JSON.parse(bytes.toString())))
  })

  test('expected response: any 2xx is success', async () => {
    for (const status of [200, 201, 202, 204, 226, 299]) {
      receiver.answer = () => ({ status })
      const wiring = await webhook()
      const { state, attempts } = await wiring.settled(await wiring.track())
      assert.deepEqual([state, attempts.map((attempt) => attempt.status)], ['delivered', [status]])
    }
    receiver.answer = () => undefined
  })

  test('the API shows the request of a delivery as it was sent', async () => {
    const wiring = await webhook({ sharedSecret: SECRET, signingSecrets: [generateSecret()], headers: { 'X-Mine': 'yes' } })
    const id = await wiring.track({ properties: { note: 'é ✓' } })
    const { request } = await wiring.settled(id)
    const { headers, bytes } = await arrivalOf(id)
    assert.equal(request?.body, bytes.toString())
    const shown = Object.fromEntries(Object.entries(request?.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]))
    const { host: _, connection: __, 'content-length': ___, ...sent } = headers
    assert.deepEqual(shown, sent)
  })
})

describe('Request signing for webhook receivers', () => {
  test('when sharedSecret is configured, each request carries X-Signature', async () => {
    const wiring = await webhook({ sharedSecret: SECRET })
    const before = receiver.arrivals.length
    receiver.answer = ({ number }) => (number === before + 1 ? { status: 500 } : undefined)
    const id = await wiring.track()
    await wiring.attempted(id, 1)
    await service.later(5_000)
    const { id: deliveryId } = await wiring.settled(id)
    await service.api(`/deliveries/${deliveryId}/replay`, { method: 'POST' })
    await arrivalOf(id, 3)
    await service.api('/deletions', { method: 'POST', body: { userIds: ['u-1'], sourceIds: [wiring.sourceId] } })
    await service.api(`/destinations/${wiring.destinationId}/test`, { method: 'POST' })
    await receiver.until(() => receiver.arrivals.length === before + 5)
    const arrivals = receiver.arrivals.slice(before)
    assert.ok(arrivals.some(({ messages }) => messages[0]?.type === 'delete'))
    for (const { headers, bytes } of arrivals) assert.ok(verifySignature(bytes, headers['x-signature'], SECRET))
  })

  test('the value is the lowercase hexadecimal HMAC-SHA1 of the UTF-8 JSON-stringified body, keyed with sharedSecret', async () => {
    const { headers, bytes } = await arrivalOf(await (await webhook({ sharedSecret: SECRET })).track({ event: 'é ✓ 😀' }))
    assert.match(headers['x-signature'] as string, /^[0-9a-f]{40}$/)
    const ofBytes = createHmac('sha1', SECRET).update(bytes).digest('hex')
    const ofStringified = createHmac('sha1', SECRET)
      .update(JSON.stringify(JSON.parse(bytes.toString())), 'utf8')
      .digest('hex')
    assert.deepEqual([headers['x-signature'], headers['x-signature']], [ofBytes, ofStringified])
  })

  test('for a batch, the digest is computed over the JSON-stringified first message only', async () => {
    const arrival = await batchOf(await webhook({ sharedSecret: SECRET, batch: { size: 3 } }))
    const first = JSON.stringify(arrival.messages[0])
    assert.equal(arrival.headers['x-signature'], createHmac('sha1', SECRET).update(first).digest('hex'))
    const given = { headers: arrival.headers, body: arrival.bytes }
    const verified = verifyWebhook(given, { sharedSecret: SECRET, allowUnprovenMessages: true })
    assert.ok(verified.ok)
    assert.deepEqual([verified.messages.length, verified.coverage], [3, 'first_message'])
    const refused = verifyWebhook(given, { sharedSecret: SECRET })
    assert.deepEqual([refused.ok, 'code' in refused && refused.code], [false, 'batch_unproven'])
  })

  test('the receiver compares X-Signature with its own digest, which matches only with the right secret', async () => {
    const { headers, bytes: body } = await arrivalOf(await (await webhook({ sharedSecret: SECRET })).track())
    const verified = verifyWebhook({ headers, body }, { sharedSecret: SECRET })
    assert.ok(verified.ok)
    assert.deepEqual([verified.coverage, verified.attempt, verified.replay], ['body', 1, false])
    const refused = verifyWebhook({ headers, body }, { sharedSecret: 'another' })
    assert.deepEqual([refused.ok, 'code' in refused && refused.code], [false, 'signature_invalid'])
  })

  test('when no sharedSecret is configured, no X-Signature header is sent', async () => {
    assert.ok(!('x-signature' in (await arrivalOf(await (await webhook()).track())).headers))
    assert.ok(!('x-signature' in (await batchOf(await webhook({ batch: { size: 3 } }))).headers))
  })
})

describe('Standard Webhooks', () => {
  const secrets = [generateSecret(), generateSecret()] as const

  test('one signing secret: webhook-id, webhook-timestamp and webhook-signature over id.timestamp.body', async () => {
    const before = Math.floor(Date.now() / 1_000)
    const wiring = await webhook({ signingSecrets: [secrets[0]] })
    const id = await wiring.track()
    const { headers, bytes: body } = await arrivalOf(id)
    assert.match(headers['webhook-signature'] as string, /^v1,[A-Za-z0-9+/]{43}=$/)
    const verified = verifyWebhook({ headers, body }, { signingSecrets: secrets[0], toleranceSeconds: 600 })
    assert.ok(verified.ok)
    assert.equal(verified.coverage, 'body')
    const timestamp = Number(headers['webhook-timestamp'])
    assert.ok(timestamp >= before, `${timestamp} is before ${before}`)
    assert.ok(!verifyWebhook({ headers, body }, { signingSecrets: secrets[1], toleranceSeconds: 600 }).ok)
    assert.ok(!('x-signature' in headers))
  })

  test('two signing secrets, for rotation: either verifies', async () => {
    const { headers, bytes: body } = await arrivalOf(await (await webhook({ signingSecrets: [...secrets] })).track())
    assert.equal(headers['webhook-signature']?.split(' ').length, 2)
    for (const secret of secrets) assert.ok(verifyWebhook({ headers, body }, { signingSecrets: secret, toleranceSeconds: 600 }).ok)
  })

  test('a batch is signed as a whole, while X-Signature covers only its first message', async () => {
    const { headers, bytes: body } = await batchOf(
      await webhook({ sharedSecret: SECRET, signingSecrets: [...secrets], batch: { size: 3 } }),
    )
    const options = { sharedSecret: SECRET, signingSecrets: secrets, toleranceSeconds: 600 }
    const verified = verifyWebhook({ headers, body }, options)
    assert.ok(verified.ok)
    assert.equal(verified.coverage, 'body')
    const forged = Buffer.from(body.toString().replaceAll('-3"', '-4"'))
    assert.ok(verifySignature(forged, headers['x-signature'], SECRET), 'X-Signature covers only the first message')
    assert.ok(!verifyWebhook({ headers, body: forged }, { sharedSecret: SECRET }).ok)
    assert.ok(!verifyWebhook({ headers, body: forged }, options).ok)
  })

  test('webhook-id is the same on every attempt, so that receivers can recognise repeated messages', async () => {
    const wiring = await webhook({ signingSecrets: [secrets[0]] })
    const before = receiver.arrivals.length
    receiver.answer = ({ number }) => (number === before + 1 ? { status: 500 } : undefined)
    const id = await wiring.track()
    await wiring.attempted(id, 1)
    await service.later(5_000)
    const [first, second] = [await arrivalOf(id, 1), await arrivalOf(id, 2)]
    assert.equal(second.headers['webhook-id'], first.headers['webhook-id'])
    assert.notEqual(second.headers['webhook-signature'], first.headers['webhook-signature'], 'the time is another')
  })

  test('more than two signing secrets, and invalid ones, are refused', async () => {
    for (const signingSecrets of [[...secrets, generateSecret()], ['not-a-secret'], ['whsec_'], ['whsec_%%%']]) {
      assert.equal((await refusalOf({ signingSecrets })).status, 400)
    }
  })
})
