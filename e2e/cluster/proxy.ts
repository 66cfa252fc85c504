// A proxy between one node and the database. A test can cut it to simulate a network that drops packets:
// nothing is refused, nothing is closed, and nothing arrives. Data that was in transit when it was cut arrives after heal(), however
// late, and so does the close of a connection that a node has abandoned meanwhile, because TCP retransmits.
//
//   await using proxy = await DatabaseProxy.start(5432)
//   proxy.cut(); proxy.cut('answers'); proxy.heal()
//   proxy.loseAnswers([{ to: 'COMMIT', after: 'an earlier query' }])

import { connect, createServer, type Server, type Socket } from 'node:net'

interface Link {
  client: Socket
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
  readonly #target: number
  readonly #links = new Set<Link>()
  #isCut = false
  #losses: Loss[] = []
  /** The number of connections that were opened during cuts so far. */
  swallowed = 0

  private constructor(server: Server, target: number) {
    this.#server = server
    this.#target = target
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

  /** Cuts both directions; or only the server's answers, while it still receives what is sent on existing connections. */
  cut(what: 'everything' | 'answers' = 'everything'): void {
    this.#isCut = true
    for (const { client, upstream } of this.#links) {
      for (const socket of what === 'answers' ? [upstream] : [client, upstream]) socket?.unpipe().pause()
    }
  }

  heal(): void {
    this.#isCut = false
    for (const link of this.#links) this.#join(link)
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
    const link: Link = { client, upstream: null }
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
      link.upstream = connect({ port: this.#target, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
      this.#watch(link, link.upstream)
    }
    const { client, upstream } = link
    if (client.destroyed || upstream.destroyed) return this.#part(link)
    // One of the directions may not have been cut.
    client.unpipe().pipe(upstream)
    upstream.unpipe().pipe(client)
  }

  #watch(link: Link, socket: Socket): void {
    socket.on('error', () => {})
    socket.on('close', () => {
      // The other side cannot learn of it during a cut.
      if (!this.#isCut) this.#part(link)
    })
  }

  #part(link: Link): void {
    this.#links.delete(link)
    link.client.destroy()
    link.upstream?.destroy()
  }
}
