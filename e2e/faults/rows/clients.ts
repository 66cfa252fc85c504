// The client library, @switchyard/node: its process is killed, the service is away, and requests are refused.

import { setTimeout as passing } from 'node:timers/promises'
import type { Answer } from '../../receiver.ts'
import { clientsOf, startClients } from '../clients/clients.ts'
import type { Fault, Injection } from '../fault.ts'
import type { Random } from '../random.ts'
import { injected } from '../round.ts'
import type { System } from '../system.ts'

/** Of all clients together. Calls return at once, so a busy machine would not slow them down. */
const PER_SECOND = 25

const clientKilled: Injection = {
  key: 'client-killed',
  title: 'A client with a spool is killed',
  how: 'SIGKILL to one or all of three processes that share a spool folder, at a random moment, also while they recover messages of others or cannot send; started again at once',
  note: 'A message counts as acknowledged when its call has returned. Clients send it again if they do not know its outcome; the service stores it once.',
  stores: ['sqlite', 'postgres'],
  perRound: 25,
  repeats: false,
  system: () => ({ perSecond: PER_SECOND, traffic: startClients({ spooled: 3, unspooled: 0 }) }),
  async cause(system, random) {
    const { all, front } = clientsOf(system)
    const killed = random.chance(0.2) ? all : [random.pick(all)]
    const isCutOff = random.chance(0.2)
    if (isCutOff) {
      // They have many messages in the spool.
      front.storm = () => ({ reset: true })
      for (const client of killed) client.call(random.int(1, 200))
      await front.moreRefused(1)
    }
    const lines = random.int(1, 30)
    await Promise.all(
      killed.map(async (client) => {
        await client.moreLines(lines)
        await client.kill()
        client.start()
      }),
    )
    if (random.chance(0.2)) {
      // They are killed again while they start and recover messages.
      await passing(random.int(0, 800))
      await Promise.all(killed.map((client) => client.kill()))
      for (const client of killed) client.start()
    }
    if (isCutOff) front.storm = null
  },
  check: async (system) => clientsOf(system).problems,
}

const serviceAway: Injection = {
  key: 'service-away',
  title: 'The service is away, and clients wait for it',
  how: 'SIGKILL or SIGTERM to all nodes; started again after some seconds, sometimes up to 30, and one time in fifty after one to two minutes; meanwhile, connections are refused or reset. Two clients have a spool, one has not',
  note: 'The clients retry without a limit (`maxRetries: Infinity`). By default, a client reports messages as failed after three retries. The time to recover contains the pause between two retries, which is up to 30 s.',
  stores: ['sqlite', 'postgres'],
  perRound: 15,
  system: () => ({ perSecond: PER_SECOND, traffic: startClients({ spooled: 2, unspooled: 1 }) }),
  async cause(system, random) {
    const { front } = clientsOf(system)
    const isKilled = random.chance(0.5)
    const isRefused = random.chance(0.5)
    if (isRefused) await front.goAway()
    await Promise.all(system.nodes.map((node) => (isKilled ? node.kill() : node.stop())))
    await passing(awayMs(random))
    await Promise.all(system.nodes.map((node) => node.start()))
    if (isRefused) await front.comeBack()
  },
  check: async (system) => clientsOf(system).problems,
}

function awayMs(random: Random): number {
  const kind = random.next()
  if (kind < 0.8) return random.int(0, 2_000)
  if (kind < 0.95) return random.int(2_000, 6_000)
  if (kind < 0.98) return random.int(6_000, 30_000)
  return random.int(60_000, 120_000)
}

/** Each client may have eight requests in flight, and retries each of them at most three times in the first second. */
const MOST_PER_SECOND = 8 * 4
const RATE_LIMIT = 80

const REFUSALS: readonly ((random: Random) => Answer)[] = [
  (random) => ({ status: 429, headers: { 'retry-after': String(random.int(1, 3)) } }),
  (random) => ({ status: 503, headers: { 'retry-after': String(random.int(1, 3)) } }),
  (random) => ({ status: 429, headers: { 'retry-after': new Date(Date.now() + random.int(1, 4) * 1_000).toUTCString() } }),
  () => ({ status: 429 }),
  () => ({ status: 503 }),
  () => ({ status: 502, body: '<html>Bad Gateway</html>' }),
  () => ({ reset: true }),
]

const storm: Injection = {
  key: 'storm-429',
  title: 'Storms of 429 and other refusals, with clients',
  how: 'for up to 5 s, every request is answered with 429 or 503, with and without Retry-After, with 502, or with a reset; or clients make hundreds of calls at once and exceed the rate limit of the service',
  note: `Clients send no request during a pause that Retry-After asks for, and at most ${MOST_PER_SECOND} requests per second each that are refused.`,
  stores: ['sqlite', 'postgres'],
  perRound: 20,
  repeats: false,
  system: () => ({
    service: () => ({ env: { SWITCHYARD_RATE_LIMIT: String(RATE_LIMIT) } }),
    perSecond: PER_SECOND,
    traffic: startClients({ spooled: 2, unspooled: 1 }),
  }),
  async cause(system, random) {
    const { all, front } = clientsOf(system)
    const refused = front.moreRefused(1)
    if (random.chance(0.3)) {
      random.pick(all).call(random.int(3 * RATE_LIMIT, 8 * RATE_LIMIT))
      return await refused
    }
    const kinds = random.chance(0.3) ? REFUSALS : [random.pick(REFUSALS)]
    front.storm = () => random.pick(kinds)(random)
    await Promise.all([refused, passing(random.int(200, 5_000))])
    front.storm = null
  },
  check: async (system) => [...clientsOf(system).problems, ...busyLoops(system)],
}

function busyLoops(system: System): string[] {
  const { all, front } = clientsOf(system)
  const most = MOST_PER_SECOND * all.length
  const tooSoon = front.refused.find((atMs, at) => (front.refused[at + most] ?? Number.POSITIVE_INFINITY) < atMs + 1_000)
  return tooSoon === undefined ? [] : [`more than ${most} requests were refused within a second`]
}

export const CLIENTS: readonly Fault[] = [clientKilled, serviceAway, storm].map(injected)
