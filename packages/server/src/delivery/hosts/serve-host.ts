// The life of a host process: packets from and to the service, and an end with it.

import type { Packet } from '../senders/packet.ts'
import { type ServeOptions, servePackets } from '../senders/serve-packets.ts'
import { type HostPacket, trimmed } from './host-link.ts'

export function serveHost(options: Pick<ServeOptions, 'open' | 'inFlight'>): void {
  const send = process.send?.bind(process)
  if (send === undefined) throw new Error('a host must be started by the service')
  // Packets are nobody else's business.
  Object.defineProperty(process, 'send', { value: undefined })
  let isPinged = false
  const receive = servePackets({
    ...options,
    post({ packet, usedBytes }) {
      const message: HostPacket = { ...trimmed(packet, usedBytes), rssBytes: isPinged ? process.memoryUsage.rss() : null }
      isPinged = false
      send(message, undefined, undefined, () => undefined)
    },
    pinged() {
      isPinged = true
    },
    // Ends the process, after everything was sent.
    close: () => process.disconnect(),
  })
  process.on('message', (packet: Packet | 'drain') => receive(packet))
  process.on('disconnect', () => process.exit())
  // A terminal or an init system signals the whole group. The service decides when its hosts end.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
  // A promise that nobody awaits says nothing about the deliveries in progress: those that wait for it have their deadline.
  process.on('unhandledRejection', (reason) => console.error('unhandled rejection:', reason))
}
