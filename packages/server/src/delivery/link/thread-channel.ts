// The connection to a sender thread.

import { Worker } from 'node:worker_threads'
import { type LinkEvents, PacketLink } from './link.ts'
import type { Packet } from './packet.ts'

export interface ThreadOptions {
  /** What the address guard allows. */
  guard: { allowPrivate: boolean; allow: readonly string[] }
  ca?: string | undefined
  closeGraceMs: number
}

const PROGRAM = new URL('../sender/sender-thread.ts', import.meta.url)

export function openThread(name: string, options: ThreadOptions, events: LinkEvents, program = PROGRAM): PacketLink {
  return new PacketLink(
    ({ packet, ended }) => {
      const worker = new Worker(program, { workerData: options, name })
      let cause: Error | undefined
      let measured = worker.performance.eventLoopUtilization()
      worker.on('message', (received: Packet) => packet(received))
      worker.on('error', (error) => {
        cause = error as Error
      })
      // The exit event follows every error, after the last reports of the thread.
      worker.on('exit', (code) => ended(cause ?? new Error(`a sender thread ended unexpectedly, with code ${code}`)))
      return {
        post: ({ packet: sent, transfer }) => worker.postMessage(sent, transfer),
        drain: () => worker.postMessage('drain', []),
        kill: () => void worker.terminate(),
        utilization: () => {
          const before = measured
          measured = worker.performance.eventLoopUtilization()
          return worker.performance.eventLoopUtilization(measured, before).utilization
        },
      }
    },
    events,
    options.closeGraceMs,
  )
}
