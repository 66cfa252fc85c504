// The machine's clock is set wrong, by hours in either direction, while the service runs and between two starts. Nothing expires early,
// no retry is delayed, and duplicates are still recognised.

import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createWallClock } from '../machine-faults/wall-clock.ts'
import { type Receiver, startReceiver } from '../system/receiver.ts'
import { type DeliveryView, type Service, startService, track } from '../system/service.ts'
import { eventually, gate } from '../system/signals.ts'

const HOUR_MS = 3_600_000
/** Less than the jump, more than the hour of downtime that counts at most, and much more than a retry takes. */
const WINDOW_MS = 2 * HOUR_MS

suite('the wall clock jumps', { concurrency: 4 }, () => {
  for (const [way, jumpMs] of [
    ['five hours ahead', 5 * HOUR_MS],
    ['five hours back', -5 * HOUR_MS],
  ] as const) {
    test(`${way} while the service runs: retries are made on time, and nothing expires`, async () => {
      using clock = createWallClock()
      const jumped = gate()
      // The first attempt of the first message is in flight when the clock jumps.
      await using receiver = await startReceiver(({ number, headers }) =>
        headers['x-attempt'] === '1' ? { status: 500, ...(number === 1 ? { after: jumped.opened } : {}) } : undefined,
      )
      await using service = await startService(clock)
      await service.destination({ urls: [receiver.url], retryWindowMs: WINDOW_MS })
      await assertJumped(service, 0)
      assert.equal((await service.send([track('before')])).status, 200)
      await receiver.until(() => receiver.arrivals.length === 1)
      clock.jump(jumpMs)
      jumped.open()
      await failed(service, 'before')
      await assertJumped(service, jumpMs)
      await sendAndFail(service, receiver, 'after')
      await assertRetried(service, receiver, ['before', 'after'])
      await assertKnown(service, ['before', 'after'])

      clock.jump(0)
      await sendAndFail(service, receiver, 'right again')
      await assertRetried(service, receiver, ['before', 'after', 'right again'])
      await assertKnown(service, ['before', 'after', 'right again'])
    })

    for (const [ended, signal] of [
      ['stopped', 'SIGTERM'],
      ['killed', 'SIGKILL'],
    ] as const)
      test(`${way} while the service is ${ended}: retries are made on time`, async () => {
        using clock = createWallClock()
        // The first attempt after a restart is made even if the window has ended, so it must fail too.
        await using receiver = await startReceiver(({ headers }) => (Number(headers['x-attempt']) <= 2 ? { status: 500 } : undefined))
        await using first = await startService(clock)
        await first.destination({ urls: [receiver.url], retry: { windowMs: WINDOW_MS, initialMs: 2_000, factor: 1 } })
        await sendAndFail(first, receiver, 'before')
        first.kill(signal)
        await first.ended
        clock.jump(jumpMs)
        const second = await first.restart()
        await assertJumped(second, jumpMs)
        await sendAndFail(second, receiver, 'after')
        await assertRetried(second, receiver, ['before', 'after'], 3)
        await assertKnown(second, ['before', 'after'])
      })
  }
})

/** Checks that the service uses the wrong clock. */
async function assertJumped(service: Service, jumpMs: number): Promise<void> {
  const { createdAt } = await service.api<{ createdAt: string }>('/sources', { method: 'POST', body: { name: 'clock' } })
  const offMs = Date.parse(createdAt) - Date.now() - jumpMs
  assert.ok(Math.abs(offMs) < HOUR_MS / 4, `the clock is off by ${offMs} ms`)
}

/** Waits until the first attempt has failed and is recorded. */
async function sendAndFail(service: Service, receiver: Receiver, id: string): Promise<void> {
  assert.equal((await service.send([track(id)])).status, 200)
  await receiver.until(() => receiver.byMessageId.has(id))
  await failed(service, id)
}

async function failed(service: Service, id: string): Promise<void> {
  await eventually(
    async () => (await service.api<{ data: DeliveryView[] }>('/deliveries')).data.find(({ messageId }) => messageId === id),
    (delivery) => delivery !== undefined && delivery.attemptCount > 0,
    { what: `the failed attempt for ${id} is recorded` },
  )
}

async function assertRetried(service: Service, receiver: Receiver, ids: readonly string[], attempts = 2): Promise<void> {
  const [ledger] = await service.settled(ids.length)
  assert.equal(ledger?.delivered, ids.length)
  assert.deepEqual(await service.ledger({ recount: true }), [ledger])
  for (const id of ids) assert.equal(receiver.byMessageId.get(id)?.length, attempts, `attempts for ${id}`)
}

/** A message that was accepted before is a duplicate, whatever the clock says now. */
async function assertKnown(service: Service, ids: readonly string[]): Promise<void> {
  const { duplicates } = await service.stats()
  assert.equal((await service.send(ids.map((id) => track(id)))).status, 200)
  const after = await service.stats()
  assert.equal(after.duplicates, duplicates + ids.length)
  assert.equal(after.accepted, ids.length)
}
