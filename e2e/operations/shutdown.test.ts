// The service gets SIGTERM under load. It exits in time with code 0; every acknowledged message is there after the next start, and
// completed deliveries are not sent again.

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { suite, test } from 'node:test'
import { STOPPED_WITHIN_MS } from '../system/long-tests.ts'
import { startReceiver } from '../system/receiver.ts'
import { startSender } from '../system/sender.ts'
import { type Ended, type Service, startService, track } from '../system/service.ts'

suite('stop', { concurrency: 3 }, () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`${signal} under load: exit 0 within 10 s, nothing lost, nothing sent twice`, async () => {
      await using receiver = await startReceiver()
      await using first = await startService()
      await first.destination({ urls: [receiver.url] })
      let service = first
      using sender = startSender(() => service, { parallel: 8 })
      await sender.until(() => sender.acknowledged.size >= 300)
      await receiver.until(() => receiver.arrivals.length >= 100)
      service.kill(signal)
      assertStopped(await service.ended)
      const warnings = service.log().filter(({ level }) => level !== 'info')
      const hasTimedOut = warnings.some(({ reason }) => reason === 'timeout')
      const isLate = ({ reason, msg }: (typeof warnings)[number]): boolean =>
        reason === 'timeout' || (hasTimedOut && msg.startsWith('circuit breaker open'))
      assert.deepEqual(
        warnings.filter((line) => !isLate(line)),
        [],
      )

      service = await first.restart()
      sender.resume()
      await sender.finish()
      const [ledger] = await service.settled(sender.sent.size)
      assert.deepEqual(await service.ledger({ recount: true }), [ledger])
      assert.equal(ledger?.delivered, sender.sent.size)
      assert.equal((await service.stats()).accepted, sender.sent.size)
      assert.equal(receiver.byMessageId.size, sender.sent.size)
      assertNoMore(receiver.arrivals.length, sender.sent.size, first, service)
      assert.ok(
        [...sender.refusals.keys()].every((status) => status === 503),
        [...sender.refusals.keys()].join(),
      )
    })
  }

  test('SIGTERM while a receiver hangs: exit 0 within 10 s, and the delivery is attempted again after the restart', async () => {
    await using hanging = await startReceiver(() => ({ hang: true }))
    await using quick = await startReceiver()
    await using first = await startService()
    await first.destination({ name: 'hanging', urls: [hanging.url] })
    await first.destination({ name: 'quick', urls: [quick.url] })
    assert.equal((await first.send(ids(20).map((id) => track(id)))).status, 200)
    await hanging.until(() => hanging.byMessageId.size === 20)
    await quick.until(() => quick.byMessageId.size === 20)
    assertStopped(await first.stop())

    hanging.answer = () => undefined
    const service = await first.restart()
    const ledger = await service.settled(40)
    assert.deepEqual(await service.ledger({ recount: true }), ledger)
    assert.deepEqual(
      ledger.map(({ delivered }) => delivered),
      [20, 20],
    )
    assertNoMore(quick.arrivals.length, 20, first, service)
    assertNoMore(hanging.arrivals.length, 40, first, service)
  })

  test('SIGTERM while a client sends its request very slowly: exit 0 within 10 s, and the request is not acknowledged', async () => {
    await using service = await startService()
    const { hostname, port } = new URL(service.url)
    const client = connect(Number(port), hostname)
    let answer = ''
    client.setEncoding('latin1').on('data', (text: string) => (answer += text))
    client.on('error', () => {})
    client.write(
      `POST /v1/batch HTTP/1.1\r\nHost: ${hostname}\r\nContent-Length: 400000\r\n\r\n{"writeKey":"${service.writeKey}","batch":[`,
    )
    const drip = setInterval(() => client.write(' '), 20)
    const closed = new Promise<void>((resolve) => client.on('close', () => resolve()))
    try {
      // A later request is answered, so the beginning of the slow one has been read.
      assert.equal((await service.send([track('behind')])).status, 200)
      assertStopped(await service.stop())
      await closed
      assert.doesNotMatch(answer, /^HTTP\/1.1 200/)
    } finally {
      clearInterval(drip)
      client.destroy()
    }
  })

  test('SIGTERM twice: it exits at once with code 1, and nothing is lost', async () => {
    await using receiver = await startReceiver(() => ({ hang: true }))
    await using first = await startService()
    await first.destination({ urls: [receiver.url] })
    assert.equal((await first.send([track('twice')])).status, 200)
    await receiver.until(() => receiver.byMessageId.size === 1)
    first.kill('SIGTERM')
    await first.logged(({ msg }) => msg === 'stopping')
    first.kill('SIGTERM')
    const { code, ms } = await first.ended
    assert.equal(code, 1)
    // The receiver hangs, so the service would have waited for it, and then ended with another code.
    assert.ok(ms < STOPPED_WITHIN_MS, `${ms} ms`)

    receiver.answer = () => undefined
    const service = await first.restart()
    const [ledger] = await service.settled(1)
    assert.equal(ledger?.delivered, 1)
  })
})

function assertStopped({ code, signal, ms, stderr }: Ended): void {
  assert.deepEqual([code, signal], [0, null], stderr)
  assert.ok(ms < STOPPED_WITHIN_MS, `${ms} ms`)
}

/** On a busy machine, a receiver of this process may answer after the timeout. Then its message is sent again, and the circuit breaker may open. */
function assertNoMore(arrived: number, expected: number, ...services: Service[]): void {
  const late = services.flatMap((service) => service.log().filter(({ reason }) => reason === 'timeout'))
  assert.ok(arrived >= expected && arrived <= expected + late.length, `${arrived} arrived, ${expected} expected, ${late.length} late`)
}

function ids(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `m-${index}`)
}
