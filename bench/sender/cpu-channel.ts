// How the benchmark asks a thread for the CPU time that it has used. It is a channel of its own, because the service's sender accepts only its packets.

import { BroadcastChannel } from 'node:worker_threads'

/** In a measured thread: answers every question with its CPU time in microseconds. */
export function answerCpu(name: string): void {
  const channel = new BroadcastChannel(name)
  channel.onmessage = (event) => {
    if ((event as { data: unknown }).data !== 'cpu?') return
    const { user, system } = process.threadCpuUsage()
    channel.postMessage(user + system)
  }
  ;(channel as unknown as { unref(): void }).unref()
}

/** Asks until the thread answers: one that is still starting does not hear the question. */
export async function cpuUsOf(name: string): Promise<number> {
  const channel = new BroadcastChannel(name)
  let asking: NodeJS.Timeout | undefined
  const cpuUs = await new Promise<number>((resolve) => {
    channel.onmessage = (event) => resolve((event as { data: number }).data)
    channel.postMessage('cpu?')
    asking = setInterval(() => channel.postMessage('cpu?'), 200)
  })
  clearInterval(asking)
  channel.close()
  return cpuUs
}
