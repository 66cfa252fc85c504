// What one request costs the service's sender thread: CPU time of the thread per request, for requests of one message, beside programs that
// do the same without guarantees, with undici and with sockets. The programs take turns. `npm run bench:sender` prints it.
//
// Rounds are short and many, because other load on the machine changes from second to second: the ratio is taken in each round.
//
//   npm run bench:sender [-- --rounds N] [--requests N] [--connections N] [--before FOLDER]
//
// FOLDER is the root folder of another checkout, whose sender is measured, too.

import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import type { openThread } from '../../packages/server/src/delivery/link/thread-channel.ts'
import { webhookOf } from '../../packages/server/src/destinations/fixtures/webhook.ts'
import { writeStoredBody } from '../../packages/server/src/store/port/stored-messages.ts'
import { machineText } from '../client/report.ts'
import { spreadOf, spreadText, tableText } from '../client/table.ts'
import { nextReport, startScript, stop } from '../service/environment/processes.ts'
import type { ReceiverReport } from '../service/environment/receiver.ts'
import type { BareOptions } from './bare-sender.ts'
import { cpuUsOf } from './cpu-channel.ts'
import type { MeasuredOptions } from './measured-sender.ts'

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
const WARM_UP_ROUNDS = 16
const SHARED_SECRET = 'the shared secret of the benchmark'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '151' },
    requests: { type: 'string', default: '1000' },
    connections: { type: 'string', default: '32' },
    before: { type: 'string' },
  },
})
const [rounds, connections] = [Number(values.rounds), Number(values.connections)]
const requests = Math.ceil(Number(values.requests) / GROUP) * GROUP
let onEnded = (_count: number): void => undefined

const receiver = startScript('receiver.ts')
const { port } = await nextReport<ReceiverReport, 'listening'>(receiver, 'listening', 20_000)
const url = `http://127.0.0.1:${port}/`
const programs = [
  ...(values.before === undefined ? [] : [await openService(resolve(values.before), 'the sender of the other checkout', 'before')]),
  await openService(resolve(import.meta.dirname, '../..'), 'the sender of the service', 'service'),
  openBare('undici', 'undici, dispatch'),
  openBare('sockets', 'sockets, prepared headers'),
]
const bodies = Array.from({ length: GROUP }, (_, at) => storedBody(at))
const used = programs.map(() => [] as number[])
// The code is compiled and optimized before it is measured.
for (let nth = 0; nth < WARM_UP_ROUNDS; nth++) for (const program of programs) await run(program)
for (let round = 0; round < rounds; round++) {
  for (const [at, program] of programs.entries()) used[at]?.push(await run(program))
}
const least = used.at(-1) as number[]
console.log(machineText())
console.log(
  `\nCPU time of the sending thread per request, one message of ${bodies[0]?.length} bytes each, ${connections} connections, ${requests} requests: median (min–max) of ${rounds} rounds, alternating\n`,
)
console.log(
  tableText(
    ['Program', 'µs per request', '× sockets'],
    programs.map(({ name }, at) => {
      const own = used[at] as number[]
      const ratios = own.map((us, round) => us / (least[round] as number))
      return [name, spreadText(spreadOf(own), 1), spreadText(spreadOf(ratios), 2)]
    }),
  ),
)
await Promise.all([...programs.map((program) => program.close()), stop(receiver, 'SIGKILL')])

/** Returns the CPU time of the program's thread per request, in microseconds. */
async function run(program: Program): Promise<number> {
  const before = await cpuUsOf(program.thread)
  await new Promise<void>((resolve) => {
    let started = 0
    let ended = 0
    const start = (): void => {
      while (started < requests && started - ended < connections * AHEAD) {
        program.send(bodies)
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
  return ((await cpuUsOf(program.thread)) - before) / requests
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

async function openService(root: string, name: string, thread: string): Promise<Program> {
  const folder = `${root}/packages/server/src/delivery`
  const channel = (await import(`${folder}/link/thread-channel.ts`)) as { openThread: typeof openThread }
  const options: MeasuredOptions = {
    guard: { allowPrivate: true, allow: [] },
    closeGraceMs: 1_000,
    thread,
    program: `${folder}/sender/sender-thread.ts`,
  }
  const link = channel.openThread(
    thread,
    options,
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
  link.commands.define(1, webhookOf({ urls: [url], sharedSecret: SHARED_SECRET, signingSecrets: [], headers: {} }))
  const about = { sourceId: 'src_1', receivedAtMs: Date.UTC(2026, 0, 1), ip: null, browser: false, trace: null }
  const common = {
    destination: 1,
    isBatch: false,
    attempt: 1,
    replay: false,
    keepAnswer: false,
    isPreview: false,
    notAfterMs: null,
    isLate: false,
    steps: null,
  }
  let number = 1
  return {
    name,
    thread,
    send(stored) {
      for (const body of stored) {
        const key = ++number
        link.commands.load({ key, destination: 1, origin: key, about, body, isText: false, parsed: null, absent: [], indexes: [0] })
        link.commands.start({ ...common, unit: ++number, atMs: Date.now(), limit: connections, urls: [0], messages: [key, 0] })
      }
    },
    close: () => link.drain(),
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
