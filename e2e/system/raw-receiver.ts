// A receiver without an HTTP implementation: a TCP server on a free port of 127.0.0.1, for everything that a real HTTP server would not
// do. Its behaviour is called once per connection, when it is opened or with the first bytes of the request.

import { type AddressInfo, createServer, type Socket } from 'node:net'

export interface RawReceiver extends AsyncDisposable {
  url: string
  port: number
  connections: number
}

export interface RawOptions {
  /** Called when the connection is opened. Nothing is read from it. */
  unread?: boolean
  host?: string
  port?: number
}

export async function startRawReceiver(behave: (socket: Socket) => void, options: RawOptions = {}): Promise<RawReceiver> {
  const { unread = false, host = '127.0.0.1', port: wanted = 0 } = options
  const sockets = new Set<Socket>()
  const server = createServer({ pauseOnConnect: unread }, (socket) => {
    receiver.connections++
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    if (unread) behave(socket)
    else {
      socket.once('data', () => {
        socket.resume()
        behave(socket)
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(wanted, host, resolve))
  const { port } = server.address() as AddressInfo
  const receiver: RawReceiver = {
    url: `http://${host}:${port}/`,
    port,
    connections: 0,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
  return receiver
}

/** Writes one byte at a time until the connection is closed. */
export function drip(socket: Socket, text: string, everyMs = 200): void {
  let at = 0
  const timer = setInterval(() => socket.write(text[at++ % text.length] as string), everyMs)
  socket.on('close', () => clearInterval(timer))
}

/** Writes up to so many bytes, as fast as they are read. Returns a function that returns how many were written so far. */
export function pour(socket: Socket, bytes: number): () => number {
  const chunk = Buffer.alloc(64 * 1_024, 'x')
  let written = 0
  const write = (): void => {
    while (written < bytes && !socket.destroyed) {
      written += chunk.length
      if (!socket.write(chunk)) return void socket.once('drain', write)
    }
    socket.end()
  }
  write()
  return () => written
}
