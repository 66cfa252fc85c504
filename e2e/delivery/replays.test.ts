// Replays of failed and expired deliveries: an operator previews the number of deliveries, replays them at a limited rate, pauses and resumes
// the job. If the process is killed meanwhile, no delivery is lost or repeated.

import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startInProcess } from '../system/in-process.ts'
import { type Arrival, type Receiver, startReceiver } from '../system/receiver.ts'
import { type DeliveryView, type Service, startService, track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { type Reachable, wire } from '../system/wiring.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

interface Job {
  id: string
  state: 'running' | 'paused' | 'finished' | 'cancelled'
  total: number
  done: number
  replayed: number
  skipped: number
  skippedReasons: Record<string, number>
  outcomes: Record<'pending' | 'delivered' | 'failed' | 'expired' | 'cancelled', number>
}

interface Replayed extends DeliveryView {
  replay: boolean
  replayOf: string | null
  replayJobId: string | null
  replayedBy: string | null
}

const create = (service: Reachable, body: object): Promise<Job> => service.api('/replays', { method: 'POST', body })
const change = (service: Reachable, id: string, body: object): Promise<Job> => service.api(`/replays/${id}`, { method: 'PATCH', body })
const finished = (service: Reachable, id: string): Promise<Job> =>
  eventually(
    () => service.api<Job>(`/replays/${id}`),
    ({ state, outcomes }) => state === 'finished' && outcomes.pending === 0,
  )

function replaysIn({ arrivals }: Receiver): Arrival[] {
  return arrivals.filter(({ headers }) => headers['x-replay'] === 'true')
}

async function refusedBy(receiver: Receiver, service: Service, ids: readonly string[]): Promise<void> {
  receiver.answer = () => ({ status: 404 })
  // Half of them in separate calls, half in one call: segments with one message and with many.
  const half = Math.ceil(ids.length / 2)
  for (const id of ids.slice(0, half)) await service.send([track(id)])
  await service.send(ids.slice(half).map((id) => track(id)))
  await receiver.until(() => receiver.byMessageId.size >= ids.length)
  await service.settled()
  receiver.answer = () => undefined
}

suite('replays', { concurrency: 2 }, () => {
  test('failed deliveries are counted and replayed at a rate; after a pause, a kill and a resume, each has arrived once', async (t) => {
    await using receiver = await startReceiver()
    await using first = await startService({ log: 'error' })
    let service = first
    const destinationId = await service.destination({ urls: [receiver.url] })
    const ids = Array.from({ length: 160 }, (_, at) => `m-${at}`)
    await refusedBy(receiver, service, ids)
    assert.equal((await service.ledger())[0]?.failed, ids.length)

    const dry = await create(service, { destinationId, dryRun: true })
    assert.deepEqual(dry, {
      dryRun: true,
      total: ids.length,
      alreadyReplayed: 0,
      byDestination: [{ destinationId, total: ids.length, alreadyReplayed: 0 }],
    })
    const { id } = await create(service, { destinationId, ratePerSecond: 50 })
    await receiver.until(() => replaysIn(receiver).length >= 20)

    await change(service, id, { state: 'paused' })
    const paused = await eventually(
      () => service.api<Job>(`/replays/${id}`),
      ({ outcomes }) => outcomes.pending === 0,
    )
    assert.equal(paused.state, 'paused')
    assert.ok(paused.done >= 20 && paused.done < ids.length, `${paused.done} done`)
    // Nothing is in flight: everything that arrived is recorded, so a kill cannot cause a repetition.
    assert.equal(replaysIn(receiver).length, paused.replayed)
    service.kill('SIGKILL')
    await service.ended
    service = await service.restart()
    assert.deepEqual(await service.api<Job>(`/replays/${id}`), paused)
    await service.send([track('sentinel')])
    await receiver.until(() => receiver.byMessageId.has('sentinel'))
    assert.equal(replaysIn(receiver).length, paused.replayed, 'a paused job stays so over a restart')

    const resumedAt = replaysIn(receiver).length
    await change(service, id, { state: 'running' })
    await receiver.until(() => replaysIn(receiver).length >= resumedAt + 30)
    service.kill('SIGKILL')
    await service.ended
    await receiver.until(() => receiver.standing() === 0)
    const beforeKill = replaysIn(receiver).length
    service = await service.restart()
    const done = await finished(service, id)
    assert.deepEqual([done.total, done.done, done.replayed, done.skippedReasons], [ids.length, ids.length, ids.length, {}])
    assert.equal(done.outcomes.delivered, ids.length)

    // Each arrived once, except messages that were in flight when the process was killed.
    const arrived = replaysIn(receiver)
    const timesOf = (messageId: string): number[] =>
      arrived.flatMap((arrival, at) => (arrival.messages[0]?.messageId === messageId ? [at] : []))
    let twice = 0
    for (const messageId of ids) {
      const times = timesOf(messageId)
      assert.ok(times.length === 1 || times.length === 2, `${messageId} arrived ${times.length} times`)
      if (times.length === 1) continue
      twice++
      assert.ok((times[0] as number) < beforeKill && (times[1] as number) >= beforeKill, `${messageId} arrived twice in one life`)
    }
    t.diagnostic(`${twice} of ${ids.length} were in flight when the process was killed, and came again`)

    const ledger = await service.settled(2 * ids.length + 1)
    assert.deepEqual(await service.ledger({ recount: true }), ledger)
    assert.deepEqual([ledger[0]?.failed, ledger[0]?.delivered], [ids.length, ids.length + 1])
    const deliveries = (await service.deliveries(`destinationId=${destinationId}`)) as Replayed[]
    const replays = deliveries.filter(({ replay }) => replay)
    assert.equal(replays.length, ids.length)
    assert.ok(replays.every(({ replayJobId, state, replayOf }) => replayJobId === id && state === 'delivered' && replayOf !== null))
    assert.deepEqual(new Set(replays.map(({ messageId }) => messageId)), new Set(ids))

    const again = await create(service, { destinationId })
    const skipped = await finished(service, again.id)
    assert.deepEqual([skipped.replayed, skipped.skippedReasons], [0, { already_replayed: ids.length }])
  })

  test('the rate limit is respected, and new messages do not wait for the end of a replay', async () => {
    await using receiver = await startReceiver()
    await using service = await startService({ log: 'error' })
    const destinationId = await service.destination({ urls: [receiver.url] })
    const ids = Array.from({ length: 80 }, (_, at) => `m-${at}`)
    await refusedBy(receiver, service, ids)
    const { id } = await create(service, { destinationId, ratePerSecond: 20 })
    await receiver.until(() => replaysIn(receiver).length >= 5)
    await service.send([track('new')])
    await receiver.until(() => receiver.byMessageId.has('new'))
    assert.ok(replaysIn(receiver).length < ids.length)
    await finished(service, id)
    const times = replaysIn(receiver).map(({ atMs }) => atMs)
    const lastedMs = (times.at(-1) as number) - (times[0] as number)
    // At 20 a second, the 79 messages after the first take 3,950 ms. The first one may have arrived late.
    assert.ok(lastedMs > 2_000, `80 in ${Math.round(lastedMs)} ms`)
    assert.deepEqual(
      [...receiver.byMessageId.values()].map((arrivals) => arrivals.length).sort((a, b) => a - b),
      [1, ...ids.map(() => 2)],
    )
  })

  test('after a receiver was unreachable for hours, expired deliveries of a period are replayed, in batches if the destination has them', async () => {
    await using receiver = await startReceiver(() => ({ status: 503 }))
    await using service = await startInProcess()
    const wiring = await wire(service, { urls: [receiver.url], batch: { size: 10, lingerMs: 5 } })
    const { destinationId } = wiring
    const ids = Array.from({ length: 25 }, (_, at) => `e-${at}`)
    await wiring.send(ids.map((messageId) => ({ type: 'track', event: 'Tested', userId: 'u', messageId })))
    await wiring.attempted(ids[0] as string, 1)
    await service.later(5 * HOUR_MS)
    for (const messageId of ids) {
      await eventually(
        async () => {
          await service.later(0)
          return wiring.delivery(messageId, () => true)
        },
        ({ state }) => state === 'expired',
      )
    }
    const { data } = await service.api<{ data: { owed: number; expired: number }[] }>('/ledger')
    assert.deepEqual(
      data.map(({ owed, expired }) => [owed, expired]),
      [[25, 25]],
    )
    receiver.answer = () => undefined
    const early = await create(service, { destinationId, to: '2020-01-01T00:00:00Z', dryRun: true })
    assert.equal(early.total, 0)
    const job = await create(service, { destinationId, states: ['expired'], from: '2020-01-01T00:00:00Z' })
    assert.equal(job.total, 25)
    const before = receiver.arrivals.length
    await receiver.until(
      () => new Set(replaysIn(receiver).flatMap(({ messages }) => messages.map(({ messageId }) => messageId))).size === 25,
    )
    // The failures have opened the circuit breaker, so a probe is requested.
    assert.ok(receiver.arrivals.slice(before).every(({ isBatch }) => isBatch))
    const done = await finished(service, job.id)
    assert.deepEqual([done.replayed, done.outcomes.delivered], [25, 25])
    const books = await service.api<{ consistent: boolean; data: { owed: number; delivered: number; expired: number }[] }>(
      '/ledger?recount=true',
    )
    assert.ok(books.consistent)
    assert.deepEqual(
      books.data.map(({ owed, delivered, expired }) => [owed, delivered, expired]),
      [[50, 25, 25]],
    )
  })
})
