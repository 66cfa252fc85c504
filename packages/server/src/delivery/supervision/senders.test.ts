import assert from 'node:assert/strict'
import { type ServerResponse } from 'node:http'
import test from 'node:test'
import { until } from '../../store/conformance/fixtures.ts'
import { SegmentBody, writeStoredBody } from '../../store/port/stored-messages.ts'
import { contentOf, destinationOf, hangingReceiver, OPTIONS, type Received, reasonOf, send, startReceiver } from '../fixtures/sent-work.ts'
import type { Outcome } from '../link/outcome.ts'
import type { Unsendable, Unsent } from '../link/protocol.ts'
import { dropLoaded } from '../link/work.ts'
import { openInlineSender, openSenderThreads } from '../open-senders.ts'

const FAILING = new URL('../fixtures/failing-sender-thread.ts', import.meta.url)

test('a sender thread sends the same bytes as a sender in this thread', async (t) => {
  const { received, url } = await startReceiver(t)
  const threads = openSenderThreads(2, OPTIONS)
  const inline = openInlineSender(OPTIONS)
  t.after(() => Promise.all([threads.close(), inline.close()]))
  for (const senders of [threads, inline]) {
    const content = contentOf(4)
    for (const indexes of [[0], [1, 2], [3]]) assert.equal(await reasonOf(send(senders, destinationOf([url]), content, indexes)), null)
  }
  const sent = received.map(({ headers, body, path }) => [path, body, { ...headers, host: '' }])
  assert.equal(sent.length, 6)
  assert.deepEqual(sent.slice(0, 3), sent.slice(3))
  const { headers, body } = received[0] as Received
  assert.deepEqual(
    [headers['x-own'], headers['x-attempt'], headers['x-replay'], headers['webhook-id'], JSON.parse(body).messageId],
    ['yes', '2', 'true', '4711-0', 'm0'],
  )
  assert.ok(headers['x-signature'] && headers['webhook-signature'] && headers['traceparent'])
})

test('a destination keeps its sender, which reuses the connection', async (t) => {
  const { received, url } = await startReceiver(t)
  const senders = openSenderThreads(3, OPTIONS)
  t.after(() => senders.close())
  const [one, two] = [destinationOf([`${url}/one`]), destinationOf([`${url}/two`])]
  const content = contentOf(10)
  for (let index = 0; index < 10; index++) await send(senders, index % 2 === 0 ? one : two, contentOf(10), [index])
  const ports = (path: string): number => new Set(received.filter((each) => each.path === path).map(({ from }) => from)).size
  assert.deepEqual([ports('/one'), ports('/two'), content.loaded], [1, 1, null])
  assert.equal(new Set(received.map(({ from }) => from)).size, 2)
})

test('changed settings are used from the next request on', async (t) => {
  const { received, url } = await startReceiver(t)
  const senders = openSenderThreads(1, OPTIONS)
  t.after(() => senders.close())
  const before = destinationOf([url])
  await send(senders, before, contentOf(1), [0])
  await send(senders, { ...before, headers: { 'X-Own': 'changed' } }, contentOf(1), [0])
  senders.of(before).forget(before.id)
  await send(senders, { ...before, headers: { 'X-Own': 'created again' } }, contentOf(1), [0])
  assert.deepEqual(
    received.map(({ headers }) => headers['x-own']),
    ['yes', 'changed', 'created again'],
  )
})

test('a message that was purged from the store, or whose bytes are damaged, is reported and not sent', async (t) => {
  const { received, url } = await startReceiver(t)
  const senders = openSenderThreads(1, OPTIONS)
  t.after(() => senders.close())
  const destination = destinationOf([url])
  const { about } = contentOf(1).body
  const purged = { ...contentOf(2), body: new SegmentBody(writeStoredBody({ batch: [null, { type: 'track', event: 'e' }] }), about) }
  const damaged = { ...contentOf(1), body: new SegmentBody(Buffer.from('{"batch":['), about) }
  assert.equal(await reasonOf(send(senders, destination, purged, [0])), 'deleted')
  assert.equal(await reasonOf(send(senders, destination, purged, [1])), null)
  assert.equal(await reasonOf(send(senders, destination, damaged, [0])), 'unreadable')
  assert.equal(await reasonOf(send(senders, destination, contentOf(2, [0, 1], [1]), [1])), 'deleted')
  assert.equal(received.length, 1)
  // The other messages of a batch are sent.
  const left: (readonly Unsent[])[] = []
  const work = { unsent: (unsent: readonly Unsent[]): void => void left.push(unsent) }
  assert.equal(await reasonOf(send(senders, destination, contentOf(2, [0, 1], [1]), [0, 1], work)), null)
  assert.deepEqual(left, [[{ position: 1, why: 'deleted' }]])
  assert.equal(received.length, 2)
})

test('dropped messages are gone from the sender, and the others of the load can still be sent', async (t) => {
  const { received, url } = await startReceiver(t)
  const senders = openSenderThreads(1, OPTIONS)
  t.after(() => senders.close())
  const destination = destinationOf([url])
  const content = contentOf(4)
  const bugs: string[] = []
  const bug = (message: string): void => void bugs.push(message)
  assert.equal(await reasonOf(send(senders, destination, content, [0])), null)
  dropLoaded(content, [1])
  assert.equal(await reasonOf(send(senders, destination, content, [1], { bug })), 'deleted')
  assert.equal(await reasonOf(send(senders, destination, content, [2])), null)
  dropLoaded(content)
  // A lane that asks for it now has a bug: that is reported, and nothing is sent.
  assert.equal(await reasonOf(send(senders, destination, content, [3], { bug })), 'internal_error')
  assert.deepEqual([received.length, bugs], [2, ['the sender does not have the message']])
})

/** Sends again as long as the first URL's outcome is that the sender was lost, as a lane would. */
function retried(attempt: () => Promise<Outcome[] | Unsendable>): Promise<Outcome[]> {
  return until(
    async () => (await attempt()) as Outcome[],
    ([first]) => first?.reason !== 'sender_lost',
    'the sender is replaced',
  )
}

function untilWaiting(requests: readonly unknown[], count: number): Promise<number> {
  return until(
    async () => requests.length,
    (length) => length >= count,
    `${count} requests wait for their answers`,
  )
}

for (const path of ['crash', 'throw']) {
  test(`a sender that ends (${path}) is replaced: its requests in flight end as lost, and other senders continue`, async (t) => {
    const { received, url } = await startReceiver(t)
    const hanging = await hangingReceiver(t)
    const lost: Error[] = []
    const onLost = (error: Error): void => void lost.push(error)
    const senders = openSenderThreads(2, OPTIONS, { onLost, program: FAILING })
    t.after(() => senders.close())
    const [failing, other] = [destinationOf([`${url}/${path}`]), destinationOf([`${url}/other`])]
    // In flight at the same sender, and partly answered: the URL that answered keeps its outcome.
    const beside = destinationOf([`${url}/beside`, hanging.url])
    const first = send(senders, failing, { ...contentOf(1), indexes: [] }, [])
    assert.equal(await reasonOf(first), 'sender_lost')
    assert.equal(await reasonOf(send(senders, other, contentOf(1), [0])), null)
    assert.equal(lost.length, 1)
    // Until the new thread may be opened, requests end as lost too; they are retried later.
    let [isAnswered, onAnswer] = [Promise.resolve(), (): void => undefined]
    const inFlight = retried(() => {
      isAnswered = new Promise((resolve) => {
        onAnswer = resolve
      })
      return send(senders, beside, contentOf(1), [0], {}, () => onAnswer())
    })
    await hanging.arrived
    await isAnswered
    assert.equal(await reasonOf(send(senders, failing, contentOf(1), [0])), 'sender_lost')
    assert.deepEqual(
      (await inFlight).map(({ reason, verdict }) => [reason, verdict]),
      [
        [null, 'success'],
        ['sender_lost', 'temporary'],
      ],
    )
    // Messages that the lost thread had are given to the new one.
    const again = { ...failing, urls: [`${url}/repaired`] }
    const content = contentOf(2)
    await retried(() => send(senders, again, content, [0]))
    const { loaded } = content
    await send(senders, failing, contentOf(1), [0])
    await retried(() => send(senders, again, content, [1]))
    assert.notEqual(content.loaded?.by, loaded?.by)
    assert.equal(received.filter(({ path: sentTo }) => sentTo === '/repaired').length, 2)
    assert.ok(received.every(({ path: sentTo }) => sentTo !== `/${path}`))
  })
}

test('a sender that no longer responds is replaced', async (t) => {
  const { received, url } = await startReceiver(t)
  const lost: string[] = []
  const onLost = ({ message }: Error): void => void lost.push(message)
  // A thread that has work counts as hanging after five silent checks. On a loaded machine it may take seconds to start.
  const senders = openSenderThreads(1, OPTIONS, { onLost, program: FAILING, checkMs: 1_000 })
  t.after(() => senders.close())
  const hanging = destinationOf([`${url}/hang`])
  assert.equal(await reasonOf(send(senders, hanging, contentOf(1), [0])), 'sender_lost')
  assert.deepEqual(lost, ['switchyard-sender-1 has work but does not respond'])
  await retried(() => send(senders, { ...hanging, urls: [`${url}/repaired`] }, contentOf(1), [0]))
  assert.deepEqual(
    received.map(({ path }) => path),
    ['/repaired'],
  )
})

test('work above the limit waits in the sender, which starts it in order when other work has ended', async (t) => {
  const waiting: ServerResponse[] = []
  const { received, url } = await startReceiver(t, (_request, response) => void waiting.push(response))
  const senders = openSenderThreads(1, OPTIONS)
  t.after(() => senders.close())
  const destination = destinationOf([url])
  const content = contentOf(6)
  const sent = Array.from({ length: 6 }, (_, index) => send(senders, destination, content, [index], { limit: 2 }))
  const tested = send(senders, destination, contentOf(1), [0], { limit: Number.POSITIVE_INFINITY })
  const seen: number[] = []
  for (let nth = 0; nth < 7; nth++) {
    await untilWaiting(waiting, 1)
    seen.push(waiting.length)
    waiting.shift()?.end()
  }
  await Promise.all([...sent, tested])
  // Two, and the test request, which no limit concerns.
  assert.ok(Math.max(...seen) <= 3, String(seen))
  const ids = received.map(({ body }) => (JSON.parse(body) as { messageId: string }).messageId)
  // Over two connections, neighbours may arrive in either order.
  assert.deepEqual([ids.slice(3, 5).includes('m2'), ids.slice(3).sort()], [true, ['m2', 'm3', 'm4', 'm5']])
})

test('after a temporary failure, waiting work is started only when the lane says so, and can be recalled', async (t) => {
  const answers = [503, 200, 503, 400, 200]
  const { received, url } = await startReceiver(t, (_request, response) => void response.writeHead(answers.shift() ?? 200).end())
  const senders = openSenderThreads(1, OPTIONS)
  t.after(() => senders.close())
  const destination = destinationOf([url])
  const content = contentOf(4)
  const one = { limit: 1 }
  const [first, second, third, fourth] = [0, 1, 2, 3].map((index) => send(senders, destination, content, [index], one))
  assert.equal(await reasonOf(first as NonNullable<typeof first>), 'http_503')
  // The sender would have started the second one before it answers this.
  assert.equal(await reasonOf(send(senders, destinationOf([url]), contentOf(1), [0])), null)
  assert.equal(received.length, 2)
  senders.of(destination).tell(destination.id, 'resume')
  assert.equal(await reasonOf(second as NonNullable<typeof second>), 'http_503')
  senders.of(destination).tell(destination.id, 'recall')
  assert.equal(await reasonOf(third as NonNullable<typeof third>), 'aborted')
  assert.equal(await reasonOf(fourth as NonNullable<typeof fourth>), 'aborted')
  assert.equal(received.length, 3)
  // Recalled messages were dropped, so they are loaded again, and a permanent failure stops nothing.
  const again = contentOf(4)
  const [fifth, sixth] = [2, 3].map((index) => send(senders, destination, again, [index], one))
  assert.equal(await reasonOf(fifth as NonNullable<typeof fifth>), 'http_400')
  assert.equal(await reasonOf(sixth as NonNullable<typeof sixth>), null)
})

test('settings that change recall the work that waits under the old ones', async (t) => {
  const waiting: ServerResponse[] = []
  const { url } = await startReceiver(t, (_request, response) => void waiting.push(response))
  const senders = openSenderThreads(1, OPTIONS)
  t.after(() => senders.close())
  const before = destinationOf([url])
  const content = contentOf(2)
  const [first, second] = [0, 1].map((index) => send(senders, before, content, [index], { limit: 1 }))
  await untilWaiting(waiting, 1)
  const third = send(senders, { ...before, headers: {} }, contentOf(1), [0], { limit: 1 })
  assert.equal(await reasonOf(second as NonNullable<typeof second>), 'aborted')
  await untilWaiting(waiting, 2)
  for (const response of waiting) response.end()
  assert.equal(await reasonOf(first as NonNullable<typeof first>), null)
  assert.equal(await reasonOf(third), null)
})

test('when senders are closed, requests in flight end as aborted, and later ones do too', async (t) => {
  const hanging = await hangingReceiver(t)
  const senders = openSenderThreads(1, OPTIONS)
  const destination = destinationOf([hanging.url])
  const sent = send(senders, destination, contentOf(1), [0])
  await hanging.arrived
  await senders.close()
  assert.equal(await reasonOf(sent), 'aborted')
  assert.equal(await reasonOf(send(senders, destination, contentOf(1), [0])), 'aborted')
})

test('close() resolves even if a sender fails while it is being closed', async (t) => {
  const hanging = await hangingReceiver(t)
  const senders = openSenderThreads(1, OPTIONS, { program: FAILING })
  const sent = send(senders, destinationOf([`${hanging.url}/throw-at-the-end`]), contentOf(1), [0])
  await hanging.arrived
  await senders.close()
  assert.equal(await reasonOf(sent), 'aborted')
})

test('while a lost sender is not opened again, work waits, so lanes do not use up the attempts of their messages', async (t) => {
  const { received, url } = await startReceiver(t)
  const senders = openSenderThreads(1, OPTIONS, { program: FAILING })
  t.after(() => senders.close())
  await send(senders, destinationOf([`${url}/crash`]), contentOf(1), [0])
  const destination = destinationOf([url])
  const content = contentOf(3)
  const [first, recalled, last] = [
    send(senders, destination, content, [0]),
    send(senders, destinationOf([url], { id: 'dst_recalled' }), contentOf(1), [0]),
    send(senders, destination, content, [1]),
  ]
  senders.of(destination).tell('dst_recalled', 'recall')
  assert.equal(await reasonOf(recalled), 'aborted')
  assert.deepEqual([await reasonOf(first), await reasonOf(last), received.length], [null, null, 2])
})
