// What stands between one node and the database, so that a test can cut the two apart as a network does that loses packets:
// nothing is refused, nothing is closed, and nothing arrives. What was on its way when it was cut arrives after the healing, be it
// long too late, and so does the end of a connection that a node has given up meanwhile: as TCP sends again.
//
//   await using proxy = await DatabaseProxy.start(5432)
//   proxy.cut(); proxy.cut('answers'); proxy.heal()
//   proxy.loseAnswers([{ to: 'COMMIT', after: 'what was said before it' }])

import { connect, createServer, type Server, type Socket } from 'node:net'

interface Link {
  client: Socket
  /** Null as long as the connection was made during a cut: its first packet has not arrived. */
  upstream: Socket | null
}

/** What a node says, in the bytes of the protocol. */
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
  /** Connections that were made during a cut, over the proxy's whole life. */
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

  get standing(): number {
    return this.#links.size
  }

  /** Both ways; or only the server's answers are lost, to what it goes on hearing on the connections that stand. */
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

  /** One after the other: the server hears it, and its connection breaks before it can answer. */
  loseAnswers(losses: readonly Loss[]): void {
    this.#losses = [...losses]
  }

  /** Answers that are still to be lost. */
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
    // One of the ways may never have been cut.
    client.unpipe().pipe(upstream)
    upstream.unpipe().pipe(client)
  }

  #watch(link: Link, socket: Socket): void {
    socket.on('error', () => {})
    socket.on('close', () => {
      // The other side cannot hear of it during a cut.
      if (!this.#isCut) this.#part(link)
    })
  }

  #part(link: Link): void {
    this.#links.delete(link)
    link.client.destroy()
    link.upstream?.destroy()
  }
}
