// End-to-end throughput: events per second of each program, from the first byte sent until the last event was
// received and its outcome durably written. Every run also verifies that nothing was lost.

import { nowMs } from '../environment/http-message.ts'
import { cpuUs, peakRssBytes, threadCpuUs } from '../environment/process-stats.ts'
import { createFolder, pause, removeFolder } from '../environment/processes.ts'
import type { Program, RunningProgram } from '../environment/programs.ts'
import { createTraffic, type Load, requireAll, type Traffic } from '../environment/traffic.ts'

export interface DeliveryRun {
  events: number
  eventsPerSecond: number
  acknowledgedPerSecond: number
  cpuUsPerEvent: number
  databaseCpuUsPerEvent: number
  /** `cpuUsPerEvent` by thread. */
  threads: ThreadCosts
  peakRssBytes: number
  missing: number
  duplicates: number
  /** Problems with the run; empty if the run counts. */
  complaints: string[]
}

/** CPU µs per event. */
export interface ThreadCosts {
  main: number
  ingest: number
  writer: number
  senders: number
  /** Garbage collection and compilation in the background. */
  v8: number
  /** Everything else: readers, libuv's pool, threads that ended meanwhile. */
  others: number
}

const SETTLE_LIMIT_MS = 180_000
/** How often the events of a warm-up are repeated at most, and the time after which they are not repeated again. */
const WARM_UPS = 10
const WARM_UP_MS = 12_000

export async function measureDelivery(
  program: Pick<Program, 'start'>,
  events: number,
  warmUpEvents: number,
  load?: Load,
): Promise<DeliveryRun> {
  const folder = createFolder()
  const traffic = await createTraffic()
  try {
    const running = await program.start({ folder, receiverUrl: traffic.receiverUrl })
    try {
      const warmedUp = await warmUp(traffic, running, warmUpEvents, load)
      const [cpuBefore, threadsBefore] = [cpuOf(running), threadsOf(running)]
      const { sent, endedAtMs } = await deliver(traffic, running, events, load)
      const cpu = cpuOf(running).map((us, index) => (us - (cpuBefore[index] ?? 0)) / events)
      const threads = threadCosts(threadsOf(running), threadsBefore, events, cpu[0] ?? 0)
      const { missing, duplicates } = await traffic.received(sent)
      const disagreement = await running.disagreement(warmedUp + events)
      return {
        events,
        eventsPerSecond: events / ((endedAtMs - sent.startedAtMs) / 1_000),
        acknowledgedPerSecond: events / ((sent.lastAnswerAtMs - sent.startedAtMs) / 1_000),
        cpuUsPerEvent: cpu[0] ?? 0,
        databaseCpuUsPerEvent: cpu[1] ?? 0,
        threads,
        peakRssBytes: peakRssBytes(running.pid),
        missing,
        duplicates,
        complaints: [...(missing > 0 ? [`lost ${missing}`] : []), ...(disagreement === undefined ? [] : [disagreement])],
      }
    } finally {
      await running.stop()
    }
  } finally {
    await traffic.close()
    removeFolder(folder)
  }
}

/**
 * Repeats the events until V8 has compiled most of what it will compile: in the first seconds of a service, that takes a tenth of its CPU time. Returns
 * how many events were processed.
 */
async function warmUp(traffic: Traffic, running: RunningProgram, events: number, load?: Load): Promise<number> {
  const endMs = nowMs() + WARM_UP_MS
  let processed = 0
  for (let nth = 0; nth < WARM_UPS && nowMs() < endMs; nth++) {
    await deliver(traffic, running, events, load)
    processed += events
  }
  return processed
}

/** Sends events, and waits until all have arrived and the program has nothing pending. */
export async function deliver(traffic: Traffic, running: Pick<RunningProgram, 'target' | 'remaining'>, events: number, load?: Load) {
  const complete = traffic.expectNext(events, SETTLE_LIMIT_MS)
  const [sent, lastNewAtMs] = await Promise.all([traffic.burst(running.target, events, load).then(requireAll), complete])
  const limit = nowMs() + SETTLE_LIMIT_MS
  while ((await running.remaining()) > 0) {
    if (nowMs() > limit) throw new Error('the program still has pending outcomes after all events arrived')
    await pause(10)
  }
  return { sent, lastNewAtMs, endedAtMs: Math.max(nowMs(), lastNewAtMs) }
}

function cpuOf(running: RunningProgram): number[] {
  return [cpuUs(running.pids ?? [running.pid]), cpuUs(running.databasePids())]
}

function threadsOf(running: RunningProgram): Map<string, number>[] {
  return (running.pids ?? [running.pid]).map(threadCpuUs)
}

function threadCosts(after: Map<string, number>[], before: Map<string, number>[], events: number, totalUs: number): ThreadCosts {
  const of = (isMeant: (name: string) => boolean): number => {
    const sum = (maps: Map<string, number>[]) =>
      maps.flatMap((map) => [...map]).reduce((us, [name, more]) => us + (isMeant(name) ? more : 0), 0)
    return (sum(after) - sum(before)) / events
  }
  // The kernel keeps 15 characters of a name.
  const known = {
    main: of((name) => name === 'MainThread' || name === 'node'),
    ingest: of((name) => name.startsWith('switchyard-inge')),
    writer: of((name) => name.startsWith('switchyard-writ')),
    senders: of((name) => name === 'sender' || name.startsWith('switchyard-send')),
    v8: of((name) => name.startsWith('V8Worker')),
  }
  return { ...known, others: Math.max(0, totalUs - known.main - known.ingest - known.writer - known.senders - known.v8) }
}
