// Concurrent random changes through the control API of all nodes, one of which is killed in the middle. After each kill, the calls must be
// explained by the model (explain.ts), every node must show the same configuration, and the tracking API of every node must follow it.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Node } from '../../cluster/cluster.ts'
import { eventually } from '../../system/signals.ts'
import type { Random } from '../system/random.ts'
import type { System } from '../system/system.ts'
import { type Call, unexplained } from './explain.ts'
import { Messages, Period } from './messages.ts'
import { EMPTY, type Operation, type State } from './model.ts'
import { Operations } from './operations.ts'
import { Quarantine } from './quarantine.ts'
import { Replays } from './replays.ts'
import { attempt, Directory, list } from './requests.ts'
import { Users } from './users.ts'

const WORKERS = 5
const AGREE_MS = 60_000
const DELIVERED_MS = 120_000
const SHOWN = 10

type Task = (node: Node) => Promise<void>

export class Changes {
  readonly #system: System
  readonly #random: Random
  readonly #operations: Operations
  readonly #messages: Messages
  readonly #directory: Directory
  readonly #users: Users
  readonly #replays: Replays
  readonly #quarantine: Quarantine
  readonly #problems: string[] = []
  readonly #seenEntries = new Set<string>()
  /** Write keys that were removed, also with their source. */
  readonly #removedKeys = new Set<string>()
  /** Deletion requests that are not answered yet. They wait for the leases of killed nodes, so a round does not wait for them. */
  readonly #waiting = new Set<Promise<void>>()
  #state: State = EMPTY
  /** The model does not know the state any more. */
  #isUnexplained = false
  #calls: Call[] = []
  /** Ends when the killed node runs again. */
  #restart: Promise<void> = Promise.resolve()

  private constructor(system: System, random: Random, messages: Messages, receiverUrl: string) {
    this.#system = system
    this.#random = random
    this.#messages = messages
    this.#operations = new Operations(random)
    this.#directory = new Directory(receiverUrl)
    this.#users = new Users(messages, this.#directory)
    this.#replays = new Replays(this.#directory)
    this.#quarantine = new Quarantine(this.#directory, messages)
  }

  /** Creates the first sources, destinations and plans. */
  static async start(system: System, random: Random): Promise<Changes> {
    const messages = new Messages(random)
    system.defer(() => messages[Symbol.asyncDispose]())
    const changes = new Changes(system, random, messages, await messages.start())
    for (const operation of changes.#operations.first()) await changes.#make(changes.#running(), operation)
    await changes.#compare()
    if (Object.keys(changes.#state.plans).length === 0) throw new Error('the first sources, destinations and plans could not be created')
    return changes
  }

  /** Makes concurrent changes, kills a node while one of them is in flight on it, starts it again, and compares. */
  async killDuringChanges(): Promise<void> {
    const random = this.#random
    const tasks = this.#tasks()
    const fatal = random.int(2, tasks.length - 3)
    const delayMs = random.pick([0, 0, 1, 2, 4, 8, 15, 30])
    let started = 0
    let killed: Promise<void> | undefined
    const work = async (): Promise<void> => {
      for (let task = tasks.shift(); task !== undefined; task = tasks.shift()) {
        if (this.#runningNodes().length === 0) await this.#restart
        const node = this.#running()
        const isFatal = started++ === fatal
        const done = task(node)
        if (isFatal) killed = this.#kill(node, delayMs)
        await done
      }
    }
    await Promise.all(Array.from({ length: WORKERS }, work))
    if (killed === undefined) throw new Error('no node was killed')
    await killed
    await this.#compare()
  }

  #kill(node: Node, delayMs: number): Promise<void> {
    const restart = async (): Promise<void> => {
      await sleep(delayMs)
      await node.kill()
      if (this.#system.store === 'postgres' && this.#random.chance(0.3)) await this.#system.traffic.more(this.#random.int(1, 40))
      await node.start()
    }
    this.#restart = restart()
    return this.#restart
  }

  #runningNodes(): Node[] {
    return this.#system.nodes.filter(({ isUp }) => isUp)
  }

  #running(): Node {
    return this.#random.pick(this.#runningNodes())
  }

  // ── Operations ──

  #tasks(): Task[] {
    const random = this.#random
    const changes = this.#operations.next(this.#state, random.int(6, 12))
    const tasks: Task[] = changes.map(
      ({ operation, wantsMatch }) =>
        (node) =>
          this.#make(node, operation, wantsMatch),
    )
    const sources = Object.entries(this.#state.sources)
    const destinations = Object.keys(this.#state.destinations)
    this.#users.add()
    const users = this.#users.named()
    const add = (task: Task): void => void tasks.splice(random.int(0, tasks.length), 0, task)
    for (let count = random.int(3, 6); count > 0; count--) {
      const [source, { keys = [] }] = random.pick(sources)
      const key = random.pick(keys)
      add(async ({ url }) => void (await this.#messages.send(url, source, key, users)))
    }
    const names = sources.map(([name]) => name)
    if (random.chance(0.4)) {
      const source = random.pick(names)
      const does = random.chance(0.7) ? 'release' : 'delete'
      add(({ url }) => this.#quarantine.end(url, source, does))
    }
    if (destinations.length > 0 && random.chance(0.4)) {
      const destination = random.pick(destinations)
      const rate = random.chance(0.5) ? 5 : null
      add(({ url }) => this.#replays.create(url, destination, rate))
    }
    if (random.chance(0.2)) add(({ url }) => this.#replays.cancel(url))
    const user = this.#users.nextToDelete()
    if (user !== undefined && random.chance(0.5)) {
      const some = names.filter(() => random.chance(0.5))
      const suppress = random.chance(0.8)
      add(async ({ url }) => this.#waitFor(this.#users.delete(url, user, some.length > 0 ? some : names.slice(0, 1), suppress)))
    }
    const [suppressed] = this.#users.suppressed()
    if (suppressed !== undefined && random.chance(0.15)) add(({ url }) => this.#users.endSuppression(url, suppressed))
    return tasks
  }

  /** Keeps the promise without waiting for it. */
  #waitFor(call: Promise<void>): void {
    const ended = call.catch((error: Error) => void this.#problems.push(error.message)).finally(() => this.#waiting.delete(ended))
    this.#waiting.add(ended)
  }

  async #make(node: Node, planned: Operation, wantsMatch = false): Promise<void> {
    let operation = planned
    let tag: string | undefined
    if (wantsMatch) {
      // Often, it is read on one node and changed on another.
      const { status, body, tag: read } = await attempt(this.#running().url, `/${planned.kind}/${this.#directory.id(planned.name)}`)
      if (status !== 200 || read === null) return
      tag = read
      operation = { ...planned, ifShown: this.#directory.shown(planned.kind, body) }
    }
    const request = this.#directory.request(operation)
    if (request === undefined) return
    const call: Call = { operation, node: node.name, startMs: performance.now(), endMs: Number.POSITIVE_INFINITY, outcome: { is: 'lost' } }
    const { status, body } = await attempt(node.url, request.path, { ...request, ...(tag !== undefined && { tag }) })
    if (status === undefined) return
    this.#calls.push(call)
    if (status === null) return
    call.endMs = performance.now()
    if (status >= 400) {
      call.outcome = { is: 'refused', code: String(body['code']) }
      if (status === 500) this.#problems.push(`${request.method} ${request.path} was answered with 500`)
      return
    }
    if (operation.does === 'create') this.#directory.learn(body['id'] as string, operation.name)
    const isShown =
      operation.does === 'create' || operation.does === 'update' || operation.does === 'restore' || operation.does === 'add key'
    call.outcome = { is: 'done', ...(isShown && { shown: this.#directory.shown(operation.kind, body) }) }
  }

  // ── Comparing ──

  /** Ends a period: all nodes must agree on a configuration that explains the calls. */
  async #compare(): Promise<void> {
    const calls = this.#calls.sort((one, other) => one.startMs - other.startMs)
    const before = this.#state
    const urls = this.#system.urls()
    let why: string | undefined
    const found = await eventually(
      async () => {
        const states = await Promise.all(urls.map((url) => this.#directory.state(url, {}))).catch((error: Error) => error)
        if (states instanceof Error) why = states.message
        else if (states.some((state) => JSON.stringify(state) !== JSON.stringify(states[0])))
          why = `the nodes show different configurations:\n${states.map((state) => JSON.stringify(state)).join('\n')}`
        else {
          const state = { ...(states[0] as State), entries: await this.#newEntries(urls[0] ?? '') }
          why = unexplained(before, calls, state)
          return state
        }
        return EMPTY
      },
      () => why === undefined,
      { deadlineMs: AGREE_MS },
    ).catch(() => {
      this.#isUnexplained = true
      throw new Error(why)
    })
    for (const { keys = [] } of Object.values(before.sources)) for (const key of keys) this.#removedKeys.add(key)
    for (const { keys = [] } of Object.values(found.sources)) for (const key of keys) this.#removedKeys.delete(key)
    this.#state = { ...found, entries: {} }
    await this.#probe(urls)
    this.#messages.periods.push(new Period(before, calls))
    for (const { id } of await this.#entries(urls[0] ?? '')) this.#seenEntries.add(id)
    this.#calls = []
  }

  /** The entries of the audit log about changes of these resources since the last comparison. */
  async #entries(url: string): Promise<{ id: string; subject: string | null }[]> {
    const { body } = await attempt(url, '/audit?limit=500')
    const entries = body['data'] as { id: string; subject: string | null; action: string }[]
    const isOwn = (subject: string | null): boolean => this.#directory.name(subject ?? '') !== undefined
    return entries.filter(
      ({ id, subject, action }) => !this.#seenEntries.has(id) && isOwn(subject) && /^(source|destination|plan)\./.test(action),
    )
  }

  async #newEntries(url: string): Promise<Record<string, number>> {
    const counts: Record<string, number> = {}
    for (const { subject } of await this.#entries(url)) {
      const name = this.#directory.name(subject ?? '') as string
      counts[name] = (counts[name] ?? 0) + 1
    }
    return counts
  }

  /** Every node accepts messages with a key that is there, and rejects those with a removed key and those of a disabled source. */
  async #probe(urls: readonly string[]): Promise<void> {
    const [source, { keys = [], enabled }] = this.#random.pick(Object.entries(this.#state.sources))
    const removed = [...this.#removedKeys]
    const tries: [key: string, status: number][] = [[this.#random.pick(keys), enabled === true ? 200 : 403]]
    if (removed.length > 0) tries.push([this.#random.pick(removed), 401])
    for (const [key, wanted] of tries) {
      for (const url of urls) {
        const status = await this.#messages.send(url, source, key, this.#users.named())
        if (status !== wanted)
          this.#problems.push(`a message with the key ${key} of ${source} was answered with ${status} instead of ${wanted}`)
      }
    }
  }

  // ── The end ──

  /** Ends everything, and compares what became of the messages, the jobs and the deletion requests. */
  async finish(): Promise<string[]> {
    const problems = this.#problems
    try {
      // If a node could not be started again, that is the problem.
      if (!this.#isUnexplained && this.#runningNodes().length === this.#system.nodes.length) await this.#finish()
    } catch (error) {
      problems.push((error as Error).stack ?? String(error))
    }
    return problems.length > SHOWN ? [...problems.slice(0, SHOWN), `and ${problems.length - SHOWN} more problems`] : problems
  }

  async #finish(): Promise<void> {
    const problems = this.#problems
    await Promise.all(this.#waiting)
    // What was held back can be delivered now.
    for (const name of Object.keys(this.#state.destinations))
      await this.#make(this.#running(), { kind: 'destinations', name, does: 'update', fields: { enabled: true, paused: false } })
    await this.#compare()
    const urls = this.#system.urls()
    const [url = ''] = urls
    await this.#users.learn(url, problems)
    await this.#settled(url)
    problems.push(...(await this.#users.check(urls, this.#state)))
    const released = await this.#quarantine.finish(url, this.#state, (message) => this.#users.fate(message) !== undefined, problems)
    problems.push(...(await this.#replays.check(urls)))
    await this.#settled(url)
    for (const [message, destination] of released)
      if (!message.isRefused && this.#messages.arrivals(destination, message.id).length === 0)
        problems.push(`${message.id} was released from quarantine but did not arrive at ${destination}`)
    for (const destination of Object.keys(this.#state.destinations)) await this.#checkMessages(url, destination)
  }

  /** Nothing is pending for the destinations of these operations, deleted ones included. */
  async #settled(url: string): Promise<void> {
    const base = new Set(this.#system.destinations.map(({ id }) => id))
    await eventually(
      () => attempt(url, '/ledger'),
      ({ body }) =>
        (body['data'] as { destinationId: string; pending: number }[] | undefined)?.every(
          ({ destinationId, pending }) => pending === 0 || base.has(destinationId),
        ) === true,
      { what: 'nothing is pending at the destinations of the changes', deadlineMs: DELIVERED_MS },
    )
  }

  async #checkMessages(url: string, destination: string): Promise<void> {
    const problems = this.#problems
    const states = new Map<string, string[]>()
    for (const { messageId, state } of await list<{ messageId: string; state: string }>(
      url,
      `/deliveries?destinationId=${this.#directory.id(destination)}`,
    ))
      states.set(messageId, [...(states.get(messageId) ?? []), state])
    for (const message of this.#messages.sent) {
      const { id, isRefused } = message
      const byUser = this.#users.fate(message)
      const fate = byUser === 'never' ? 'never' : byUser === 'unknown' ? undefined : this.#messages.fate(message, destination)
      const known = states.get(id) ?? []
      const hasArrived = this.#messages.arrivals(destination, id).length > 0
      if (fate === 'never' && (hasArrived || known.length > 0)) problems.push(`${id} must not go to ${destination}: ${known.join()}`)
      if (fate !== 'arrives') continue
      const isRight = known.includes('delivered') ? hasArrived : isRefused && known.includes('failed')
      if (!isRight) problems.push(`${id} was acknowledged but is lost at ${destination}: ${known.join()}`)
      if (!isRefused && known.length > 1) problems.push(`${id} has ${known.length} deliveries to ${destination}`)
    }
  }
}
