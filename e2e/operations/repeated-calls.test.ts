// A client repeats a call because it got no response: the process was killed, the connection broke, or the response was lost. Each message is stored and
// delivered once.

import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { suite, test } from 'node:test'
import { startReceiver } from '../system/receiver.ts'
import { type Service, startService, track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'

suite('repeated calls', { concurrency: 2 }, () => {
  test('after kill -9 before, during or after the commit, a repeated call is stored and delivered once', async () => {
    await using receiver = await startReceiver()
    await using first = await startService({ log: 'error' })
    // A long linger keeps messages from being in flight, because those may arrive twice.
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
      receiver
        .messages()
        .map(({ messageId }) => String(messageId))
        .sort(),
      [...ids].sort(),
    )
  })

  test('a call that is repeated because its response was lost is counted as a duplicate and delivered once', async () => {
    await using receiver = await startReceiver()
    await using service = await startService({ log: 'error' })
    await service.destination({ urls: [receiver.url] })
    const messages = [track('lost-1'), track('lost-2')]
    const socket = await sendUnread(service, messages)
    // It was committed, because it was delivered. Nobody has read the response.
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
      receiver
        .messages()
        .map(({ messageId }) => String(messageId))
        .sort(),
      ['lost-1', 'lost-2', 'new'],
    )
  })

  test('if a client closes the connection right after each call, every message is stored once', async () => {
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

/** Sends the call and does not read the response. */
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
