// A load balancer between clients and nodes: its address stays the same while nodes come and go. It can also refuse requests itself, in any
// way. It records every request that was refused, by itself or by a node.

import type { ServerResponse } from 'node:http'
import { SentOrder } from '../../cluster/sent-order.ts'
import { type Answer, type Arrival, type Receiver, startReceiver } from '../../system/receiver.ts'

export interface LoadBalancer extends AsyncDisposable {
  url: string
  /** How requests are refused from now on; null if they are forwarded to a node. */
  refuse: (() => Answer) | null
  /** The time of each request that was refused or that no node answered, in performance.now(). */
  refused: number[]
  /** What is known about the order of the messages that it forwarded. */
  order: SentOrder
  /** Refuses connections until comeBack(). */
  goAway(): Promise<void>
  comeBack(): Promise<void>
  /** Resolves when this many more requests were refused. */
  moreRefused(requests: number): Promise<void>
}

const FORWARD_MS = 30_000

export async function startLoadBalancer(targets: () => readonly string[]): Promise<LoadBalancer> {
  const refused: number[] = []
  const order = new SentOrder()
  let turn = 0

  async function forward({ method, path, headers, bytes }: Arrival, response: ServerResponse): Promise<void> {
    const urls = targets()
    const target = urls[turn++ % Math.max(1, urls.length)]
    const ids = messageIdsIn(bytes)
    order.sent(ids)
    try {
      if (target === undefined) throw new Error('no node is running')
      const answer = await fetch(`${target}${path}`, {
        method,
        headers: { authorization: headers['authorization'] ?? '', 'content-type': headers['content-type'] ?? '' },
        body: new Uint8Array(bytes),
        signal: AbortSignal.timeout(FORWARD_MS),
      })
      const text = await answer.text()
      if (answer.status === 200) order.acknowledged(ids)
      else refused.push(performance.now())
      const retryAfter = answer.headers.get('retry-after')
      response.writeHead(answer.status, retryAfter === null ? {} : { 'retry-after': retryAfter }).end(text)
    } catch {
      refused.push(performance.now())
      response.destroy()
    }
  }

  const receiver: Receiver = await startReceiver(
    (arrival) => {
      if (balancer.refuse === null) return { script: (response) => void forward(arrival, response) }
      refused.push(performance.now())
      return balancer.refuse()
    },
    { forgets: true },
  )
  const balancer: LoadBalancer = {
    url: receiver.url.replace(/\/$/, ''),
    refuse: null,
    refused,
    order,
    goAway: () => receiver.goAway(),
    comeBack: () => receiver.comeBack(),
    moreRefused(requests) {
      const wanted = refused.length + requests
      return receiver.until(() => refused.length >= wanted, {
        what: `${requests} more requests were refused`,
        state: () => `${refused.length} so far`,
      })
    },
    [Symbol.asyncDispose]: () => receiver.goAway(),
  }
  return balancer
}

function messageIdsIn(bytes: Buffer): string[] {
  const { batch = [] } = JSON.parse(bytes.toString()) as { batch?: { messageId: string }[] }
  return batch.map(({ messageId }) => messageId)
}
