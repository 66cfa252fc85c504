// A proxy between one node and the database. A test can cut it to simulate a network that drops packets:
// nothing is refused, nothing is closed, and nothing arrives. Data that was in transit when it was cut arrives after heal(), however
// late, and so does the close of a connection that a node has abandoned meanwhile, because TCP retransmits.
//
//   await using proxy = await DatabaseProxy.start(5432)
//   proxy.cut(); proxy.cut('answers'); proxy.heal()
//   proxy.slow({ delayMs: 200 }); proxy.heal()
//   proxy.reset()
//   proxy.loseAnswers([{ to: 'COMMIT', after: 'an earlier query' }])

import { connect, createServer, type Server, type Socket } from 'node:net'
import { Transform, type TransformCallback } from 'node:stream'

/** How slow the network is, in each direction. */
export interface Slowness {
  delayMs: number
  /** No limit if missing. */
  bytesPerSecond?: number
}

interface Link {
  client: Socket
  /** What is on its way to the server, and to the client. */
  requests: Transit
  answers: Transit
  /** Null while the proxy is cut, for a connection that was opened during the cut: its first packet has not arrived. */
  upstream: Socket | null
}

/** A pattern in what a node sends, as bytes of the protocol. */
interface Loss {
  to: string
  after?: string
}

export class DatabaseProxy implements AsyncDisposable {
  readonly port: number
  readonly #server: Server
  /** The port of the server. It can be changed for new connections. */
  target: number
  readonly #links = new Set<Link>()
  #isCut = false
  #slowness: Slowness | null = null
  #losses: Loss[] = []
  /** The number of connections that were opened during cuts so far. */
  swallowed = 0

  private constructor(server: Server, target: number) {
    this.#server = server
    this.target = target
    this.port = (server.address() as { port: number }).port
    server.on('connection', (client: Socket) => this.#accept(client))
  }

  static async start(target: number): Promise<DatabaseProxy> {
    const server = createServer({ allowHalfOpen: true, noDelay: true })
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(0, '127.0.0.1', resolve)
    })
    return new DatabaseProxy(server, target)
  }

  get openConnections(): number {
    return this.#links.size
  }

  /** Cuts both directions, or only one of them on existing connections. New connections are held back in any case. */
  cut(what: 'everything' | 'requests' | 'answers' = 'everything'): void {
    this.#isCut = true
    for (const { client, upstream } of this.#links) {
      if (what !== 'answers') client.unpipe().pause()
      if (what !== 'requests') upstream?.unpipe().pause()
    }
  }

  /** From now on, whatever is sent takes longer, also on existing connections. */
  slow(slowness: Slowness): void {
    this.#slowness = slowness
  }

  /** Ends a cut or slowness. */
  heal(): void {
    this.#isCut = false
    this.#slowness = null
    for (const link of this.#links) this.#join(link)
  }

  /** Breaks all connections: both sides get a reset. Returns how many. */
  reset(): number {
    const broken = [...this.#links]
    for (const { client, upstream } of broken) {
      client.resetAndDestroy()
      upstream?.resetAndDestroy()
    }
    return broken.length
  }

  /** For each entry in order: the server receives the matching query, and the connection breaks before it can answer. */
  loseAnswers(losses: readonly Loss[]): void {
    this.#losses = [...losses]
  }

  /** The answers that are still to be lost. */
  get left(): readonly Loss[] {
    return this.#losses
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    for (const { client, upstream } of this.#links) {
      client.destroy()
      upstream?.destroy()
    }
    await closed
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #accept(client: Socket): void {
    const slowness = (): Slowness | null => this.#slowness
    const link: Link = { client, requests: new Transit(slowness), answers: new Transit(slowness), upstream: null }
    link.answers.pipe(client)
    this.#links.add(link)
    this.#watch(link, client)
    client.on('data', (said: Buffer) => this.#hear(link, said))
    if (!this.#isCut) return this.#join(link)
    this.swallowed++
    client.pause()
  }

  #hear(link: Link, said: Buffer): void {
    const [loss] = this.#losses
    if (loss === undefined) return
    if (loss.after !== undefined) {
      if (said.includes(loss.after)) delete loss.after
      return
    }
    if (!said.includes(loss.to)) return
    this.#losses.shift()
    link.upstream
      ?.unpipe()
      .once('data', () => this.#part(link))
      .resume()
  }

  #join(link: Link): void {
    if (link.upstream === null) {
      link.upstream = connect({ port: this.target, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
      this.#watch(link, link.upstream)
      link.requests.pipe(link.upstream)
    }
    const { client, upstream } = link
    if (client.destroyed || upstream.destroyed) return this.#part(link)
    // One of the directions may not have been cut.
    client.unpipe().pipe(link.requests)
    upstream.unpipe().pipe(link.answers)
  }

  #watch(link: Link, socket: Socket): void {
    socket.on('error', () => {})
    socket.on('close', () => {
      // The other side cannot learn of it during a cut.
      if (this.#isCut) return
      // What a node sent before it gave up arrives nevertheless.
      if (socket === link.client && !link.requests.isEmpty) link.requests.end()
      else this.#part(link)
    })
  }

  #part(link: Link): void {
    this.#links.delete(link)
    link.client.destroy()
    link.upstream?.destroy()
  }
}

/** Passes data on in order, at once or as late as the network is slow. */
class Transit extends Transform {
  readonly #slowness: () => Slowness | null
  readonly #waiting: Buffer[] = []
  /** When the last of them leaves. */
  #lastMs = 0
  #flushed: (() => void) | null = null

  constructor(slowness: () => Slowness | null) {
    super()
    this.#slowness = slowness
    this.on('error', () => {})
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    const slowness = this.#slowness()
    if (slowness === null && this.isEmpty) return done(null, chunk)
    const { delayMs, bytesPerSecond = Number.POSITIVE_INFINITY } = slowness ?? { delayMs: 0 }
    const now = performance.now()
    this.#lastMs = Math.max(this.#lastMs, now + delayMs) + (chunk.length * 1_000) / bytesPerSecond
    this.#waiting.push(chunk)
    setTimeout(() => {
      const [first] = this.#waiting.splice(0, 1)
      if (!this.destroyed) this.push(first)
      if (this.isEmpty) this.#flushed?.()
    }, this.#lastMs - now)
    // The next data may follow before this has arrived.
    done()
  }

  override _flush(done: TransformCallback): void {
    if (this.isEmpty) done()
    else this.#flushed = done
  }
}
