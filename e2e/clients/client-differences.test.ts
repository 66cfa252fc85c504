// The README's table of differences from the public client: both clients make the same calls, and each does what
// its column says. Rows that are about the shape of a result only are tested in packages/node/test.

import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Analytics as Theirs } from '@segment/analytics-node'
import { Analytics as Ours } from '../../packages/node/src/index.ts'
import { gate, type PlannedAnswer, type ReceivedRequest, startTrackingServer } from '../../packages/node/test/tracking-server.ts'

const readme = readFileSync(new URL('../../packages/node/README.md', import.meta.url), 'utf8')
const section = readme.split('\n## ').find((part) => part.startsWith('Different from the public client\n')) ?? ''

/** Checks that the README has the row, so that a row cannot be removed without its test. */
function row(name: string): string {
  assert.ok(section.includes(`\n| ${name} | `), `the README has no row "${name}"`)
  return name
}

const event = { userId: 'u', event: 'e' }

interface Seen {
  requests: ReceivedRequest[]
  failure: { code?: string; message?: string; reason?: { message?: string } } | undefined
}

/** Sends one message with each client to a service that gives these answers, and repeats the last one. */
async function sendOne(answers: PlannedAnswer[], settings: object = {}): Promise<{ theirs: Seen; ours: Seen }> {
  const send = async (Client: typeof Theirs): Promise<Seen> => {
    await using server = await startTrackingServer((_request, number) => answers[Math.min(number, answers.length) - 1])
    const analytics = new Client({ writeKey: 'wk', host: server.url, maxRetries: 1, flushAt: 1, ...settings })
    let failure: Seen['failure']
    analytics.on('error', (error) => {
      failure = error as Seen['failure']
    })
    await new Promise((resolve) => analytics.track(event, resolve))
    await analytics.closeAndFlush()
    return { requests: server.requests, failure }
  }
  const [theirs, ours] = await Promise.all([send(Theirs), send(Ours as unknown as typeof Theirs)])
  return { theirs, ours }
}

const statuses: [name: string, statuses: number[], theirs: string, ours: string][] = [
  ['Status 3xx', [304], 'delivered', 'failed'],
  ['Status 410 and 460', [410, 460], 'retried', 'failed'],
  ['Status 425', [425], 'failed', 'retried'],
  ['Status 511', [511], 'failed', 'retried'],
]

for (const [name, list, theirs, ours] of statuses) {
  test(row(name), async () => {
    for (const status of list) {
      const seen = await sendOne([{ status, body: status === 304 ? '' : '{}' }, {}])
      const outcome = ({ requests, failure }: Seen): string => (requests.length > 1 ? 'retried' : failure ? 'failed' : 'delivered')
      assert.deepEqual([outcome(seen.theirs), outcome(seen.ours)], [theirs, ours], String(status))
    }
  })
}

test(row('An invalid call'), async () => {
  const call = { userId: 'u' } as typeof event
  assert.throws(() => new Theirs({ writeKey: 'wk' }).track(call))
  const code = await new Promise((resolve) => new Ours({ writeKey: 'wk' }).track(call, (error) => resolve(error?.code)))
  assert.equal(code, 'event_required')
})

test(row("`on('track')` and the other calls' events"), async () => {
  for (const [Client, atTheCall] of [
    [Theirs, false],
    [Ours, true],
  ] as [typeof Theirs, boolean][]) {
    const { open, opened } = gate()
    await using server = await startTrackingServer(() => ({ after: opened }))
    const analytics = new Client({ writeKey: 'wk', host: server.url, flushAt: 1 })
    let isEmitted = false
    const emitted = new Promise<void>((resolve) =>
      analytics.on('track', () => {
        isEmitted = true
        resolve()
      }),
    )
    analytics.track(event)
    await server.arrived(1)
    assert.equal(isEmitted, atTheCall)
    open()
    await emitted
    await analytics.closeAndFlush()
  }
})

test(row('The error passed to a callback'), async () => {
  for (const [Client, expected] of [
    [Theirs, '[400] Bad Request'],
    [Ours, 'the tracking API answered [400] Bad Request'],
  ] as [typeof Theirs, string][]) {
    await using server = await startTrackingServer(() => ({ status: 400, body: '' }))
    const analytics = new Client({ writeKey: 'wk', host: server.url, flushAt: 1 })
    analytics.on('error', () => {})
    const error = await new Promise((resolve) => analytics.track(event, resolve))
    assert.equal((error as Error).message, expected)
    assert.equal(((error as { reason?: Error }).reason ?? (error as Error)).message, '[400] Bad Request')
    await analytics.closeAndFlush()
  }
})

test(row('Overlapping `flush()`'), async (t) => {
  t.mock.method(console, 'warn', () => {})
  for (const [Client, waits] of [
    [Theirs, false],
    [Ours, true],
  ] as [typeof Theirs, boolean][]) {
    const { open, opened } = gate()
    await using server = await startTrackingServer(() => ({ after: opened }))
    const analytics = new Client({ writeKey: 'wk', host: server.url })
    analytics.track(event)
    const first = analytics.flush()
    await server.arrived(1)
    let isResolved = false
    const second = analytics.flush().then(() => {
      isResolved = true
    })
    // A flush that does not wait needs only one turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(isResolved, !waits)
    open()
    await Promise.all([first, second])
    await analytics.closeAndFlush()
  }
})

test(row('No access token (OAuth)'), async () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const clientKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  await using server = await startTrackingServer()
  await using authServer = await startTrackingServer(() => ({ status: 400, body: '{"error":"invalid_client"}' }))
  const expected = {
    theirs: ['delivery_failure', '[400] Bad Request', 2],
    ours: ['oauth_failure', '[400] Bad Request {"error":"invalid_client"}', 1],
  }
  for (const [name, Client] of [
    ['theirs', Theirs],
    ['ours', Ours],
  ] as ['theirs' | 'ours', typeof Theirs][]) {
    const asked = authServer.requests.length
    const oauthSettings = { clientId: 'c', clientKey, keyId: 'k', authServer: authServer.url }
    const analytics = new Client({ writeKey: 'wk', host: server.url, flushAt: 1, maxRetries: 1, oauthSettings })
    const failed = new Promise<unknown>((resolve) => analytics.on('error', resolve))
    analytics.track(event)
    const { code, reason } = (await failed) as { code: string; reason: Error }
    assert.deepEqual([code, reason.message, authServer.requests.length - asked], expected[name])
    await analytics.closeAndFlush()
  }
  assert.equal(server.requests.length, 0)
})

test(row('An empty `integrations`'), async () => {
  const { theirs, ours } = await sendOne([{}])
  const sent = ({ requests }: Seen): unknown => requests[0]?.body.batch[0]?.integrations
  assert.deepEqual([sent(theirs), sent(ours)], [{}, undefined])
})

for (const awaited of [true, false]) {
  test(`in both clients a plugin gets earlier calls after the register event${awaited ? ' and after register() has resolved' : ''}`, async () => {
    const steps = async (Client: typeof Theirs): Promise<string[]> => {
      await using server = await startTrackingServer()
      const analytics = new Client({ writeKey: 'wk', host: server.url, flushAt: 1 })
      const seen: string[] = []
      analytics.on('register', (names) => {
        if (names.includes('p')) seen.push('register event')
      })
      const finished = new Promise((resolve) => analytics.track({ ...event, event: 'earlier' }, resolve))
      const registered = analytics.register({
        name: 'p',
        type: 'enrichment',
        version: '1',
        isLoaded: () => true,
        load: async () => void seen.push('load'),
        track: (ctx) => {
          seen.push(ctx.event.event ?? '')
          return ctx
        },
      })
      if (awaited) {
        await registered
        seen.push('registered')
      }
      const later = new Promise((resolve) => analytics.track({ ...event, event: 'later' }, resolve))
      await Promise.all([finished, later])
      await analytics.closeAndFlush()
      return seen
    }
    const expected = ['load', 'register event', ...(awaited ? ['registered'] : []), 'earlier', 'later']
    for (const client of [Theirs, Ours as unknown as typeof Theirs]) assert.deepEqual(await steps(client), expected)
  })
}

test('in both clients a bad OAuth key causes an error event, not an exception in the constructor', async () => {
  const oauthSettings = { clientId: 'c', clientKey: 'not a key', keyId: 'k', maxRetries: 1 }
  const { theirs, ours } = await sendOne([{}], { oauthSettings, maxRetries: 0 })
  for (const { requests, failure } of [theirs, ours]) assert.deepEqual([requests.length, typeof failure?.code], [0, 'string'])
})

test('both clients wait a second after Retry-After: 0 on a 429 and deliver, also with maxRetries 0', async () => {
  const { theirs, ours } = await sendOne([{ status: 429, headers: { 'Retry-After': '0' } }, {}], { maxRetries: 0 })
  for (const { requests, failure } of [theirs, ours]) {
    assert.deepEqual([requests.length, failure], [2, undefined])
    assert.ok((requests[1]?.at ?? 0) - (requests[0]?.at ?? 0) >= 990)
  }
})
