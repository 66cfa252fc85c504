// Runs a host process: exchanges packets with the service, and exits when the service ends.

import { Socket } from 'node:net'
import { type HostPacket, trimmed } from './host-channel.ts'
import type { Packet } from './packet.ts'
import { PIPE_FD, readMessages, writeMessage } from './packet-pipe.ts'
import { type ServeOptions, servePackets } from './serve-packets.ts'

export function serveHost(options: Pick<ServeOptions, 'open' | 'inFlight'>): void {
  const pipe = new Socket({ fd: PIPE_FD })
  let isPinged = false
  const receive = servePackets({
    ...options,
    post({ packet, usedBytes }) {
      const message: HostPacket = { ...trimmed(packet, usedBytes), rssBytes: isPinged ? process.memoryUsage.rss() : null }
      isPinged = false
      if (pipe.writable) writeMessage(pipe, message)
    },
    pinged() {
      isPinged = true
    },
    // Ends the process, after everything was sent.
    close: () => void pipe.end(() => process.exit()),
  })
  // The service has ended.
  pipe.on('close', () => process.exit()).on('error', () => process.exit())
  readMessages(
    pipe,
    Number.POSITIVE_INFINITY,
    (packet) => receive(packet as Packet | 'drain'),
    (error) => {
      throw error
    },
  )
  // A terminal or an init system signals the whole group. The service decides when its hosts end.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
  // A promise that nobody awaits says nothing about the deliveries in progress: those that wait for it have their deadline.
  process.on('unhandledRejection', (reason) => console.error('unhandled rejection:', reason))
}
