// One run: a fresh counting server, a fresh process with one client and one workload, and the deadlines of both. Every
// process started here has ended when measure() returns. The results of several runs are evaluated elsewhere.

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Counted, ServerReport } from './counting-server.ts'
import type { Job, WorkloadReport } from './workload.ts'

export type Ending = 'ended' | 'stayed open' | 'stalled' | 'out of time' | 'out of memory' | 'crashed'

export interface Run {
  callsMade: number
  /** The time of the loop that makes the calls. */
  callsPerSecond: number
  /** From the first call to the last byte of the last new message; undefined if nothing arrived. */
  deliveredMs: number | undefined
  peakRssBytes: number
  /** CPU time of the client's process, which varies less than elapsed time on a machine with other work. */
  cpuMs: number
  received: Counted
  lost: number
  isExactlyOnce: boolean
  ending: Ending
  error?: string
}

interface Deadlines {
  /** The run ends if no byte is received for this long. */
  stallMs: number
  totalMs: number
}

/** After close() a client must send nothing more. This much silence is taken as proof. */
const SILENCE_AFTER_CLOSE_MS = 8_000

const START_LIMIT_MS = 20_000
/** Parsing a million messages takes about ten seconds. */
const COUNT_LIMIT_MS = 120_000

const running = new Set<ChildProcess>()
process.on('exit', killAll)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))

function killAll(): void {
  for (const child of running) child.kill('SIGKILL')
}

export async function measure(job: Omit<Job, 'host'>, deadlines: Deadlines, nodeOptions: string[] = []): Promise<Run> {
  // The receiver keeps every body until it counts: a million messages are about 700 MB, outside the heap.
  const server = start('counting-server.ts', [])
  try {
    const [listening] = (await once(server, 'message', { signal: AbortSignal.timeout(START_LIMIT_MS) })) as [ServerReport]
    if (listening.kind !== 'listening') throw new Error('the counting server did not start')
    const host = `http://127.0.0.1:${listening.port}`
    const worker = start('workload.ts', [JSON.stringify({ ...job, host })], nodeOptions)
    const { last, ending } = await watch(worker, server, deadlines)
    const received = await count(server, job.calls)
    return summary(last, received, ending)
  } finally {
    server.kill('SIGKILL')
  }
}

function start(file: string, args: string[], nodeOptions: string[] = []): ChildProcess {
  // Output is discarded, because a peer may log a line for each dropped message, and the terminal must not be measured.
  const child = fork(join(import.meta.dirname, file), args, { execArgv: nodeOptions, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
  running.add(child)
  child.on('exit', () => running.delete(child))
  return child
}

/** Watches one worker until it ends by itself or is killed. */
async function watch(worker: ChildProcess, server: ChildProcess, { stallMs, totalMs }: Deadlines) {
  let last: WorkloadReport | undefined
  let ending: Ending | undefined
  let bodyBytes = 0
  const startedAt = performance.now()
  let progressAt = startedAt
  worker.on('message', (report: WorkloadReport) => {
    last = { ...last, ...report }
    progressAt = performance.now()
  })
  const onServerReport = (report: ServerReport) => {
    if (report.kind === 'progress' && report.bodyBytes > bodyBytes) {
      bodyBytes = report.bodyBytes
      progressAt = performance.now()
    }
  }
  server.on('message', onServerReport)
  const watchdog = setInterval(() => {
    const silentMs = performance.now() - progressAt
    if (last?.state === 'closed' && silentMs > SILENCE_AFTER_CLOSE_MS) ending = 'stayed open'
    else if (silentMs > stallMs) ending = 'stalled'
    else if (performance.now() - startedAt > totalMs) ending = 'out of time'
    if (ending) worker.kill('SIGKILL')
  }, 250)
  const [code, signal] = (await once(worker, 'exit')) as [number | null, NodeJS.Signals | null]
  clearInterval(watchdog)
  server.off('message', onServerReport)
  // V8 aborts when the heap is full; the kernel kills when the machine's memory is.
  ending ??= code === 0 ? 'ended' : signal === 'SIGABRT' || signal === 'SIGKILL' || code === 134 ? 'out of memory' : 'crashed'
  return { last, ending }
}

async function count(server: ChildProcess, expected: number): Promise<Counted> {
  const counted = new Promise<Counted>((resolve, reject) => {
    server.on('message', (report: ServerReport) => report.kind === 'counted' && resolve(report))
    server.on('exit', () => reject(new Error('the counting server died: check that enough memory is free')))
  })
  server.send(expected)
  const deadline = setTimeout(() => server.kill('SIGKILL'), COUNT_LIMIT_MS)
  return await counted.finally(() => clearTimeout(deadline))
}

function summary(last: WorkloadReport | undefined, received: Counted, ending: Ending): Run {
  const callsMade = last?.callsMade ?? 0
  const lost = Math.max(0, callsMade - received.distinct)
  return {
    callsMade,
    callsPerSecond: last ? callsMade / (last.loopMs / 1_000) : 0,
    deliveredMs: last && received.distinct > 0 ? received.lastNewAtMs - last.startedAtMs : undefined,
    peakRssBytes: last?.peakRssBytes ?? 0,
    cpuMs: last?.cpuMs ?? 0,
    received,
    lost,
    isExactlyOnce: callsMade > 0 && lost === 0 && received.duplicates === 0 && received.distinctIds === callsMade,
    ending,
    ...(last?.error === undefined ? {} : { error: last.error }),
  }
}
