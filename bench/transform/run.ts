// What transformations cost: CPU time per message, how much code that misbehaves delays other destinations, and memory. The process does nothing
// but transform, so its CPU time is that of the threads and of handing messages to them. `npm run bench:transform` prints it.

import { setTimeout as sleep } from 'node:timers/promises'
import { ThreadTransformer } from '../../packages/server/src/delivery/sender/transforming/thread-transformer.ts'
import type { TransformInput, TransformResult } from '../../packages/server/src/delivery/sender/transforming/transformer.ts'
import { machineText } from '../client/report.ts'
import { spreadOf, spreadText, tableText } from '../client/table.ts'

const BATCH = 50
const ROUNDS = 7
const BATCHES_PER_ROUND = 200
const LATENCY_MS = 3_000
const EVERY_MS = 5
const LATENCY_ROUNDS = 5
const MAX_CPU_US = 40
const MAX_P99_RATIO = 1.1

const MASK = `export default function (message) {
  message.context.ip = message.context.ip.slice(0, 7) + '.*.*'
  delete message.context.userAgent
  let total = 0
  for (const item of message.properties.items) total += item.price * item.quantity
  message.properties.total = total
  return message
}`
const SAME = 'export default (message) => message'
const LOOP = 'export default () => { for (;;) {} }'
const ALLOCATE = 'export default () => { const all = []; for (;;) all.push(new Array(1000).fill(0)) }'

function message(n: number): TransformInput {
  const content = {
    type: 'track',
    messageId: `node-next-1700000000000-${String(n).padStart(12, '0')}`,
    userId: `user-${n}`,
    event: 'Order Completed',
    timestamp: '2026-01-01T00:00:00.000Z',
    receivedAt: '2026-01-01T00:00:00.100Z',
    context: { ip: '203.0.113.77', userAgent: 'Mozilla/5.0 (X11; Linux x86_64)', library: { name: '@switchyard/node', version: '0.1.0' } },
    properties: {
      orderId: `o-${n}`,
      currency: 'EUR',
      items: [
        { sku: 'a', price: 1.5, quantity: 2 },
        { sku: 'b', price: 10, quantity: 1 },
        { sku: 'c', price: 3.25, quantity: 4 },
      ],
    },
  }
  return { text: JSON.stringify(content), receivedAtMs: 1_767_225_600_000 + n, messageId: content.messageId }
}

const batch = Array.from({ length: BATCH }, (_, n) => message(n))

function run(transformer: ThreadTransformer, destinationId: string, code: string): Promise<readonly TransformResult[]> {
  return new Promise((resolve) => transformer.run(destinationId, { code, timeoutMs: 50, memoryMb: 8 }, batch, resolve))
}

async function cpuPerMessage(transformer: ThreadTransformer, code: string): Promise<number> {
  const before = process.cpuUsage()
  for (let n = 0; n < BATCHES_PER_ROUND; n++) {
    const results = await run(transformer, 'measured', code)
    if (results.some(({ kind }) => kind !== 'changed')) throw new Error(`not transformed: ${JSON.stringify(results[0])}`)
  }
  const { user, system } = process.cpuUsage(before)
  return (user + system) / (BATCHES_PER_ROUND * BATCH)
}

/** The times of calls of a destination, while another one runs `other` all the time. */
async function latencies(transformer: ThreadTransformer, other: string | null): Promise<number[]> {
  const stopped = new AbortController()
  const busy = (async () => {
    if (other === null) return
    while (!stopped.signal.aborted) await Promise.race([run(transformer, `other ${other}`, other), once(stopped.signal)])
  })()
  const times: number[] = []
  const end = performance.now() + LATENCY_MS
  while (performance.now() < end) {
    const start = performance.now()
    await run(transformer, 'measured', MASK)
    times.push(performance.now() - start)
    await sleep(EVERY_MS)
  }
  stopped.abort()
  await busy
  return times.sort((a, b) => a - b)
}

function once(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

function mebibytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(0)} MB`
}

console.log(machineText())
const memory: [string, string][] = [['before the first transformation', mebibytes(process.memoryUsage.rss())]]
const transformer = new ThreadTransformer()

const codes: [name: string, code: string][] = [
  ['masks a field, deletes one, sums an array', MASK],
  ['returns the message unchanged', SAME],
]
const cpu = codes.map(() => [] as number[])
for (let round = 0; round <= ROUNDS; round++) {
  for (const [at, [, code]] of codes.entries()) {
    const us = await cpuPerMessage(transformer, code)
    // The first round warms up.
    if (round > 0) cpu[at]?.push(us)
  }
}
memory.push(['with one thread and two transformations', mebibytes(process.memoryUsage.rss())])
console.log(
  `\nCPU time per message of ${batch[0]?.text.length} bytes, in batches of ${BATCH}: median (min–max) of ${ROUNDS} rounds. At most ${MAX_CPU_US} µs.\n`,
)
console.log(
  tableText(
    ['Code', 'CPU µs per message'],
    codes.map(([name], at) => [name, spreadText(spreadOf(cpu[at] as number[]), 1)]),
  ),
)

const others: [name: string, code: string | null][] = [
  ['none', null],
  ['code that loops for ever', LOOP],
  ['code that allocates without end', ALLOCATE],
]
const times = others.map(() => [] as number[][])
for (let round = 0; round < LATENCY_ROUNDS; round++) {
  for (const [at, [, code]] of others.entries()) times[at]?.push(await latencies(transformer, code))
}
memory.push(['while other code loops and allocates', mebibytes(process.memoryUsage.rss())])
const p99 = times.map((rounds) => spreadOf(rounds.map((sorted) => quantile(sorted, 0.99))))
console.log(
  `\nTime of a call with ${BATCH} messages, one every ${EVERY_MS} ms, while another destination always has calls waiting: median (min–max) of ${LATENCY_ROUNDS} rounds, alternating. p99 at most ${MAX_P99_RATIO} times as long as without the other destination.\n`,
)
console.log(
  tableText(
    ['Other destination', 'p50 ms', 'p99 ms', '× p99 without it'],
    others.map(([name], at) => [
      name,
      spreadText(spreadOf((times[at] as number[][]).map((sorted) => quantile(sorted, 0.5))), 1),
      spreadText(p99[at], 1),
      ((p99[at]?.median ?? Number.NaN) / (p99[0]?.median ?? Number.NaN)).toFixed(2),
    ]),
  ),
)

for (let n = 0; n < 100; n++) await run(transformer, `many ${n}`, `// ${n}\n${MASK}`)
memory.push(['after 100 other transformations', mebibytes(process.memoryUsage.rss())])
await transformer.close()
memory.push(['after the threads have ended', mebibytes(process.memoryUsage.rss())])
console.log('\nMemory of the process (resident set)\n')
console.log(tableText(['When', 'Memory'], memory))
