// Runs several processes of the service on one port, as `serve` does with SWITCHYARD_PROCESSES above 1: starts them, replaces those that
// end or hang, stops them all, and adds up their metrics. It holds the listening socket and gives each connection to the next process
// that is free (node:cluster), so a process that hangs gets no more than one. It does no other work and never opens the store.
//
// While no process is ready, only one is starting. So one process prepares an empty database, prints the start message, or reports why
// it cannot start; the others follow once it listens.

import cluster, { type Worker } from 'node:cluster'
import type { Log } from '../../logging/log.ts'
import { MetricSums } from '../../observe/metric-sums.ts'
import { ASSIGNMENT_VARIABLE, type Assignment, HEARTBEAT_MS, type ProcessMessage } from './supervised.ts'

export interface SupervisorOptions {
  processes: number
  /** 0: the first process picks a port, and all others use the same. */
  port: number
  log: Pick<Log, 'info' | 'warn' | 'error'>
  /** The exit code of a process that was told to stop and could not finish everything in time. */
  forcedCode: number
  limits?: Partial<typeof LIMITS>
}

const LIMITS = {
  /** A process that has sent no heartbeat for this long is killed and replaced. */
  hungMs: 30_000,
  /** Additional time for a process that is still loading its code, which takes long on a busy machine. */
  loadMs: 30_000,
  /** Each process stops within 9.2 seconds by itself, and the documentation promises 10 for all. */
  stopMs: 9_600,
  /** A process that was ready for this long is replaced at once when it ends. */
  stableMs: 60_000,
  maxRestartDelayMs: 30_000,
  /** How many processes in a row may fail to start while none is ready. */
  failedStarts: 5,
  /** Longer than a process waits for the store's counts. */
  metricsMs: 3_000,
}

interface Slot {
  index: number
  worker: Worker | null
  /** When it began to listen; null before. */
  readySinceMs: number | null
  missedHeartbeats: number
  /** How often in a row the process of this slot ended soon after its start. */
  failures: number
  startAtMs: number
}

/**
 * `stopped`: all processes have stopped as asked. `forced`: they were told to stop, and at least one could not finish everything in time.
 * `failed`: something else was wrong. The reason has been logged or printed.
 */
export type SupervisorEnd = 'stopped' | 'forced' | 'failed'

export function supervise(options: SupervisorOptions): Promise<SupervisorEnd> {
  return new Promise((resolve) => new Supervisor(options, resolve).run())
}

class Supervisor {
  readonly #log: SupervisorOptions['log']
  readonly #limits: typeof LIMITS
  readonly #slots: Slot[]
  readonly #forcedCode: number
  readonly #resolve: (end: SupervisorEnd) => void
  readonly #sums = new MetricSums()
  #ticker: NodeJS.Timeout | undefined
  /** The port that processes are told to listen on, and the one that they do listen on. */
  #port: number
  #boundPort: number | null = null
  #hasAnnounced = false
  #failedStarts = 0
  /** How it will end; null until it stops. */
  #end: SupervisorEnd | null = null
  #collecting: Promise<string | null> | null = null
  #requests = 0
  /** Answers to the request in progress. */
  #answers: { request: number; indexes: Set<number>; check: () => void } | null = null

  constructor({ processes, port, log, forcedCode, limits = {} }: SupervisorOptions, resolve: (end: SupervisorEnd) => void) {
    this.#log = log
    this.#forcedCode = forcedCode
    this.#limits = { ...LIMITS, ...limits }
    this.#port = port
    this.#resolve = resolve
    this.#slots = Array.from({ length: processes }, (_, at) => ({
      index: at + 1,
      worker: null,
      readySinceMs: null,
      missedHeartbeats: 0,
      failures: 0,
      startAtMs: 0,
    }))
  }

  run(): void {
    // Not all platforms do this by default.
    cluster.schedulingPolicy = cluster.SCHED_RR
    process.on('SIGTERM', (signal) => this.#stop(signal))
    process.on('SIGINT', (signal) => this.#stop(signal))
    this.#ticker = setInterval(() => this.#tick(), HEARTBEAT_MS)
    this.#startDue()
  }

  get #ready(): Slot[] {
    return this.#slots.filter(({ readySinceMs }) => readySinceMs !== null)
  }

  #startDue(): void {
    const now = performance.now()
    for (const slot of this.#slots) {
      if (this.#end !== null || slot.worker !== null || slot.startAtMs > now) continue
      const isAnyReady = this.#ready.length > 0
      if (!isAnyReady && this.#slots.some(({ worker }) => worker !== null)) return
      // While a process listens, port 0 means the port that node:cluster picked for that process. When none listens, the port must be given.
      if (!isAnyReady) this.#port = this.#boundPort ?? this.#port
      this.#start(slot)
    }
  }

  #start(slot: Slot): void {
    const assignment: Assignment = { index: slot.index, port: this.#port, announces: !this.#hasAnnounced }
    let worker: Worker
    try {
      worker = cluster.fork({ [ASSIGNMENT_VARIABLE]: JSON.stringify(assignment) })
    } catch (error) {
      // Thrown for example if there is not enough memory. Other reasons are reported by an event.
      return this.#notStarted(slot, null, error as Error)
    }
    closeUnclaimedConnections(worker)
    slot.worker = worker
    slot.missedHeartbeats = -this.#limits.loadMs / HEARTBEAT_MS
    this.#log.info({ child: slot.index, pid: worker.process.pid }, 'started a process')
    // A message may be read after the exit of its process was reported, when its slot is empty or has a new process. Such messages are ignored.
    worker.on('message', (message: ProcessMessage) => {
      if (slot.worker === worker) this.#receive(slot, message)
    })
    worker.on('listening', ({ port }) => {
      if (slot.worker === worker) this.#listening(slot, port)
    })
    worker.once('exit', (code, signal) => this.#ended(slot, worker, code, signal))
    // If the process could not be started at all, there is no exit. Other errors, such as a failed message to a process that is ending, are followed by an exit.
    worker.on('error', (error) => {
      if (worker.process.pid === undefined) this.#notStarted(slot, worker, error)
    })
  }

  /** Logs only the message: the error also has the arguments of the process, and the connection string among them may contain a password. */
  #notStarted(slot: Slot, worker: Worker | null, { message }: Error): void {
    this.#log.error({ child: slot.index, reason: message }, 'a process could not be started')
    this.#ended(slot, worker, 1, null)
  }

  #listening(slot: Slot, port: number): void {
    this.#boundPort ??= port
    // All other processes ended after this one was started, so port 0 gave it a different port. Its replacement is given the right one.
    if (port !== this.#boundPort) slot.worker?.process.kill('SIGKILL')
    if (slot.readySinceMs !== null || port !== this.#boundPort) return
    slot.readySinceMs = performance.now()
    this.#hasAnnounced = true
    this.#failedStarts = 0
    if (this.#ready.length === this.#slots.length) this.#log.info({ processes: this.#slots.length }, 'all processes are listening')
    this.#startDue()
  }

  #ended(slot: Slot, worker: Worker | null, code: number, signal: string | null): void {
    if (slot.worker !== worker) return
    const { readySinceMs } = slot
    slot.worker = null
    slot.readySinceMs = null
    this.#sums.end(slot.index)
    this.#answers?.check()
    if (this.#end !== null) {
      // A process that this supervisor killed has a signal and no code.
      if (readySinceMs !== null && code !== 0 && (this.#end === 'stopped' || signal === null))
        this.#end = code === this.#forcedCode && this.#end !== 'failed' ? 'forced' : 'failed'
      if (this.#slots.every((each) => each.worker === null)) this.#finish(this.#end)
      return
    }
    if (!this.#hasAnnounced) {
      // It has printed the reason, unless it was killed.
      if (signal !== null) this.#log.error({ child: slot.index, signal }, 'the first process was killed before it was ready')
      return this.#giveUp()
    }
    if (readySinceMs === null && this.#ready.length === 0 && ++this.#failedStarts >= this.#limits.failedStarts) {
      this.#log.error({ code, signal }, `no process is running, and ${this.#failedStarts} in a row failed to start: giving up`)
      return this.#giveUp()
    }
    const now = performance.now()
    slot.failures = readySinceMs !== null && now - readySinceMs >= this.#limits.stableMs ? 0 : slot.failures + 1
    const delayMs = slot.failures <= 1 ? 0 : Math.min(this.#limits.maxRestartDelayMs, 1_000 * 2 ** (slot.failures - 2))
    slot.startAtMs = now + delayMs
    this.#log.error({ child: slot.index, code, signal, delayMs }, 'a process ended unexpectedly and is replaced')
    this.#startDue()
  }

  /** Counts missed heartbeats instead of comparing times, so that it does not kill every process after it was suspended itself. */
  #tick(): void {
    for (const slot of this.#slots) {
      if (slot.worker === null || this.#end !== null) continue
      if (++slot.missedHeartbeats * HEARTBEAT_MS < this.#limits.hungMs) continue
      this.#log.error({ child: slot.index }, `a process has not responded for ${this.#limits.hungMs / 1_000} s and is killed`)
      slot.missedHeartbeats = 0
      slot.worker.process.kill('SIGKILL')
    }
    this.#startDue()
  }

  #receive(slot: Slot, message: ProcessMessage): void {
    slot.missedHeartbeats = 0
    if (message.kind === 'metrics') {
      if (message.text === null) return
      // Also used if the answer is late: it is still the most recent one.
      this.#sums.update(slot.index, message.text)
      if (this.#answers?.request === message.request) this.#answers.indexes.add(slot.index)
      this.#answers?.check()
    }
    if (message.kind !== 'metrics-wanted') return
    this.#collecting ??= this.#collect().finally(() => {
      this.#collecting = null
    })
    const { request } = message
    this.#collecting.then(
      (text) => send(slot.worker, { kind: 'metrics', request, text }),
      (err: unknown) => this.#log.error({ err }, 'adding up the metrics of all processes failed'),
    )
  }

  async #collect(): Promise<string | null> {
    const request = ++this.#requests
    const indexes = new Set<number>()
    const asked = this.#ready
    await new Promise<void>((resolve) => {
      const deadline = setTimeout(resolve, this.#limits.metricsMs)
      const check = (): void => {
        // A process that has ended since will not answer.
        if (!asked.every(({ index, worker }) => indexes.has(index) || worker === null)) return
        clearTimeout(deadline)
        resolve()
      }
      this.#answers = { request, indexes, check }
      for (const { worker } of asked) send(worker, { kind: 'metrics-wanted', request })
      check()
    })
    this.#answers = null
    return this.#sums.text(indexes, this.#slots.length)
  }

  #stop(signal: NodeJS.Signals): void {
    // A second signal ends everything at once.
    if (this.#end !== null) {
      this.#kill()
      return this.#finish('failed')
    }
    this.#end = 'stopped'
    this.#log.info({ signal }, 'stopping')
    const running = this.#slots.filter(({ worker }) => worker !== null)
    if (running.length === 0) return this.#finish('stopped')
    for (const { worker } of running) worker?.process.kill('SIGTERM')
    setTimeout(() => {
      const left = this.#slots.filter(({ worker }) => worker !== null).map(({ index }) => index)
      this.#log.error({ children: left }, `processes did not stop within ${this.#limits.stopMs / 1_000} s and are killed`)
      if (this.#end === 'stopped') this.#end = 'forced'
      this.#kill()
    }, this.#limits.stopMs).unref()
  }

  #giveUp(): void {
    this.#end = 'failed'
    this.#kill()
    this.#finish('failed')
  }

  #kill(): void {
    for (const { worker } of this.#slots) worker?.process.kill('SIGKILL')
  }

  #finish(end: SupervisorEnd): void {
    clearInterval(this.#ticker)
    if (end === 'stopped') this.#log.info('stopped')
    this.#resolve(end)
  }
}

function send(worker: Worker | null, message: ProcessMessage): void {
  if (worker?.isConnected()) worker.process.send(message, undefined, undefined, () => {})
}

/**
 * If a process is killed while node:cluster passes a connection to it, node:cluster neither closes that connection nor passes it to another
 * process: the client would wait until its own timeout. So connections are remembered until the process has confirmed them. When the process ends, the unconfirmed ones are closed.
 * This relies on messages of node:cluster that are not documented. If they change, connections are no longer closed here, and nothing else.
 */
function closeUnclaimedConnections({ process: child }: Worker): void {
  const unclaimed = new Map<unknown, { close?: () => void }>()
  const send = child.send.bind(child) as (message: ClusterMessage, ...rest: unknown[]) => boolean
  child.send = (message: ClusterMessage, ...rest: unknown[]) => {
    const [connection] = rest
    if (message.act === 'newconn' && typeof connection === 'object' && connection !== null) unclaimed.set(message.seq, connection)
    return send(message, ...rest)
  }
  child.on('internalMessage', ({ ack }: ClusterMessage) => unclaimed.delete(ack))
  child.once('exit', () => {
    for (const connection of unclaimed.values()) connection.close?.()
  })
}

interface ClusterMessage {
  act?: string
  seq?: number
  /** The `seq` of the message that this one confirms. */
  ack?: number
}
