// Real receivers that misbehave, through the whole service: how the delivery ends, what is recorded about it, and that a healthy receiver
// gets the same messages meanwhile.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { type InProcessService, startInProcess } from '../system/in-process.ts'
import { drip, pour, type RawOptions, startRawReceiver } from '../system/raw-receiver.ts'
import { startReceiver } from '../system/receiver.ts'
import { type Service, startService } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { type AttemptView, type State, wire } from '../system/wiring.ts'

const GIGABYTE = 2 ** 30
/** Deliveries expire after the first temporary failure, so that the result is recorded at once. */
const NO_RETRY = { retryWindowMs: 1_000 }
const OK = 'HTTP/1.1 200 OK\r\n'
const FAILED = 'HTTP/1.1 500 Internal Server Error\r\n'

interface Bad {
  what: string
  behave: (socket: Socket) => void
  options?: RawOptions
  scheme?: 'https'
  settings?: object
  state: State
  reason: string | null
  status?: number
  error: RegExp | null
  responseStart?: string
  /** The attempt lasts until its deadline, long after the other destination has finished. */
  slow?: true
}

const BAD: Bad[] = [
  {
    what: 'never answers',
    behave: () => {},
    state: 'expired',
    reason: 'timeout',
    error: /^The deadline of 5000 ms passed while waiting for the response\.$/,
    slow: true,
  },
  {
    what: 'drips its answer a byte at a time: one deadline holds for all of it',
    behave: (socket) => drip(socket, `${OK}X-Padding: ${'x'.repeat(1_000)}`),
    state: 'expired',
    reason: 'timeout',
    error: /^The deadline of 5000 ms passed while waiting for the response\.$/,
    slow: true,
  },
  {
    what: 'drips the body of its 200 a byte at a time',
    behave: (socket) => {
      socket.write(`${OK}Content-Length: 1000\r\n\r\n`)
      drip(socket, 'x')
    },
    state: 'expired',
    reason: 'timeout',
    status: 200,
    error: /^The deadline of 5000 ms passed while the response was being read\.$/,
    slow: true,
  },
  {
    what: 'never reads',
    behave: () => {},
    options: { unread: true },
    state: 'expired',
    reason: 'timeout',
    error: /^The deadline of 5000 ms passed while /,
    slow: true,
  },
  {
    what: 'never goes through with the TLS handshake',
    behave: () => {},
    scheme: 'https',
    state: 'expired',
    reason: 'timeout',
    error: /^The deadline of 5000 ms passed while the TLS handshake was in progress\.$/,
    slow: true,
  },
  {
    what: 'answers HTTPS with plain text',
    behave: (socket) => socket.end('plain text\r\n'),
    scheme: 'https',
    state: 'expired',
    reason: 'tls_failure',
    error: /^The TLS handshake failed\.$/,
  },
  {
    what: 'answers 200 and a gigabyte: its status counts, and the rest is not read',
    behave: (socket) => {
      socket.write(`${OK}Content-Length: ${GIGABYTE}\r\n\r\n`)
      pour(socket, GIGABYTE)
    },
    state: 'delivered',
    reason: null,
    status: 200,
    error: null,
  },
  {
    what: 'answers 500 and a gigabyte: 4 KB of it are kept',
    behave: (socket) => {
      socket.write(`${FAILED}Content-Length: ${GIGABYTE}\r\n\r\n`)
      pour(socket, GIGABYTE)
    },
    state: 'expired',
    reason: 'http_500',
    status: 500,
    error: /^The receiver answered 500 Internal Server Error\.$/,
    responseStart: 'x'.repeat(4_096),
  },
  {
    what: 'answers with headers without end',
    behave: (socket) => {
      socket.write(`${OK}X-Padding: `)
      pour(socket, GIGABYTE)
    },
    state: 'expired',
    reason: 'invalid_response',
    error: /^The response of the receiver is not valid HTTP\/1\.1\.$/,
  },
  {
    what: 'resets the connection',
    behave: (socket) => socket.resetAndDestroy(),
    state: 'expired',
    reason: 'connection_reset',
    error: /^The receiver reset the connection\.$/,
  },
  {
    what: 'closes the connection without an answer',
    behave: (socket) => socket.destroy(),
    state: 'expired',
    reason: 'connection_closed',
    error: /^The receiver closed the connection before its response was complete\.$/,
  },
  {
    what: 'closes the connection in the middle of its answer',
    behave: (socket) => socket.end(`${OK}Content-Length: 1000\r\n\r\nthe start`),
    state: 'expired',
    reason: 'connection_closed',
    status: 200,
    error: /^The receiver closed the connection before its response was complete\.$/,
  },
  {
    what: 'redirects to a private address: that is not followed',
    behave: (socket) =>
      socket.end('HTTP/1.1 307 Temporary Redirect\r\nLocation: http://169.254.169.254/\r\nContent-Length: 5\r\n\r\nthere'),
    state: 'failed',
    reason: 'http_307',
    status: 307,
    error: /^The receiver answered 307 Temporary Redirect, and redirects are not followed\.$/,
    responseStart: 'there',
  },
  {
    what: 'answers garbage',
    behave: (socket) => socket.end(Buffer.from(Array.from({ length: 10_000 }, (_, at) => (at * 7919) % 256))),
    state: 'expired',
    reason: 'invalid_response',
    error: /^The response of the receiver is not valid HTTP\/1\.1\.$/,
  },
  {
    what: 'answers with a Content-Length that is no number',
    behave: (socket) => socket.end(`${OK}Content-Length: ten\r\n\r\n`),
    state: 'expired',
    reason: 'invalid_response',
    error: /^The response of the receiver is not valid HTTP\/1\.1\.$/,
  },
  {
    what: 'answers a failure in bytes that are no text',
    behave: (socket) =>
      socket.end(Buffer.concat([Buffer.from(`${FAILED}Content-Length: 4\r\n\r\n`), Buffer.from([0xff, 0x00, 0xc3, 0x41])])),
    state: 'expired',
    reason: 'http_500',
    status: 500,
    error: /^The receiver answered 500 Internal Server Error\.$/,
    responseStart: '\ufffd\ufffd\ufffdA',
  },
]

describe('A receiver that misbehaves', { concurrency: true }, () => {
  let service: Service
  before(async () => {
    service = await startService()
  })
  after(() => service[Symbol.asyncDispose]())

  for (const { what, behave, options, scheme, settings, state, reason, status = null, error, responseStart = null, slow } of BAD) {
    test(what, async () => {
      await using bad = await startRawReceiver(behave, options)
      await using healthy = await startReceiver()
      const url = scheme === undefined ? bad.url : bad.url.replace('http:', 'https:')
      const wiring = await wire(service, { urls: [url], ...NO_RETRY, ...settings }, { urls: [healthy.url] })
      const properties = { text: 'x'.repeat(30_000) }
      const ids: string[] = []
      for (let number = 0; number < 5; number++) ids.push(await wiring.track({ properties }))
      await healthy.until(() => ids.every((id) => healthy.byMessageId.has(id)))
      if (slow) {
        const meanwhile = await wiring.delivery(ids[0] as string, () => true)
        assert.deepEqual([meanwhile.state, meanwhile.attemptCount], ['pending', 0], 'the healthy one has waited for the bad one')
      }
      for (const id of ids) {
        const delivery = await wiring.settled(id)
        assert.deepEqual([delivery.state, delivery.reason], [state, reason])
        const [attempt, ...more] = delivery.attempts
        assert.ok(attempt)
        assert.equal(more.length, 0)
        assert.deepEqual(
          { ...pick(attempt, 'attempt', 'url', 'address', 'status', 'reason', 'responseStart') },
          { attempt: 1, url, address: '127.0.0.1', status, reason, responseStart },
        )
        if (error === null) assert.equal(attempt.error, null)
        else assert.match(attempt.error ?? '', error)
        assert.equal(attempt.timings.dnsMs, null)
        if (slow) assert.ok(attempt.timings.totalMs >= 4_990 && attempt.timings.totalMs < 10_000, `${attempt.timings.totalMs} ms`)
        if (status !== null) assert.ok((attempt.timings.firstByteMs ?? 0) > 0)
        assert.ok(Date.parse(attempt.startedAt) <= Date.now())
        assert.equal((await wiring.settled(id, { to: wiring.destinationIds[1] as string })).state, 'delivered')
      }
    })
  }
})

test('receivers that answer gigabytes, hang or never read do not increase the memory use of the service', async (t) => {
  await using service = await startService()
  if (peakMegabytes(service.pid) === undefined) return t.skip('there is no /proc on this system')
  const poured: (() => number)[] = []
  await using gigabytes = await startRawReceiver((socket) => {
    socket.write(`${OK}Content-Length: ${GIGABYTE}\r\n\r\n`)
    poured.push(pour(socket, GIGABYTE))
  })
  await using hanging = await startRawReceiver(() => {})
  await using unread = await startRawReceiver(() => {}, { unread: true })
  await using healthy = await startReceiver()
  const silent = [hanging, unread].map(({ url }) => ({ urls: [url], timeoutMs: 1_000, retryWindowMs: 1_000 }))
  const usual = await wire(service, { urls: [healthy.url] })
  const wiring = await wire(service, { urls: [healthy.url] }, { urls: [gigabytes.url] }, ...silent)
  const properties = { text: 'x'.repeat(3_000) }
  const sendTo = async (target: typeof wiring, name: string): Promise<string[]> => {
    const ids: string[] = []
    for (let batch = 0; batch < 3; batch++) {
      const messages = Array.from({ length: 100 }, (_, at) => ({
        type: 'track',
        userId: 'u-1',
        event: 'Tested',
        messageId: `${name}-${batch}-${at}`,
        properties,
      }))
      ids.push(...messages.map(({ messageId }) => messageId))
      await target.send(messages)
    }
    return ids
  }
  for (const round of [1, 2, 3]) await sendTo(usual, `usual-${round}`)
  await service.settled(900)
  const before = peakMegabytes(service.pid) as number
  await sendTo(wiring, 'tried')
  const [, ...bad] = wiring.destinationIds
  await eventually(
    () => service.ledger(),
    (rows) =>
      bad.every((id) => rows.some((row) => row.destinationId === id && (id === bad[0] ? row.delivered === 300 : row.expired >= 50))),
    { what: 'everything was tried, as far as a breaker lets it' },
  )
  const grown = (peakMegabytes(service.pid) as number) - before
  assert.ok(poured.length >= 300)
  const sent = poured.reduce((sum, written) => sum + written(), 0)
  t.diagnostic(`${before} MB before, ${grown} MB more; ${Math.round(sent / 2 ** 20)} MB of ${300 * 1_024} MB were written to it`)
  assert.ok(grown < 100, `the peak has grown by ${grown} MB`)
})

describe('A receiver at an address that is not public', () => {
  let service: InProcessService
  const addresses = new Map<string, string[]>()
  const asked: string[] = []

  before(async () => {
    service = await startInProcess({
      // A service that listens on a public address protects its own network.
      host: '0.0.0.0',
      allowAddresses: '127.0.0.2/32',
      lookup: async (hostname) => {
        asked.push(hostname)
        const answers = addresses.get(hostname) ?? []
        // The last answer is repeated.
        return [(answers.length > 1 ? answers.shift() : answers[0]) ?? '10.0.0.1']
      },
    })
  })
  after(() => service[Symbol.asyncDispose]())

  test('given as an IP address: refused, and no connection is made', async () => {
    await using receiver = await startReceiver()
    for (const host of ['127.0.0.1', 'localhost', '[::1]', '[::ffff:127.0.0.1]', '10.0.0.1', '192.168.1.1', '169.254.169.254', '0.0.0.0']) {
      const url = `http://${host}:${receiver.port}/`
      const wiring = await wire(service, { urls: [url] })
      const { state, reason, attempts } = await wiring.settled(await wiring.track())
      assert.deepEqual([state, reason], ['failed', 'address_refused'], url)
      assert.deepEqual(pick(attempts[0] as AttemptView, 'address', 'status', 'reason'), { address: null, status: null, reason })
    }
    assert.equal(receiver.connections, 0)
  })

  test('given as a name that resolves to it: refused, and no connection is made; the other destination gets its message', async () => {
    await using receiver = await startReceiver()
    await using allowed = await startReceiver(undefined, { host: '127.0.0.2' })
    addresses.set('inside.example', ['127.0.0.1'])
    const url = `http://inside.example:${receiver.port}/`
    const wiring = await wire(service, { urls: [url] }, { urls: [allowed.url] })
    const id = await wiring.track()
    const { state, reason, attempts } = await wiring.settled(id)
    assert.deepEqual([state, reason, attempts[0]?.address], ['failed', 'address_refused', null])
    assert.match(attempts[0]?.error ?? '', /not public/)
    assert.equal(typeof attempts[0]?.timings.dnsMs, 'number')
    assert.equal((await wiring.settled(id, { to: wiring.destinationIds[1] as string })).state, 'delivered')
    assert.equal(receiver.connections, 0)
  })

  test('given as a name whose address changes after the check: the checked address is dialled', async () => {
    await using inside = await startReceiver()
    await using outside = await startReceiver(undefined, { host: '127.0.0.2', port: inside.port })
    addresses.set('rebinding.example', ['127.0.0.2', '127.0.0.1'])
    const before = asked.length
    const wiring = await wire(service, { urls: [`http://rebinding.example:${inside.port}/`] })
    const { state, attempts } = await wiring.settled(await wiring.track())
    assert.deepEqual([state, attempts[0]?.address], ['delivered', '127.0.0.2'])
    assert.deepEqual([asked.slice(before), outside.arrivals.length], [['rebinding.example'], 1], 'it was looked up once')
    await outside.goAway()
    const later = await wiring.settled(await wiring.track())
    assert.deepEqual([later.state, later.reason, later.attempts[0]?.address], ['failed', 'address_refused', null])
    assert.equal(inside.connections, 0)
  })
})

function pick<T extends object, K extends keyof T>(from: T, ...keys: K[]): Pick<T, K> {
  return Object.fromEntries(keys.map((key) => [key, from[key]])) as Pick<T, K>
}

/** The peak memory use of a process. */
function peakMegabytes(pid: number): number | undefined {
  try {
    return Math.round(Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024)
  } catch {
    return undefined
  }
}
