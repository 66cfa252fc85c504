// The usual round: starts a system, causes the fault many times at random moments, and audits. A fault may hit while the system still
// recovers from the previous one. Every few faults, the round waits for the recovery and measures how long it takes.

import { seededRandom } from '../system/random.ts'
import { type System, type SystemOptions, startSystem } from '../system/system.ts'
import { auditSystem } from './audit.ts'
import { startDeletedUsers } from './deleted-users.ts'
import { EMPTY_RESULT, type Fault, type FaultTime, type Injection, type RoundOptions, type RoundResult } from './fault.ts'

/** After this many faults, the next one waits until the system has recovered, and the time is measured. */
const MEASURED_EVERY = 4
/** Messages that are acknowledged before the first fault. Meanwhile, code is compiled and hosts are started. */
const WARM_UP = 100
/** The number of users who are deleted in each round, each during one of the first faults. */
const DELETED_USERS = 3

/** A node without a lease starts no ordered requests after 3 s. The rest is a margin for busy machines. */
const STOPPED_MS = 6_000

export type RoundParts = Omit<Injection, keyof Fault>

export function injected(injection: Injection): Fault {
  return { ...injection, round: (options) => injectedRound(injection, options) }
}

/** For rows that need something of their own in each round, such as a disk. */
export async function injectedRound(injection: RoundParts, options: RoundOptions): Promise<RoundResult> {
  const { store, seed, random, faults: most, deadlineMs, say, patienceMs = PATIENCE_MS } = options
  const {
    between = [5, 60],
    repeats = true,
    isSilent = false,
    hitsAllNodes = false,
    mayBeDropped = false,
    repeatsInOrder = false,
  } = injection
  await using system = await startSystem({ store, random, ...settingsOf(injection, options) })
  const users = await startDeletedUsers(system, seededRandom(seed + DELETED_USERS))
  const faults: (FaultTime & { repeats: boolean })[] = []
  const recoveredMs: number[] = []
  const problems: string[] = []
  try {
    await system.traffic.more(WARM_UP, { deadlineMs: patienceMs })
    await system.caughtUp(patienceMs)
  } catch (error) {
    problems.push(`before the first fault: ${(error as Error).message}\n${logsOf(system)}`)
  }
  while (problems.length === 0 && faults.length < most && (faults.length === 0 || performance.now() < deadlineMs)) {
    let fromMs = performance.now()
    let caused: { repeats: boolean } | void
    try {
      await injection.prepare?.(system)
      await system.traffic.more(random.int(...between), { deadlineMs: patienceMs })
      // At this moment or during the fault. Not awaited: the call may fail until the fault is over.
      if (faults.length < DELETED_USERS) void users.delete()
      fromMs = performance.now()
      caused = await injection.cause(system, random)
    } catch (error) {
      problems.push(`fault ${faults.length + 1} could not be caused: ${(error as Error).message}\n${logsOf(system)}`)
      break
    }
    const toMs = performance.now()
    const sentUntil = injection.stopsSending ? { sentUntilMs: fromMs + STOPPED_MS } : {}
    faults.push({ fromMs, toMs, repeats: caused?.repeats ?? repeats, ...sentUntil })
    say(`fault ${faults.length}, ${system.traffic.acknowledged.size} acknowledged`)
    if (faults.length % MEASURED_EVERY !== 0 && faults.length !== most) continue
    try {
      // One more call must be accepted, and everything before it must arrive.
      await system.traffic.more(1, { deadlineMs: patienceMs })
      await system.caughtUp(patienceMs)
      await system.loaded(patienceMs)
      recoveredMs.push(performance.now() - toMs)
    } catch (error) {
      problems.push(`after fault ${faults.length}: ${(error as Error).message}\n${logsOf(system)}`)
      break
    }
  }
  problems.push(...((await injection.finish?.(system)) ?? []), ...(await users.finish(patienceMs)))
  const nodesAtOnce = hitsAllNodes ? system.nodes.length : 1
  const audit = await auditSystem(system, {
    faults: faults.filter((fault) => fault.repeats),
    nodesAtOnce,
    isSilent,
    repeatsInOrder,
    mayBeDropped,
    deadlineMs: patienceMs,
  }).catch((error: Error) => {
    // The problems before this one are listed first: they usually explain it.
    problems.push(error.message)
    return { ...EMPTY_RESULT, longestPauseMs: 0 }
  })
  problems.push(...audit.problems, ...((await injection.check?.(system)) ?? []))
  if (problems.length > 0) problems.push(logsOf(system))
  return { ...audit, faults: faults.length, recoveredMs, problems }
}

const PATIENCE_MS = 300_000

function settingsOf(injection: RoundParts, options: RoundOptions): Partial<SystemOptions> {
  const { execArgv: more = [] } = options
  const settings = injection.system?.(options) ?? {}
  return {
    ...settings,
    service: (nth) => {
      const { execArgv = [], ...rest } = settings.service?.(nth) ?? {}
      return { ...rest, execArgv: [...more, ...execArgv] }
    },
  }
}

const SHOWN_LINES = 10

/** The last lines that each node logged, without failed attempts, which are frequent. */
export function logsOf(system: System): string {
  const lines = (log: string): string[] => log.split('\n').filter((line) => line !== '' && !line.includes('"the attempt failed'))
  return system.nodes.map(({ name, service }) => [`${name} logged:`, ...lines(service.stderr()).slice(-SHOWN_LINES)].join('\n')).join('\n')
}
