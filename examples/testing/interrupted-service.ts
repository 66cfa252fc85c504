// A proxy in front of a service that is down at first: every connection is closed until it recovers.

import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

export async function startInterrupted(t: TestContext, serviceUrl: string): Promise<{ url: string; recover(): void }> {
  const target = new URL(serviceUrl)
  const sockets = new Set<Socket>()
  let isDown = true
  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    return socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket))
  }
  const server = createServer((client) => {
    if (isDown) return void client.destroy()
    const upstream = keep(connect(Number(target.port), target.hostname))
    keep(client).pipe(upstream).pipe(client)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    recover: () => {
      isDown = false
    },
  }
}
