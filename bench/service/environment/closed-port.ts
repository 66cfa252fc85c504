// A port of 127.0.0.1 on which nothing listens or will listen: above the range of ephemeral ports.

import { connect } from 'node:net'

export async function closedPort(): Promise<number> {
  for (let port = 64_999; port > 61_000; port -= 1) if (await isClosed(port)) return port
  throw new Error('no closed port found')
}

function isClosed(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => {
      socket.destroy()
      resolve(false)
    })
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'))
  })
}
