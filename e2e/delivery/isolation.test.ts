// A dead destination with a large backlog does not affect a healthy one, is visible in the API, and gets everything when it recovers. With
// thousands of messages; the benchmark uses a million.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { IS_LONG } from '../system/long-tests.ts'
import { type Behaviour, type Receiver, startReceiver } from '../system/receiver.ts'
import { startService } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { type Wiring, wire } from '../system/wiring.ts'

interface Health {
  breaker: 'closed' | 'open' | 'probing'
  inFlight: number
  pending: number
  oldestPendingAt: string | null
  nextAttemptAt: string | null
  ledger: { owed: number; delivered: number; pending: number; failed: number; expired: number; cancelled: number }
  success: number | null
  latencyMs: { p50: number; p95: number; p99: number } | null
  urls: { url: string; success: number | null }[]
}

const OWED = IS_LONG ? 3_000 : 1_000
const BATCH = 100

const DEAD: Record<string, Behaviour | 'away'> = {
  'refuses connections': 'away',
  hangs: () => ({ hang: true }),
  'answers 503': () => ({ status: 503 }),
}

describe(`A dead destination with ${OWED} pending deliveries`, { concurrency: true }, () => {
  for (const [how, behaviour] of Object.entries(DEAD)) {
    test(`that ${how}: meanwhile the healthy one gets everything promptly, and after recovery all pending messages arrive`, async (t) => {
      await using service = await startService({ log: 'fatal' })
      await using healthy = await startReceiver()
      await using dead = await startReceiver(behaviour === 'away' ? undefined : behaviour)
      if (behaviour === 'away') await dead.goAway()
      const wiring = await wire(service, { urls: [dead.url], timeoutMs: 500 }, { urls: [healthy.url] })
      const [deadId, healthyId] = wiring.destinationIds as [string, string]
      const health = (id: string): Promise<Health> => service.api<Health>(`/destinations/${id}/health`)
      const ids: string[] = []
      const slowest: number[] = []
      const acknowledge = async (count: number): Promise<void> => {
        const batch = Array.from({ length: count }, (_, at) => `${how}-${ids.length + at}`)
        ids.push(...batch)
        await wiring.send(batch.map((messageId) => ({ type: 'track', messageId, userId: 'u-1', event: 'Tested' })))
        const acknowledgedAtMs = performance.now()
        await healthy.until(() => batch.every((id) => healthy.byMessageId.has(id)))
        slowest.push(performance.now() - acknowledgedAtMs)
      }

      while (ids.length < OWED) await acknowledge(BATCH)
      await eventually(
        () => health(deadId),
        ({ breaker }) => breaker !== 'closed',
        { what: 'the breaker opens' },
      )
      // One at a time while the other destination is dead, to measure the latency of each message.
      const until = slowest.length
      for (let count = 0; count < 50; count++) await acknowledge(1)
      const alone = slowest.slice(until).sort((a, b) => a - b)
      t.diagnostic(`from acknowledged to received: p50 ${alone[25]?.toFixed(1)} ms, longest ${alone.at(-1)?.toFixed(1)} ms`)
      // If they waited for a request to the dead destination, each would take 500 ms.
      assert.ok((alone[25] as number) < 450, `half of them took more than ${alone[25]} ms`)

      const [sick, well] = [await health(deadId), await health(healthyId)]
      assert.notEqual(sick.breaker, 'closed')
      assert.ok(sick.inFlight <= 1, `${sick.inFlight} probes at a time`)
      assert.deepEqual([sick.pending, sick.success, sick.ledger.pending], [ids.length, 0, ids.length])
      assert.ok(sick.oldestPendingAt !== null && Date.parse(sick.oldestPendingAt) <= Date.now())
      assert.ok(sick.nextAttemptAt !== null)
      assert.deepEqual([well.breaker, well.success, well.urls.map(({ url }) => url)], ['closed', 1, [healthy.url]])
      assert.ok((well.latencyMs?.p99 ?? 0) > 0)

      const before = dead.byMessageId.size
      dead.answer = () => undefined
      if (behaviour === 'away') await dead.comeBack()
      await dead.until(() => dead.byMessageId.size === ids.length, { state: () => `${before} before, ${dead.byMessageId.size} now` })
      const ledger = await service.settled(2 * ids.length)
      assert.deepEqual(new Set(ledger), new Set([delivered(deadId, ids.length), delivered(healthyId, ids.length)]))
      const recounted = await service.ledger({ recount: true })
      assert.deepEqual(new Set(recounted), new Set(ledger), 'the books say what the rows say')
      assert.deepEqual(await notOnce(wiring, healthyId, healthy, ids), [], 'each once')
      const after = await health(deadId)
      assert.deepEqual([after.breaker, after.pending, after.oldestPendingAt, after.nextAttemptAt], ['closed', 0, null, null])
    })
  }
})

function delivered(destinationId: string, count: number): object {
  return { destinationId, owed: count, delivered: count, pending: 0, failed: 0, expired: 0, cancelled: 0, quarantined: 0 }
}

/**
 * Messages that did not arrive exactly once, with the X-Attempt of each arrival and the attempts on record. On a loaded machine a
 * receiver in this process may answer after the deadline. The retry that follows has the next X-Attempt and is not counted.
 */
async function notOnce(wiring: Wiring, to: string, { byMessageId }: Receiver, ids: readonly string[]): Promise<object[]> {
  const found: object[] = []
  for (const messageId of ids) {
    const arrived = byMessageId.get(messageId)?.map(({ headers }) => Number(headers['x-attempt'])) ?? []
    if (arrived.length === 1) continue
    const { attempts } = await wiring.settled(messageId, { to })
    const timedOut = new Set(attempts.filter(({ reason }) => reason === 'timeout').map(({ attempt }) => attempt))
    const isRetry = new Set(arrived).size === arrived.length && arrived.filter((attempt) => !timedOut.has(attempt)).length === 1
    if (!isRetry) found.push({ messageId, arrived, recorded: attempts.map(({ attempt, status, reason }) => [attempt, status ?? reason]) })
  }
  return found
}
