// Wall clocks are set wrong: by seconds, hours or days, forwards and back, while a node runs and while it is stopped. Once with a preload
// that changes Date in the nodes, and once with libfaketime, where it is installed: in the nodes and in PostgreSQL.

import { PostgresServer } from '../../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { createFakeClock, type FakeClock, whyNoLibfaketime } from '../../machine-faults/libfaketime.ts'
import { createWallClock } from '../../machine-faults/wall-clock.ts'
import type { ServiceOptions } from '../../system/service.ts'
import { eventually } from '../../system/signals.ts'
import type { Fault, RoundOptions, RoundResult } from '../rounds/fault.ts'
import { injectedRound } from '../rounds/round.ts'
import { numberedMessage, numberOf } from '../system/numbered-message.ts'
import type { Random } from '../system/random.ts'
import { sendBatch } from '../system/send-batch.ts'
import type { System } from '../system/system.ts'

const SECOND_MS = 1_000
const HOUR_MS = 3_600 * SECOND_MS
const DAY_MS = 24 * HOUR_MS
const NODES = 2
const HOURLY_WORK = new URL('../causes/hourly-work.ts', import.meta.url).href

const clockJump: Fault = {
  key: 'clock-jump',
  title: 'The clock of a node jumps',
  how: 'The clock of a node, or of every node separately, is set wrong by up to a minute, a day or 30 days, forwards or backwards, or set right again. In 3 of 10 cases, the node is killed before the jump and started after it. In half of the cases, one receiver refuses connections at the same time. After each jump, 20 messages that were acknowledged before are sent again.',
  stores: ['sqlite', 'postgres'],
  perRound: 20,
  note: 'Only the time that JavaScript code reads is wrong. Nodes look for old messages every second instead of every hour. On SQLite, a clock that is ahead by more than the retention time (7 days) drops messages whose deliveries have ended. Nothing that is still pending is dropped, and duplicates are still recognized.',
  round: (options) => clockRound(options, createWallClock),
}

const clockJumpWithLibfaketime: Fault = {
  key: 'clock-jump-libfaketime',
  title: 'The clock of a node or of PostgreSQL jumps (libfaketime)',
  how: "The same as `clock-jump`, but libfaketime changes the clock of whole processes. On PostgreSQL, half of the jumps change the server's clock, within the same day.",
  stores: ['sqlite', 'postgres'],
  perRound: 20,
  unavailable: whyNoLibfaketime,
  note: "PostgreSQL's clock is not set to another day (UTC): messages from before would then not be recognized as duplicates.",
  round: (options) => (options.store === 'postgres' ? roundWithServerClock(options) : clockRound(options, createFakeClock)),
}

/** The clock of one node: a WallClock or a FakeClock. */
interface NodeClock extends Disposable, Pick<ServiceOptions, 'env' | 'execArgv'> {
  jump(offsetMs: number): void
}

async function roundWithServerClock(options: RoundOptions): Promise<RoundResult> {
  using clock = createFakeClock()
  const server = await PostgresServer.start({ settings: ['synchronous_commit=on'], env: clock.env })
  try {
    return await clockRound(options, createFakeClock, { server, clock })
  } finally {
    await server.dispose()
  }
}

async function clockRound(
  options: RoundOptions,
  createClock: () => NodeClock,
  database?: { server: PostgresServer; clock: FakeClock },
): Promise<RoundResult> {
  await using clocks = new AsyncDisposableStack()
  const ofNodes = Array.from({ length: NODES }, () => clocks.use(createClock()))
  const jumpOfNodes = async (system: System, random: Random): Promise<void> => {
    const all = system.nodes.map((_, at) => at + 1)
    for (const nth of random.chance(0.3) ? all : [random.pick(all)]) {
      const isKilled = random.chance(0.3)
      if (isKilled) await system.node(nth).kill()
      ofNodes[nth - 1]?.jump(anyOffset(random))
      if (isKilled) await system.node(nth).start()
    }
  }
  return await injectedRound(
    {
      system: () => ({
        nodes: NODES,
        service: (nth) => {
          const { env = {}, execArgv = [] } = ofNodes[nth - 1] as NodeClock
          return { env, execArgv: [...execArgv, '--import', HOURLY_WORK] }
        },
        ...(database !== undefined && { server: database.server }),
      }),
      async cause(system, random) {
        await whileReceiverIsAway(system, random, async () => {
          if (database !== undefined && random.chance(0.5)) database.clock.jump(offsetWithinDay(random))
          else await jumpOfNodes(system, random)
          await sendAgain(system, random)
        })
      },
      mayBeDropped: options.store === 'sqlite',
    },
    options,
  )
}

/** The largest error of a clock that must still show the same day in UTC for some minutes. */
function offsetWithinDay(random: Random): number {
  const sinceMidnightMs = Date.now() % DAY_MS
  const marginMs = 10 * 60 * SECOND_MS
  return random.int(Math.min(0, marginMs - sinceMidnightMs), Math.max(0, DAY_MS - marginMs - sinceMidnightMs))
}

/** How wrong a clock is: less than a minute, a day or 30 days, either way, or right again. */
function anyOffset(random: Random): number {
  const most = random.pick([0, 60 * SECOND_MS, DAY_MS, 30 * DAY_MS])
  return random.int(-most, most)
}

/** In half of the cases, one receiver is down meanwhile, so that many deliveries wait for a retry. */
async function whileReceiverIsAway(system: System, random: Random, act: () => Promise<void>): Promise<void> {
  const { receiver } = random.pick(system.destinations.slice(0, 5))
  const isAway = random.chance(0.5)
  if (isAway) {
    await receiver.goAway()
    await system.traffic.more(random.int(5, 40))
  }
  try {
    await act()
  } finally {
    if (isAway) await receiver.comeBack()
  }
}

const AGAIN = 20

/** Sends messages that were acknowledged before. They are duplicates: the audit finds those that were accepted or delivered once more. */
async function sendAgain(system: System, random: Random): Promise<void> {
  const { traffic, writeKey } = system
  const known = [...traffic.acknowledged]
  const batch = Array.from({ length: AGAIN }, () => random.pick(known)).map((id) => numberedMessage(id, numberOf(id)))
  // A node that was just started may need a moment.
  await eventually(
    () => sendBatch(random.pick(system.urls()), writeKey, batch),
    (status) => status === 200,
    { what: 'messages that were sent again were answered with 200' },
  )
}

export const CLOCK_JUMPS: readonly Fault[] = [clockJump, clockJumpWithLibfaketime]
