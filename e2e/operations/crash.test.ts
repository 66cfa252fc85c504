// The process is killed and the machine's file is all that is left. What was acknowledged is delivered or on record, what
// was recorded as delivered does not come again, and a call that has to be repeated is stored once.

import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { suite, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { IS_LONG } from '../system/long-tests.ts'
import { type Arrival, type Behaviour, startReceiver } from '../system/receiver.ts'
import { startSender } from '../system/sender.ts'
import { type Service, startService, track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'

const KILLS = IS_LONG ? 10 : 3

suite('the process is killed', { concurrency: 2 }, () => {
  test('kill -9 under load, again and again: all that was acknowledged arrives, and only what was in flight arrives twice', async (t) => {
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
      // Never twice at the same place: of the group commit, the checkpoint, the lane's queue.
      const more = 40 + 37 * kill
      await sender.until(() => sender.acknowledged.size >= acknowledged + more)
      await single.until(() => single.arrivals.length >= arrived + more / 2)
      service.kill('SIGKILL')
      await service.ended
      // What the dead process had sent is read to its end, so that what comes from now on is the next one's.
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
        const lives = (receiver.byMessageId.get(messageId) ?? []).filter(isTaken).map(({ wallMs }) => lifeOf(wallMs))
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

  test('kill -9 halfway through one large call to a slow receiver: what counts as delivered by then is not sent again', async (t) => {
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
    const service = await first.restart()
    const [ledger] = await service.settled(ids.length)
    assert.equal(ledger?.delivered, ids.length)
    assert.deepEqual(new Set(receiver.byMessageId.keys()), new Set(ids))
    const again = [...before].filter((id) => (receiver.byMessageId.get(id)?.length ?? 0) > 1).length
    t.diagnostic(`killed after ${before.size} answers, of which ${counted} counted as delivered: ${again} were sent again`)
    assert.ok(again <= before.size - counted, `${again} were sent again`)
  })

  test('kill -9 at any moment around the commit: a call that is repeated is stored and delivered once', async () => {
    await using receiver = await startReceiver()
    await using first = await startService({ log: 'error' })
    // Held back by its linger, so that nothing is in flight, which may come twice.
    const destination = await first.destination({ urls: [receiver.url], batch: { size: 1_000, lingerMs: 60_000 } })
    let service = first
    const ids = ['before', 'during', 'after'].flatMap((moment) => [`${moment}-1`, `${moment}-2`])
    const messages = ids.map((id) => track(id))
    for (const moment of ['before', 'during', 'after']) {
      const unanswered = service.send(messages).then(
        ({ status }) => status,
        () => null,
      )
      if (moment === 'during')
        await eventually(
          () => service.ledger(),
          ([row]) => row?.owed === ids.length,
        )
      if (moment === 'after') assert.equal(await unanswered, 200)
      service.kill('SIGKILL')
      await unanswered
      service = await service.restart()
    }
    assert.equal((await service.send(messages)).status, 200)
    const { accepted, duplicates } = await service.stats()
    assert.equal(accepted, ids.length)
    assert.ok(duplicates >= 2 * ids.length, `${duplicates} duplicates`)
    await service.api(`/destinations/${destination}`, { method: 'PATCH', body: { batch: { size: 1 } } })
    await service.stop()
    service = await service.restart()
    const [ledger] = await service.settled(ids.length)
    assert.equal(ledger?.delivered, ids.length)
    assert.deepEqual(
      receiver.messages().map(({ messageId }) => messageId),
      ids,
    )
  })

  test('a call whose answer is lost is a duplicate when it is repeated: counted, dropped, delivered once', async () => {
    await using receiver = await startReceiver()
    await using service = await startService({ log: 'error' })
    await service.destination({ urls: [receiver.url] })
    const messages = [track('lost-1'), track('lost-2')]
    const socket = await sendUnread(service, messages)
    // Committed, or it would not have been delivered; and nobody has read the answer.
    await receiver.until(() => receiver.byMessageId.size === 2)
    socket.resetAndDestroy()

    assert.equal((await service.send([...messages, track('new')])).status, 200)
    await receiver.until(() => receiver.byMessageId.size === 3)
    const [ledger] = await service.settled(3)
    assert.equal(ledger?.delivered, 3)
    assert.deepEqual(await service.stats(), {
      sourceId: service.sourceId,
      accepted: 3,
      duplicates: 2,
      rejected: 0,
      suppressed: 0,
      quarantined: 0,
      released: 0,
      deleted: 0,
    })
    assert.deepEqual(
      receiver.messages().map(({ messageId }) => messageId),
      ['lost-1', 'lost-2', 'new'],
    )
  })

  test('a client that is gone as soon as it has sent its call, again and again, leaves each message stored at most once', async () => {
    await using receiver = await startReceiver()
    await using service = await startService({ log: 'error' })
    await service.destination({ urls: [receiver.url] })
    const messages = [track('gone-1'), track('gone-2')]
    for (let time = 0; time < 20; time++) (await sendUnread(service, messages)).resetAndDestroy()
    assert.equal((await service.send(messages)).status, 200)
    await service.settled(2)
    assert.equal((await service.stats()).accepted, 2)
    assert.equal(receiver.arrivals.length, 2)
  })
})

/** Every so often an attempt fails, and its messages wait for their retry in the file while the process is killed. */
function failingSometimes(): Behaviour {
  const failed = new Set<string | undefined>()
  return ({ messages, number }) => {
    if (number % 50 !== 0 || messages.some(({ messageId }) => failed.has(messageId))) return undefined
    for (const { messageId } of messages) failed.add(messageId)
    return { status: 503 }
  }
}

function isTaken(arrival: Arrival): boolean {
  return arrival.status === 200
}

/** Writes the call and reads nothing. */
async function sendUnread({ url, writeKey }: Service, messages: readonly object[]): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const body = JSON.stringify({ batch: messages, writeKey })
  const socket = connect(Number(port), hostname).pause()
  socket.on('error', () => {})
  await new Promise<void>((resolve) =>
    socket.write(`POST /v1/batch HTTP/1.1\r\nHost: ${hostname}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`, () =>
      resolve(),
    ),
  )
  return socket
}
