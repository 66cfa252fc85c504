import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import test, { type TestContext } from 'node:test'
import { asWebhook } from '../../destinations/fixtures/webhook.ts'
import { SegmentBody, writeStoredBody } from '../../store/port/stored-messages.ts'
import { CLASSIC_WEBHOOK, type Destination, NO_FILTER, type WebhookDestination } from '../../store/store.ts'
import type { Outcome } from '../link/outcome.ts'
import type { Unsendable, Unsent } from '../link/protocol.ts'
import type { ThreadOptions } from '../link/thread-channel.ts'
import { dropLoaded, type Sendable, type Work } from '../link/work.ts'
import { openInlineSender, openSenderThreads } from '../open-senders.ts'
import type { Senders } from './senders.ts'

const AT_MS = 1_700_000_000_000
const OPTIONS = { guard: { allowPrivate: true, allow: [] }, closeGraceMs: 0 }
const FAILING = new URL('../fixtures/failing-sender-thread.ts', import.meta.url)

interface Received {
  path: string
  headers: IncomingHttpHeaders
  body: string
  /** The port of the connection. */
  from: number
}

async function startReceiver(t: TestContext, answer = (_request: IncomingMessage, response: ServerResponse): void => void response.end()) {
  const received: Received[] = []
  // Connections are reused also on a machine so busy that seconds pass between two requests.
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (chunk: string) => {
      body += chunk
    })
    request.on('end', () => {
      const { url: path = '', headers, socket } = request
      received.push({ path, headers, body, from: socket.remotePort ?? 0 })
      answer(request, response)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

let destinations = 0
function destinationOf(urls: string[], given: Partial<WebhookDestination> = {}): WebhookDestination {
  return {
    id: `dst_${++destinations}`,
    ...CLASSIC_WEBHOOK,
    type: 'webhook',
    name: 'test',
    enabled: true,
    paused: false,
    sourceIds: [],
    urls,
    headers: { 'X-Own': 'yes' },
    sharedSecret: 'secret',
    signingSecrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
    batch: { size: 1, bytes: 500_000, lingerMs: 0 },
    timeoutMs: 60_000,
    retryWindowMs: 60_000,
    maxInFlight: 10,
    historical: true,
    filter: NO_FILTER,
    createdAtMs: AT_MS,
    ...given,
  }
}

/** A stored segment of `count` messages, of which the ones with an index in `indexes` are sent. */
function contentOf(count: number, indexes = [...Array(count).keys()], absent: number[] = []): Sendable {
  const batch = Array.from({ length: count }, (_, at) => ({ type: 'track', event: `e${at}`, userId: 'ü', messageId: `m${at}` }))
  const about = {
    sourceId: 'src',
    receivedAtMs: AT_MS,
    ip: '192.0.2.7',
    browser: true,
    trace: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: null },
  }
  return { origin: 4711, body: new SegmentBody(writeStoredBody({ batch }), about, absent), indexes, loaded: null }
}

/** Sends messages of a content in one unit. Resolves with the outcomes by URL, or with why nothing was sent. */
function send(
  senders: Senders,
  destination: Destination,
  content: Sendable,
  indexes: number[],
  given: Partial<Work> = {},
  onAnswer?: () => void,
) {
  return new Promise<Outcome[] | Unsendable>((resolve) => {
    const outcomes: Outcome[] = []
    let left = asWebhook(destination).urls.length
    senders.of(destination).start({
      destination,
      isBatch: indexes.length > 1,
      attempt: 2,
      replay: true,
      startedAtMs: AT_MS,
      keepAnswer: false,
      limit: 10,
      urls: asWebhook(destination).urls.map((_, at) => at),
      messages: indexes.map((index) => ({ content, index })),
      answered(url, outcome) {
        outcomes[url] = outcome
        onAnswer?.()
        if (--left === 0) resolve(outcomes)
      },
      unsent: ([first]) => resolve(first?.why ?? []),
      bug: () => undefined,
      ...given,
    })
  })
}

async function reasonOf(sent: Promise<Outcome[] | Unsendable>): Promise<string | null | undefined> {
  const outcomes = await sent
  if (typeof outcomes === 'string') return outcomes
  return 'reason' in outcomes ? outcomes.reason : outcomes[0]?.reason
}

/** The URL of a port on which nothing answers: the receiver accepts the request and never responds. */
async function hangingReceiver(t: TestContext) {
  let reached: () => void = () => undefined
  const arrived = new Promise<void>((resolve) => {
    reached = resolve
  })
  const { url } = await startReceiver(t, () => reached())
  return { url, arrived }
}

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

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** Sends again as long as the first URL's outcome is that the sender was lost, as a lane would. */
async function retried(attempt: () => Promise<Outcome[] | Unsendable>): Promise<Outcome[]> {
  for (;;) {
    const outcomes = (await attempt()) as Outcome[]
    if (outcomes[0]?.reason !== 'sender_lost') return outcomes
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
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
    await until(() => waiting.length > 0)
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
  await until(() => waiting.length === 1)
  const third = send(senders, { ...before, headers: {} }, contentOf(1), [0], { limit: 1 })
  assert.equal(await reasonOf(second as NonNullable<typeof second>), 'aborted')
  await until(() => waiting.length === 2)
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

for (const [where, open] of [
  ['a sender thread', (guard: ThreadOptions['guard']) => openSenderThreads(1, { ...OPTIONS, guard })],
  ['a sender in this thread', (guard: ThreadOptions['guard']) => openInlineSender({ ...OPTIONS, guard })],
] as const) {
  test(`${where} dials only allowed addresses, follows no redirect, and limits the time and the size of an answer`, async (t) => {
    const elsewhere = await startReceiver(t)
    const { received, url } = await startReceiver(t, ({ url: path }, response) => {
      if (path === '/redirect') response.writeHead(307, { location: elsewhere.url }).end()
      else if (path === '/slow') response.writeHead(200).write('a')
      else if (path === '/endless') {
        const more = (): void => {
          while (response.write('a'.repeat(65_536)));
        }
        response.on('drain', more)
        more()
      } else response.end()
    })
    const { port } = new URL(url)
    const guarded = open({ allowPrivate: false, allow: [] })
    const allowed = open({ allowPrivate: false, allow: ['127.0.0.1/32'] })
    t.after(() => Promise.all([guarded.close(), allowed.close()]))
    const to = (senders: Senders, target: string, given: Partial<WebhookDestination> = {}) =>
      reasonOf(send(senders, destinationOf([target], given), contentOf(1), [0], { keepAnswer: true }))
    for (const target of [url, `http://localhost:${port}`, `http://[::ffff:127.0.0.1]:${port}`, `http://0x7f.1:${port}`])
      assert.equal(await to(guarded, target), 'address_refused', target)
    assert.equal(received.length, 0)
    assert.equal(await to(allowed, url), null)
    assert.equal(await to(allowed, `http://[::1]:${port}`), 'address_refused')
    assert.equal(await to(allowed, `${url}/redirect`), 'http_307')
    assert.equal(elsewhere.received.length, 0)
    assert.equal(await to(allowed, `${url}/slow`, { timeoutMs: 200 }), 'timeout')
    assert.equal(await to(allowed, `${url}/endless`), null)
  })

  test(`${where} reports no secret when a request cannot be created or sent`, async (t) => {
    const senders = open(OPTIONS.guard)
    t.after(() => senders.close())
    const reports: string[] = []
    const bug = (message: string): void => void reports.push(message)
    const broken: [string[], Partial<WebhookDestination>][] = [
      [['http://127.0.0.1:9/'], { signingSecrets: ['whsec_hidden!'] }],
      [['http://127.0.0.1:9/'], { headers: { 'X-Key': 'hidden\r\nX-Other: 1' } }],
      [['http://127.0.0.1:9/'], { headers: { 'hidden key': 'a' } }],
      [['http://user:hidden@127.0.0.1:9/?hidden'], {}],
      [['http://user:hidden@127.0.0.1:99999/'], {}],
      [['ftp://user:hidden@127.0.0.1/'], {}],
    ]
    for (const [urls, given] of broken) {
      const outcomes = await send(senders, destinationOf(urls, given), contentOf(1), [0], { bug })
      assert.notEqual((outcomes as Outcome[])[0]?.verdict, 'success')
      reports.push(JSON.stringify(outcomes))
    }
    assert.ok(reports.length > broken.length)
    assert.deepEqual(
      reports.filter((report) => report.includes('hidden')),
      [],
    )
  })
}

test('a hostile message neither ends a sender thread nor changes the request of another one', async (t) => {
  const { received, url } = await startReceiver(t)
  const lost: Error[] = []
  const senders = openSenderThreads(1, OPTIONS, { onLost: (error) => void lost.push(error) })
  t.after(() => senders.close())
  const destination = destinationOf([url])
  const { about } = contentOf(1).body
  const deep = '['.repeat(200_000) + ']'.repeat(200_000)
  const bodies = [
    `{"batch":[{"type":"track","event":"e","properties":${deep}}]}`,
    '{"batch":[{"type":"hostile"}]}',
    '{"batch":[7]}',
    '{"batch":{"0":{"type":"track"},"length":1}}',
    '{"__proto__":{"batch":[{"type":"track"}]}}',
    '{"batch":[{"type":"track","event":"e","__proto__":{"userId":"other"},"properties":{"__proto__":{"a":1},"toJSON":1}}],"context":{"__proto__":{"ip":"a"}}}',
  ]
  const reasons: unknown[] = []
  for (const body of bodies) {
    const content = { ...contentOf(1), body: new SegmentBody(Buffer.from(body), about) }
    reasons.push(await reasonOf(send(senders, destination, content, [0])))
  }
  assert.deepEqual(reasons, ['internal_error', 'internal_error', 'internal_error', 'unreadable', 'unreadable', null])
  assert.equal(await reasonOf(send(senders, destination, contentOf(1), [0])), null)
  assert.deepEqual([received.length, lost], [2, []])
  const { userId, properties } = JSON.parse(received[0]?.body ?? '') as { userId?: string; properties: object }
  assert.deepEqual([userId, Object.keys(properties)], [undefined, ['__proto__', 'toJSON']])
  assert.equal((JSON.parse(received[1]?.body ?? '') as { userId: string }).userId, 'ü')
})
