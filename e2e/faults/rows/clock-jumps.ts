// The wall clock of a node is set wrong: by seconds, hours or days, forwards and back, while it runs and while it is stopped.

import { createWallClock } from '../../wall-clock.ts'
import type { Fault, RoundOptions, RoundResult } from '../fault.ts'
import { numberedMessage, numberOf } from '../numbered-message.ts'
import type { Random } from '../random.ts'
import { injectedRound } from '../round.ts'
import type { System } from '../system.ts'

const SECOND_MS = 1_000
const HOUR_MS = 3_600 * SECOND_MS
const DAY_MS = 24 * HOUR_MS
const NODES = 2

const clockJump: Fault = {
  key: 'clock-jump',
  title: 'The clock of a node jumps',
  how: 'The wall clock of a node, or of each on its own, is set to a time that is wrong by up to a minute, a day or 30 days, forwards or back; a third of the time while the node is killed and started again. Every time, messages that were acknowledged before are sent again',
  stores: ['sqlite', 'postgres'],
  perRound: 20,
  note: 'On SQLite, a clock that is ahead by more than the retention time (7 days) drops messages whose deliveries have ended; nothing that is still owed, and duplicates are still recognized',
  round: clockRound,
}

async function clockRound(options: RoundOptions): Promise<RoundResult> {
  await using clocks = new AsyncDisposableStack()
  const ofNodes = Array.from({ length: NODES }, () => clocks.use(createWallClock()))
  const jump = (nth: number, offsetMs: number): void => ofNodes[nth - 1]?.jump(offsetMs)
  return await injectedRound(
    {
      system: () => ({ nodes: NODES, service: (nth) => ({ execArgv: ofNodes[nth - 1]?.execArgv ?? [] }) }),
      async cause(system, random) {
        await whileReceiverIsAway(system, random, async () => {
          const all = system.nodes.map((_, at) => at + 1)
          for (const nth of random.chance(0.3) ? all : [random.pick(all)]) {
            const isKilled = random.chance(0.3)
            if (isKilled) await system.node(nth).kill()
            jump(nth, anyOffset(random))
            if (isKilled) await system.node(nth).start()
          }
          await sendAgain(system, random)
        })
      },
      mayBeDropped: options.store === 'sqlite',
    },
    options,
  )
}

/** How wrong a clock is: less than a minute, a day or 30 days, either way, or right again. */
export function anyOffset(random: Random): number {
  const most = random.pick([0, 60 * SECOND_MS, DAY_MS, 30 * DAY_MS])
  return random.int(-most, most)
}

/** Half of the time one receiver is away meanwhile, so that many deliveries wait for a retry. */
export async function whileReceiverIsAway(system: System, random: Random, act: () => Promise<void>): Promise<void> {
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

/** Messages that were acknowledged before. They are duplicates: the audit finds those that were accepted or delivered once more. */
export async function sendAgain(system: System, random: Random): Promise<void> {
  const { traffic, writeKey } = system
  const known = [...traffic.acknowledged]
  const batch = Array.from({ length: AGAIN }, () => random.pick(known)).map((id) => numberedMessage(id, numberOf(id)))
  const response = await fetch(`${random.pick(system.urls())}/v1/batch`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${writeKey}:`)}`, 'content-type': 'application/json' },
    body: JSON.stringify({ batch }),
  })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`messages that were sent again were answered with ${response.status} ${text}`)
}

export const CLOCK_JUMPS: readonly Fault[] = [clockJump]
