// How the benchmark asks a thread for the CPU time that it has used. It is a channel of its own, because the service's sender accepts only its packets.

import { BroadcastChannel } from 'node:worker_threads'

interface Channel {
  onmessage: (event: { data: unknown }) => void
  /** There is nothing to transfer. */
  postMessage(message: unknown, transfer: readonly never[]): void
  close(): void
  unref(): void
}

const open = (name: string): Channel => new BroadcastChannel(name) as unknown as Channel

/** In a measured thread: answers every question with its CPU time in microseconds. */
export function answerCpu(name: string): void {
  const channel = open(name)
  channel.onmessage = ({ data }) => {
    if (data !== 'cpu?') return
    const { user, system } = process.threadCpuUsage()
    channel.postMessage(user + system, [])
  }
  channel.unref()
}

/** Asks until the thread answers: one that is still starting does not hear the question. */
export async function cpuUsOf(name: string): Promise<number> {
  const channel = open(name)
  let asking: NodeJS.Timeout | undefined
  const cpuUs = await new Promise<number>((resolve) => {
    channel.onmessage = ({ data }) => resolve(data as number)
    channel.postMessage('cpu?', [])
    asking = setInterval(() => channel.postMessage('cpu?', []), 200)
  })
  clearInterval(asking)
  channel.close()
  return cpuUs
}
