// What one request costs the service's sender thread: CPU time of the thread per request, for requests of one message, beside programs that
// do the same without guarantees, with undici and with sockets. The programs take turns. `npm run bench:sender` prints it.
//
//   npm run bench:sender [-- --rounds N] [--requests N] [--connections N]

import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { openThread } from '../../packages/server/src/delivery/link/thread-channel.ts'
import { writeStoredBody } from '../../packages/server/src/store/port/stored-messages.ts'
import { webhookOf } from '../../packages/server/src/destinations/fixtures/webhook.ts'
import { machineText } from '../client/report.ts'
import { spreadOf, spreadText, tableText } from '../client/table.ts'
import { nextReport, startScript, stop } from '../service/environment/processes.ts'
import type { ReceiverReport } from '../service/environment/receiver.ts'
import type { BareOptions } from './bare-sender.ts'
import { cpuUsOf } from './cpu-channel.ts'

interface Program {
  name: string
  /** As its thread is called in cpu-channel.ts. */
  thread: string
  /** Gives it stored messages to send, each in its own request. */
  send(bodies: readonly Uint8Array[]): void
  close(): unknown
}

/** Messages that are given to a program in one turn of the event loop, and that it has at once at most: more than it can have in flight. */
const GROUP = 16
const AHEAD = 4
const SHARED_SECRET = 'the shared secret of the benchmark'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    requests: { type: 'string', default: '20000' },
    connections: { type: 'string', default: '32' },
  },
})
const [rounds, requests, connections] = [Number(values.rounds), Number(values.requests), Number(values.connections)]
let onEnded = (_count: number): void => undefined

const receiver = startScript('receiver.ts')
const { port } = await nextReport<ReceiverReport, 'listening'>(receiver, 'listening', 20_000)
const url = `http://127.0.0.1:${port}/`
const programs = [openService(), openBare('undici', 'undici, dispatch'), openBare('sockets', 'sockets, prepared headers')]
const bodies = Array.from({ length: GROUP }, (_, at) => storedBody(at))
const used = programs.map(() => [] as number[])
for (const program of programs) await run(program)
for (let round = 0; round < rounds; round++) {
  for (const [at, program] of programs.entries()) used[at]?.push(await run(program))
}
const limit = spreadOf(used.at(-1) as number[])?.median ?? Number.NaN
console.log(machineText())
console.log(
  `\nCPU time of the sending thread per request, one message of ${bodies[0]?.length} bytes each, ${connections} connections, ${requests} requests: median (min–max) of ${rounds} rounds, alternating\n`,
)
console.log(
  tableText(
    ['Program', 'µs per request', '× sockets'],
    programs.map(({ name }, at) => {
      const spread = spreadOf(used[at] as number[])
      return [name, spreadText(spread, 1), ((spread?.median ?? Number.NaN) / limit).toFixed(2)]
    }),
  ),
)
await Promise.all([...programs.map((program) => program.close()), stop(receiver, 'SIGKILL')])

/** Returns the CPU time of the program's thread per request, in microseconds. */
async function run({ thread, send }: Program): Promise<number> {
  const before = await cpuUsOf(thread)
  await new Promise<void>((resolve) => {
    let started = 0
    let ended = 0
    const start = (): void => {
      while (started < requests && started - ended < connections * AHEAD) {
        send(bodies)
        started += bodies.length
      }
    }
    onEnded = (count) => {
      ended += count
      if (started - ended <= connections * (AHEAD - 1)) start()
      if (ended >= started) resolve()
    }
    start()
  })
  return ((await cpuUsOf(thread)) - before) / requests
}

function storedBody(at: number): Buffer {
  const message = {
    type: 'track',
    messageId: `ajs-next-1700000000000-${String(at).padStart(12, '0')}`,
    userId: `user-${at}`,
    event: 'Order Completed',
    timestamp: '2026-01-01T00:00:00.000Z',
    context: { library: { name: '@switchyard/node', version: '0.1.0' }, locale: 'en-GB', page: { url: 'https://example.com/checkout' } },
    properties: { orderId: `order-${at}`, currency: 'EUR', total: 129.95, products: [{ sku: 'a-1', price: 64.95, quantity: 2 }] },
    integrations: {},
  }
  return writeStoredBody({ batch: [message], sentAt: '2026-01-01T00:00:00.000Z' })
}

function openService(): Program {
  const thread = openThread(
    'sender',
    { guard: { allowPrivate: true, allow: [] }, closeGraceMs: 1_000 },
    {
      outcome: (_unit, _url, { verdict, reason }) => {
        if (verdict !== 'success') throw new Error(`a request failed: ${reason}`)
        onEnded(1)
      },
      unsent: () => {
        throw new Error('a message was not sent')
      },
      bug: (_unit, message) => {
        throw new Error(message)
      },
      lost: (error) => {
        throw error
      },
    },
    new URL('measured-sender.ts', import.meta.url),
  )
  thread.commands.define(1, webhookOf({ urls: [url], sharedSecret: SHARED_SECRET, signingSecrets: [], headers: {} }))
  const about = { sourceId: 'src_1', receivedAtMs: Date.UTC(2026, 0, 1), ip: null, browser: false, trace: null }
  const common = { destination: 1, isBatch: false, attempt: 1, replay: false, keepAnswer: false, isPreview: false, steps: null }
  let number = 1
  return {
    name: 'the sender of the service',
    thread: 'service',
    send(stored) {
      for (const body of stored) {
        const key = ++number
        thread.commands.load({ key, destination: 1, origin: key, about, body, isText: false, parsed: null, absent: [], indexes: [0] })
        thread.commands.start({ ...common, unit: ++number, atMs: Date.now(), limit: connections, urls: [0], messages: [key, 0] })
      }
    },
    close: () => thread.drain(),
  }
}

function openBare(kind: BareOptions['kind'], name: string): Program {
  const options: BareOptions = { kind, receiver: url, connections, sharedSecret: SHARED_SECRET }
  const worker = new Worker(new URL('bare-sender.ts', import.meta.url), { workerData: options, name: kind })
  worker.on('message', (count: number) => onEnded(count))
  worker.on('error', (error) => {
    throw error
  })
  return {
    name,
    thread: kind,
    send(stored) {
      const bytes = new Uint8Array(Buffer.concat(stored))
      worker.postMessage({ bytes, lengths: stored.map(({ length }) => length) }, [bytes.buffer])
    },
    close: () => worker.terminate(),
  }
}
