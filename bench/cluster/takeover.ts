// How long it takes after kill -9 of a node until what it held is delivered: by the same node, restarted at once, and by another node.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Postgres } from '../service/environment/databases.ts'
import { createFolder, pause, removeFolder } from '../service/environment/processes.ts'
import { startNode } from '../service/environment/service.ts'
import { startNodes } from './programs.ts'

export interface TakeoverRun {
  /** From the kill to the delivery, by the node that was restarted. */
  restartedMs: number
  /** The same, from the moment when the restarted node was ready. Negative if it delivered before. */
  afterReadyMs: number
  /** From the kill to the delivery, by the other of two nodes. */
  byOtherMs: number
}

/** By then the node has told the others that it holds its lock, so that they can notice when it has ended. */
const SETTLED_MS = 2_500
const LIMIT_MS = 60_000

export async function measureTakeover(postgres: Postgres): Promise<TakeoverRun> {
  const byOther = await killHolder(postgres, 2)
  const restarted = await killHolder(postgres, 1)
  return { restartedMs: restarted.tookMs, afterReadyMs: restarted.tookMs - restarted.readyMs, byOtherMs: byOther.tookMs }
}

/** Kills the node that has a request in flight. A single node is started again; with two nodes, the other one takes over. */
async function killHolder(postgres: Postgres, count: 1 | 2): Promise<{ tookMs: number; readyMs: number }> {
  const folder = createFolder()
  const receiver = await startReceiver()
  const running = await startNodes(postgres, count, { folder, receiverUrl: receiver.url })
  const [holder, other] = running.nodes
  if (holder === undefined) throw new Error('no node')
  let next = other
  try {
    const { host, port, headers } = running.target
    const response = await fetch(`http://${host}:${port}/v1/track`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ type: 'track', event: 'Killed', userId: 'u', messageId: `held by one of ${count}` }),
    })
    if (!response.ok) throw new Error(`the event was answered with ${response.status}`)
    await receiver.arrival(1)
    await pause(SETTLED_MS)
    const killedAt = performance.now()
    await holder.stop('SIGKILL')
    next ??= await startNode(postgres.connectionString, folder)
    const readyMs = performance.now() - killedAt
    return { tookMs: (await receiver.arrival(2)) - killedAt, readyMs }
  } finally {
    await Promise.all([holder.stop('SIGKILL'), next?.stop()])
    receiver.close()
    removeFolder(folder)
  }
}

interface HoldingReceiver {
  url: string
  /** Resolves with the time of the nth request. */
  arrival(nth: number): Promise<number>
  close(): void
}

/** Does not answer the first request, so that the node that sent it still holds the delivery. */
async function startReceiver(): Promise<HoldingReceiver> {
  const arrivals: number[] = []
  const server = createServer((request, response) => {
    request.resume()
    if (arrivals.push(performance.now()) > 1) response.end()
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async arrival(nth) {
      for (const limit = performance.now() + LIMIT_MS; ; await pause(2)) {
        const at = arrivals[nth - 1]
        if (at !== undefined) return at
        if (performance.now() > limit) throw new Error(`${arrivals.length} requests arrived within ${LIMIT_MS} ms`)
      }
    },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
