// Clients under fault: processes that make calls of @switchyard/node, some with a spool, through a load balancer. Those with a spool share
// its folder. They replace the usual traffic, so the audit compares what the clients promised with what receivers accepted:
//
// - With a spool, a message counts as acknowledged when its call has returned. From then on it survives a killed process.
// - Without, it counts as acknowledged when its callback was called without an error.
//
// If a process is killed during a call, it is not known whether the message is safe: it may arrive or not. finish() asks the service.

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fastFolder } from '../../../packages/server/src/store/fixtures/fast-folder.ts'
import type { SentOrder } from '../../cluster/sent-order.ts'
import type { Call, Traffic } from '../../cluster/traffic.ts'
import { Signals, type Waiting } from '../../system/signals.ts'
import type { System, TrafficSettings } from '../system/system.ts'
import type { ClientOrder } from './client-program.ts'
import { type LoadBalancer, startLoadBalancer } from './load-balancer.ts'

const PROGRAM = join(import.meta.dirname, 'client-program.ts')
const COMPILED = process.env['NODE_COMPILE_CACHE'] ?? join(tmpdir(), 'switchyard-e2e-compiled')

export interface ClientsOptions {
  /** The number of clients with a spool, and of those without. */
  spooled: number
  unspooled: number
}

export function startClients(options: ClientsOptions): (settings: TrafficSettings) => Promise<Clients> {
  return async (settings) => {
    const clients = new Clients(settings, options, await startLoadBalancer(settings.targets))
    for (const client of clients.all) client.start()
    return clients
  }
}

/** The clients of a system that was started with them. */
export function clientsOf({ traffic }: System): Clients {
  if (!(traffic instanceof Clients)) throw new Error('this system has no clients')
  return traffic
}

export class Clients implements Traffic, AsyncDisposable {
  readonly acknowledged = new Set<string>()
  readonly sent = new Set<string>()
  readonly calls: Call[] = []
  readonly rejected: Call[] = []
  readonly problems: string[] = []
  readonly balancer: LoadBalancer
  readonly all: readonly Client[]
  /** The messages of calls that have not returned: in progress, or the client was killed. */
  readonly #uncertain = new Set<string>()
  readonly #signals = new Signals()
  readonly #spool = mkdtempSync(join(fastFolder(), 'switchyard-spool-'))
  readonly #api: System['api']

  constructor({ perSecond, writeKey, api }: TrafficSettings, { spooled, unspooled }: ClientsOptions, balancer: LoadBalancer) {
    this.balancer = balancer
    this.#api = api
    const order = { host: balancer.url, writeKey, perSecond: perSecond / (spooled + unspooled) }
    this.all = Array.from(
      { length: spooled + unspooled },
      (_, at) =>
        new Client(`client${at + 1}`, { ...order, spool: at < spooled ? this.#spool : null }, (line) => this.#read(line, at < spooled)),
    )
  }

  get order(): SentOrder {
    return this.balancer.order
  }

  until(condition: () => boolean, waiting: Waiting = {}): Promise<void> {
    const state = (): string =>
      `${this.acknowledged.size} of ${this.sent.size} acknowledged; ${this.balancer.refused.length} requests refused`
    return this.#signals.until(condition, { state, ...waiting })
  }

  more(messages: number, waiting?: Waiting): Promise<void> {
    const wanted = this.acknowledged.size + messages
    return this.until(() => this.acknowledged.size >= wanted, { what: `${messages} more acknowledged`, ...waiting })
  }

  /** Lets every client deliver its messages and end. The spool must be empty then. */
  async finish({ deadlineMs = 60_000 }: Waiting = {}): Promise<void> {
    this.balancer.refuse = null
    const late = setTimeout(() => {
      for (const { process } of this.all) process?.kill('SIGKILL')
    }, deadlineMs)
    for (const client of this.all) this.problems.push(...(await client.finish()))
    clearTimeout(late)
    const left = readdirSync(this.#spool, { recursive: true, encoding: 'utf8' })
    if (left.length > 0) this.problems.push(`the spool is not empty: ${left.slice(0, 10).join(', ')}`)
    for (const id of this.#uncertain) {
      const { data } = await this.#api<{ data: unknown[] }>(`/messages?messageId=${id}`)
      if (data.length > 0) this.acknowledged.add(id)
      else this.sent.delete(id)
    }
  }

  [Symbol.dispose](): void {
    for (const { process } of this.all) process?.kill('SIGKILL')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.all.map((client) => client.kill()))
    await this.balancer[Symbol.asyncDispose]()
    rmSync(this.#spool, { recursive: true, force: true })
  }

  #read(line: string, isSpooled: boolean): void {
    const [what = '', about = ''] = line.split(' ')
    if (what === 'calls') {
      this.sent.add(about)
      this.#uncertain.add(about)
    } else if (what === 'called') {
      this.#uncertain.delete(about)
      if (isSpooled) this.acknowledged.add(about)
    } else if (what === 'delivered') this.acknowledged.add(about)
    else if (what === 'answered')
      this.calls.push({ target: this.balancer.url, startMs: performance.now(), ms: 0, status: Number(about), retryAfter: null, nth: 1 })
    else if (what === 'failed') this.problems.push(`a client reported: ${line}`)
    else if (what === 'early') this.problems.push(`a client sent a request ${about} ms before the end of a pause that it was asked for`)
    this.#signals.notify()
  }
}

/** One client. Each time it is started, it is a new process. */
export class Client {
  process: ChildProcess | null = null
  readonly #name: string
  readonly #order: Omit<ClientOrder, 'name'>
  readonly #onLine: (line: string) => void
  readonly #signals = new Signals()
  #starts = 0
  #lines = 0
  #stderr = ''
  #closed = ''
  #ended: Promise<number | null> = Promise.resolve(0)

  constructor(name: string, order: Omit<ClientOrder, 'name'>, onLine: (line: string) => void) {
    this.#name = name
    this.#order = order
    this.#onLine = onLine
  }

  get hasSpool(): boolean {
    return this.#order.spool !== null
  }

  start(): void {
    const order: ClientOrder = { ...this.#order, name: `${this.#name}.${++this.#starts}` }
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('SWITCHYARD_') && !name.startsWith('NODE_'))
    const env = { ...Object.fromEntries(inherited), NODE_COMPILE_CACHE: COMPILED }
    const child = spawn(process.execPath, [PROGRAM, JSON.stringify(order)], { env, stdio: 'pipe' })
    this.process = child
    this.#stderr = ''
    this.#closed = ''
    child.stdin.on('error', () => {})
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text
    })
    createInterface({ input: child.stdout }).on('line', (line) => {
      this.#lines++
      if (line.startsWith('closed ')) this.#closed = line.slice('closed '.length)
      else this.#onLine(line)
      this.#signals.notify()
    })
    // `close` comes when its output was read to the end.
    this.#ended = new Promise((resolve, reject) => {
      child.on('error', reject)
      child.on('close', (code) => {
        resolve(code)
        this.#signals.notify()
      })
    })
  }

  /** Resolves when it has printed this many more lines, so that it is busy at that moment. */
  moreLines(count: number): Promise<void> {
    const wanted = this.#lines + count
    return this.#signals.until(() => this.#lines >= wanted, {
      what: `${this.#name} prints ${count} more lines`,
      state: () => `it printed to stderr:\n${this.#stderr}`,
    })
  }

  /** Makes calls at once. */
  call(count: number): void {
    this.process?.stdin?.write(`calls ${count}\n`)
  }

  /** Sends SIGKILL. */
  async kill(): Promise<void> {
    this.process?.kill('SIGKILL')
    await this.#ended
  }

  /** Lets it deliver everything and end. Returns problems. */
  async finish(): Promise<string[]> {
    this.process?.stdin?.write('finish\n')
    const code = await this.#ended
    const { failed, pending } = JSON.parse(this.#closed || '{}') as { failed?: number; pending?: number }
    if (code === 0 && failed === 0 && pending === 0) return []
    return [`${this.#name} ended with code ${code} and the result "${this.#closed}"; it printed to stderr:\n${this.#stderr.slice(-1_500)}`]
  }
}
