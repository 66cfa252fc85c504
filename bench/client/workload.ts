// Runs one client with one workload in a new process: makes the calls, closes the client, then lets the process end by itself
// like an application. It reports its progress to its parent, because a client may crash before the end.
// The counting server reports what arrived and when.

import { type Call, CLIENTS, type ClientName } from './clients.ts'

export interface Job {
  client: ClientName
  /** The module to import. */
  from: string
  host: string
  calls: number
  flushAt?: number
  /** Calls between two turns of the event loop; 0 never yields. */
  yieldEvery: number
  /** The loop stops after this long, because one peer's cost per call grows with its queue and it would take hours. */
  loopLimitMs: number
}

export interface WorkloadReport {
  /** When the first call was made, in milliseconds of the clock that all processes of a machine share. */
  startedAtMs: number
  callsMade: number
  loopMs: number
  peakRssBytes: number
  /** CPU time of the whole process so far, including its start and other threads. */
  cpuMs: number
  state: 'called' | 'closed' | 'ended'
  error?: string
}

const job = JSON.parse(process.argv[2] ?? '{}') as Job
const { client: name, from, calls, yieldEvery, loopLimitMs } = job
const client = await CLIENTS[name].start(from, { host: job.host, ...(job.flushAt === undefined ? {} : { flushAt: job.flushAt }) })

// The channel to the parent must not keep this process alive; without a parent nobody needs the result.
process.channel?.unref()
process.on('disconnect', () => process.exit(1))

const startedAtMs = Number(process.hrtime.bigint()) / 1e6
const limit = performance.now() + loopLimitMs
const begun = performance.now()
let callsMade = 0
while (callsMade < calls) {
  client.track(callOf(callsMade))
  callsMade += 1
  if (callsMade % 50 !== 0) continue
  if (performance.now() > limit) break
  if (yieldEvery > 0 && callsMade % yieldEvery === 0) await new Promise((resume) => setImmediate(resume))
}
const loopMs = performance.now() - begun
report('called')

process.once('beforeExit', () => report('ended'))
try {
  await client.close()
  report('closed')
} catch (error) {
  report('closed', String(error))
}

function report(state: WorkloadReport['state'], error?: string): void {
  // maxRSS is in kilobytes on every platform: libuv has converted it.
  const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage()
  const used = { peakRssBytes: maxRSS * 1024, cpuMs: (userCPUTime + systemCPUTime) / 1_000 }
  const message: WorkloadReport = { startedAtMs, callsMade, loopMs, ...used, state, ...(error === undefined ? {} : { error }) }
  process.send?.(message)
}

/** About 400 bytes of JSON, nested like an order, and built for each call as in an application. */
function callOf(sequence: number): Call {
  return {
    userId: `user-${sequence % 5_000}`,
    event: 'Order Completed',
    properties: {
      sequence,
      orderId: `order-${sequence}`,
      total: 129.5 + (sequence % 100),
      currency: 'EUR',
      isFirstOrder: sequence % 7 === 0,
      coupon: null,
      products: [
        { sku: `sku-${sequence % 1_000}`, name: 'Café table, oak', price: 99.5, quantity: 1 },
        { sku: 'sku-7', name: 'Lamp', price: 15, quantity: 2 },
      ],
      shipping: { method: 'standard', address: { city: 'Zürich', postalCode: '8004', country: 'CH' } },
    },
  }
}
