// The client library, @switchyard/node: its process is killed, the service is down, and requests are refused.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Answer } from '../../system/receiver.ts'
import { clientsOf, startClients } from '../clients/clients.ts'
import type { Fault, Injection } from '../rounds/fault.ts'
import { injected } from '../rounds/round.ts'
import type { Random } from '../system/random.ts'
import type { System } from '../system/system.ts'

/** Of all clients together. Calls return at once, so a busy machine would not slow them down. */
const PER_SECOND = 25

const clientKilled: Injection = {
  key: 'client-killed',
  title: 'A client with a spool is killed',
  how: 'One of three client processes that share a spool folder gets SIGKILL (in a fifth of the cases all of them), at a random moment, and is started again at once. Some are killed while they cannot send, or again while they start and recover messages.',
  note: 'Clients send a message again if they do not know whether it was accepted; the service stores it once, so nothing may arrive twice.',
  stores: ['sqlite', 'postgres'],
  perRound: 25,
  repeats: false,
  system: () => ({ perSecond: PER_SECOND, traffic: startClients({ spooled: 3, unspooled: 0 }) }),
  async cause(system, random) {
    const { all, balancer } = clientsOf(system)
    const killed = random.chance(0.2) ? all : [random.pick(all)]
    const isCutOff = random.chance(0.2)
    if (isCutOff) {
      // They have many messages in the spool.
      balancer.refuse = () => ({ reset: true })
      for (const client of killed) client.call(random.int(1, 200))
      await balancer.moreRefused(1)
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
      await sleep(random.int(0, 800))
      await Promise.all(killed.map((client) => client.kill()))
      for (const client of killed) client.start()
    }
    if (isCutOff) balancer.refuse = null
  },
  check: async (system) => clientsOf(system).problems,
}

const serviceAway: Injection = {
  key: 'service-away',
  title: 'All nodes are down, and clients retry',
  how: 'All nodes get SIGKILL or SIGTERM, and are started again, mostly within 2 s, sometimes after up to 30 s, and one time in fifty after 1 to 2 minutes. Meanwhile, connections are refused or reset. Two clients have a spool, one has none.',
  note: 'The clients retry without a limit (`maxRetries: Infinity`). By default, a client reports messages as failed after three retries. The time to recover includes the pause between two retries, which is up to 30 s.',
  stores: ['sqlite', 'postgres'],
  perRound: 15,
  system: () => ({ perSecond: PER_SECOND, traffic: startClients({ spooled: 2, unspooled: 1 }) }),
  async cause(system, random) {
    const { balancer } = clientsOf(system)
    const isKilled = random.chance(0.5)
    const isRefused = random.chance(0.5)
    if (isRefused) await balancer.goAway()
    await Promise.all(system.nodes.map((node) => (isKilled ? node.kill() : node.stop())))
    await sleep(awayMs(random))
    await Promise.all(system.nodes.map((node) => node.start()))
    if (isRefused) await balancer.comeBack()
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

const clientsRefused: Injection = {
  key: 'storm-429',
  title: 'Clients get 429 and other errors',
  how: 'For up to 5 s, every request is answered with 429 or 503 (with and without Retry-After) or 502, or its connection is reset. Or a client makes hundreds of calls at once, and exceeds the rate limit of the service.',
  note: `No client may send a request during a pause that Retry-After asks for in seconds (pauses until a date are not checked). At most ${MOST_PER_SECOND} refused requests per second and client are allowed, so that no client retries in a busy loop.`,
  stores: ['sqlite', 'postgres'],
  perRound: 20,
  repeats: false,
  system: () => ({
    service: () => ({ env: { SWITCHYARD_RATE_LIMIT: String(RATE_LIMIT) } }),
    perSecond: PER_SECOND,
    traffic: startClients({ spooled: 2, unspooled: 1 }),
  }),
  async cause(system, random) {
    const { all, balancer } = clientsOf(system)
    const refused = balancer.moreRefused(1)
    if (random.chance(0.3)) {
      random.pick(all).call(random.int(3 * RATE_LIMIT, 8 * RATE_LIMIT))
      return await refused
    }
    const kinds = random.chance(0.3) ? REFUSALS : [random.pick(REFUSALS)]
    balancer.refuse = () => random.pick(kinds)(random)
    await Promise.all([refused, sleep(random.int(200, 5_000))])
    balancer.refuse = null
  },
  check: async (system) => [...clientsOf(system).problems, ...busyLoops(system)],
}

function busyLoops(system: System): string[] {
  const { all, balancer } = clientsOf(system)
  const most = MOST_PER_SECOND * all.length
  const tooSoon = balancer.refused.find((atMs, at) => (balancer.refused[at + most] ?? Number.POSITIVE_INFINITY) < atMs + 1_000)
  return tooSoon === undefined ? [] : [`more than ${most} requests were refused within a second`]
}

export const CLIENTS: readonly Fault[] = [clientKilled, serviceAway, clientsRefused].map(injected)
