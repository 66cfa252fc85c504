import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { generateSecret, signBody, signMessage, signStandardWebhook, verifyWebhook } from '@switchyard/webhook'
import { parseShare } from './listen.ts'
import { type Arrival, type ReceiverOptions, startReceiver } from './receiver.ts'

async function receiving(t: TestContext, options: Partial<ReceiverOptions> = {}) {
  const arrivals: Arrival[] = []
  const receiver = await startReceiver(
    {
      host: '127.0.0.1',
      port: 0,
      secrets: null,
      strict: false,
      misbehaviour: null,
      status: 500,
      share: 1,
      delayMs: 0,
      ...options,
      onArrival(arrival) {
        arrivals.push(arrival)
        options.onArrival?.(arrival)
      },
    },
    verifyWebhook,
  )
  t.after(() => receiver.close())
  const post = (body: unknown, headers: Record<string, string> = {}, signal?: AbortSignal): Promise<Response> =>
    fetch(receiver.url, {
      method: 'POST',
      body: typeof body === 'string' ? body : JSON.stringify(body),
      headers,
      ...(signal ? { signal } : {}),
    })
  return { arrivals, post, last: () => arrivals.at(-1) as Arrival }
}

const MESSAGE = { type: 'track', event: 'Order Completed', userId: 'u-1', messageId: 'm-1' }

test('a message is reported with its type, event, user, id, attempt and whether it is a replay', async (t) => {
  const { post, last } = await receiving(t)
  assert.equal((await post(MESSAGE, { 'x-attempt': '3', 'x-replay': 'true' })).status, 200)
  const { messages, attempt, replay, batch, signature } = last()
  const [message] = messages
  assert.deepEqual([message?.type, message?.event, message?.userId, message?.messageId], ['track', 'Order Completed', 'u-1', 'm-1'])
  assert.deepEqual([attempt, replay, batch, signature], [3, true, false, { verdict: 'unchecked', carried: false }])
})

test('X-Signature is valid, missing or invalid; for a batch it covers the first message', async (t) => {
  const { post, last } = await receiving(t, { secrets: { sharedSecret: 'shared' } })
  const body = JSON.stringify(MESSAGE)
  await post(body, { 'x-signature': signBody(body, 'shared') })
  assert.deepEqual(last().signature, { verdict: 'good', coverage: 'body' })
  await post(body)
  assert.equal(last().signature.verdict, 'missing')
  await post(body, { 'x-signature': signBody(body, 'another') })
  assert.equal(last().signature.verdict, 'wrong')
  const batch = [MESSAGE, { ...MESSAGE, messageId: 'm-2' }]
  await post(batch, { 'x-signature': signMessage(JSON.stringify(batch[0]), 'shared') })
  assert.deepEqual(last().signature, { verdict: 'good', coverage: 'first_message' })
  assert.deepEqual([last().batch, last().messages.map(({ messageId }) => messageId)], [true, ['m-1', 'm-2']])
})

test('a Standard Webhooks signature may match any of the secrets, and an old timestamp is invalid', async (t) => {
  const [old, young] = [generateSecret(), generateSecret()]
  const { post, last } = await receiving(t, { secrets: { signingSecrets: [old, young] } })
  const body = JSON.stringify([MESSAGE])
  const now = Math.floor(Date.now() / 1_000)
  const signed = (timestampSeconds: number, secret: string) =>
    ({ ...signStandardWebhook({ id: 'msg_1', timestampSeconds, body }, secret) }) as Record<string, string>
  await post(body, signed(now, young))
  assert.deepEqual(last().signature, { verdict: 'good', coverage: 'body' })
  await post(body, signed(now - 3_600, young))
  assert.deepEqual(last().signature, {
    verdict: 'wrong',
    code: 'timestamp_outside_tolerance',
    message: (last().signature as { message: string }).message,
  })
  await post(body, signed(now, generateSecret()))
  assert.equal(last().signature.verdict, 'wrong')
})

test('a strict receiver answers 401 to requests without a valid signature, and 200 to others', async (t) => {
  const { post } = await receiving(t, { secrets: { sharedSecret: 'shared' }, strict: true })
  const body = JSON.stringify(MESSAGE)
  assert.equal((await post(body)).status, 401)
  assert.equal((await post(body, { 'x-signature': signBody(body, 'shared') })).status, 200)
})

test('a message is a duplicate if it arrives again after a success, but not if it is retried after a failure', async (t) => {
  const answers = [0, 1, 1]
  const { post, arrivals } = await receiving(t, {
    misbehaviour: 'status',
    status: 503,
    share: 0.5,
    random: () => answers.shift() as number,
  })
  const statuses = [(await post(MESSAGE)).status, (await post(MESSAGE)).status, (await post(MESSAGE)).status]
  assert.deepEqual(statuses, [503, 200, 200])
  assert.deepEqual(
    arrivals.map(({ messages }) => messages[0]?.duplicate),
    [false, false, true],
  )
})

test('it can reset, hang and drip', async (t) => {
  const reset = await receiving(t, { misbehaviour: 'reset' })
  await assert.rejects(reset.post(MESSAGE))
  const [whileHanging, whileDripping] = [new AbortController(), new AbortController()]
  const hang = await receiving(t, { misbehaviour: 'hang', onArrival: () => whileHanging.abort() })
  await assert.rejects(hang.post(MESSAGE, {}, whileHanging.signal), { name: 'AbortError' })
  assert.deepEqual([hang.last().status, hang.last().misbehaviour], [null, 'hang'])
  const drip = await receiving(t, { misbehaviour: 'drip' })
  const response = await drip.post(MESSAGE, {}, whileDripping.signal)
  assert.equal(response.status, 200)
  setTimeout(() => whileDripping.abort(), 200)
  await assert.rejects(response.text())
})

test('a request that is not a webhook is reported and does not stop the receiver', async (t) => {
  const { post, last, arrivals } = await receiving(t, { secrets: { sharedSecret: 'shared' } })
  await post('not json', { 'x-signature': signBody('not json', 'shared') })
  assert.deepEqual([last().messages, last().signature.verdict], [[], 'unreadable'])
  await post('[1,null,[],{"type":5,"messageId":{}}]')
  assert.deepEqual(
    last().messages.map(({ type, messageId }) => [type, messageId]),
    [['?', null]],
  )
  assert.equal(arrivals.length, 2)
})

test('a share is a percentage or a fraction', () => {
  assert.deepEqual([parseShare('30%'), parseShare('0.3'), parseShare('100%'), parseShare('0')], [0.3, 0.3, 1, 0])
  for (const text of ['30', '101%', '-1%', '', '%', 'x', '1.5']) assert.throws(() => parseShare(text), { name: 'CommandProblem' })
})
