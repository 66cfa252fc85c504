// The process is killed, and only its file is left. Every acknowledged message is delivered or recorded, and no message that was recorded as delivered
// is sent again. Repeated calls are tested in repeated-calls.test.ts.

import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { IS_LONG } from '../system/long-tests.ts'
import { type Arrival, type Behaviour, startReceiver } from '../system/receiver.ts'
import { startSender } from '../system/sender.ts'
import { startService, track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'

const KILLS = IS_LONG ? 10 : 3

suite('the process is killed', { concurrency: 2 }, () => {
  test('kill -9 several times under load: every acknowledged message arrives, and only messages that were in flight arrive twice', async (t) => {
    await using single = await startReceiver(failingSometimes())
    await using batched = await startReceiver(failingSometimes())
    await using first = await startService({ log: 'error' })
    const ids = [
      await first.destination({ name: 'single', urls: [single.url] }),
      await first.destination({ name: 'batched', urls: [batched.url], batch: { size: 15, lingerMs: 20 } }),
    ]
    let service = first
    using sender = startSender(() => service)
    const killedAt: number[] = []
    for (let kill = 1; kill <= KILLS; kill++) {
      const [acknowledged, arrived] = [sender.acknowledged.size, single.arrivals.length]
      // Each kill is at another moment of the group commit, the checkpoint and the queue of the lane.
      const more = 40 + 37 * kill
      await sender.until(() => sender.acknowledged.size >= acknowledged + more)
      await single.until(() => single.arrivals.length >= arrived + more / 2)
      service.kill('SIGKILL')
      await service.ended
      // Receivers first read everything that the killed process had sent, so that later requests are those of the next process.
      for (const receiver of [single, batched]) await receiver.until(() => receiver.standing() === 0)
      killedAt.push(Date.now())
      service = await service.restart()
      assert.ok((await service.api<{ consistent: boolean }>('/ledger?recount=true')).consistent)
      sender.resume()
    }
    await sender.finish()
    const { acknowledged, sent, resent } = sender
    assert.deepEqual(acknowledged, sent)
    const ledger = await service.settled(2 * sent.size)
    assert.deepEqual(await service.ledger({ recount: true }), ledger)
    for (const { owed, delivered } of ledger) assert.deepEqual({ owed, delivered }, { owed: sent.size, delivered: sent.size })

    const { accepted, duplicates } = await service.stats()
    assert.equal(accepted, sent.size, 'each is stored once')
    assert.ok(duplicates <= resent, `${duplicates} duplicates of ${resent} messages sent again`)

    const lifeOf = (wallMs: number): number => killedAt.filter((atMs) => atMs < wallMs).length
    for (const [at, receiver] of [single, batched].entries()) {
      assert.deepEqual(new Set(receiver.byMessageId.keys()), sent)
      const deliveries = await service.deliveries(`destinationId=${ids[at]}&state=delivered`)
      assert.deepEqual(new Set(deliveries.map(({ messageId }) => messageId)), sent)
      let twice = 0
      for (const { messageId, settledAt } of deliveries) {
        const lives = (receiver.byMessageId.get(messageId) ?? []).filter(isAccepted).map(({ wallMs }) => lifeOf(wallMs))
        const recorded = lifeOf(Date.parse(settledAt ?? ''))
        assert.ok(lives.length > 0, `${messageId} never arrived`)
        assert.equal(new Set(lives).size, lives.length, `${messageId} arrived twice in one life: ${lives.join()}`)
        assert.ok(Math.max(...lives) <= recorded, `${messageId} was recorded in life ${recorded} and arrived in ${lives.join()}`)
        if (lives.length > 1) twice++
      }
      t.diagnostic(`${['one by one', 'in batches'][at]}: ${twice} of ${sent.size} messages arrived twice`)
    }
    t.diagnostic(`${resent} messages were sent again, of which ${duplicates} had been stored`)
  })

  test('kill -9 halfway through a large call to a slow receiver: messages recorded as delivered are not sent again', async (t) => {
    const answered = new Set<string>()
    await using receiver = await startReceiver(({ messages: [message] }) => ({
      after: sleep(30).then(() => answered.add(message?.messageId ?? '')),
    }))
    await using first = await startService({ log: 'error' })
    await first.destination({ urls: [receiver.url], maxInFlight: 10 })
    const ids = Array.from({ length: 400 }, (_, at) => `large-${at}`)
    assert.equal((await first.send(ids.map((id) => track(id)))).status, 200)
    const counted = await eventually(
      async () => (await first.ledger({ recount: true }))[0]?.delivered ?? 0,
      (delivered) => delivered >= 150,
      { what: 'the ledger grows while the shipment is under way' },
    )
    assert.ok(counted < ids.length, 'recorded before all of it was over')
    first.kill('SIGKILL')
    const before = new Set(answered)
    await first.ended
    await receiver.until(() => receiver.standing() === 0)
    // More than one if an attempt timed out on a busy machine.
    const arrivals = new Map([...before].map((id) => [id, receiver.byMessageId.get(id)?.length ?? 0]))
    const service = await first.restart()
    const [ledger] = await service.settled(ids.length)
    assert.equal(ledger?.delivered, ids.length)
    assert.deepEqual(new Set(receiver.byMessageId.keys()), new Set(ids))
    const again = [...arrivals].filter(([id, count]) => (receiver.byMessageId.get(id)?.length ?? 0) > count).length
    t.diagnostic(`killed after ${before.size} answers, of which ${counted} counted as delivered: ${again} were sent again`)
    assert.ok(again <= before.size - counted, `${again} were sent again`)
  })
})

/** Some attempts fail, so that messages wait for a retry while the process is killed. */
function failingSometimes(): Behaviour {
  const failed = new Set<string | undefined>()
  return ({ messages, number }) => {
    if (number % 50 !== 0 || messages.some(({ messageId }) => failed.has(messageId))) return undefined
    for (const { messageId } of messages) failed.add(messageId)
    return { status: 503 }
  }
}

function isAccepted(arrival: Arrival): boolean {
  return arrival.status === 200
}
