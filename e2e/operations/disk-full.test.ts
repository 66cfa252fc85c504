// The disk is full: a small file system that is really full. Nothing is acknowledged that is not stored, outcomes are recorded later, and
// the service continues as soon as there is free space.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { SQLITE_ONLY } from '../../packages/server/src/store/fixtures/test-store.ts'
import { mountSmallDisk, whyNoSmallDisk } from '../machine-faults/small-disk.ts'
import { STOPPED_WITHIN_MS } from '../system/long-tests.ts'
import { startReceiver } from '../system/receiver.ts'
import { startSender } from '../system/sender.ts'
import { runService, type Service, startService, track } from '../system/service.ts'
import { eventually, gate } from '../system/signals.ts'

const WHY_NOT = SQLITE_ONLY || (whyNoSmallDisk() ?? false)

suite('the disk is full', { concurrency: 4, skip: WHY_NOT }, () => {
  test('while the disk is full, calls get 503 and deliveries go on; with free space the service recovers by itself, and nothing is lost', async () => {
    using disk = mountSmallDisk(16)
    await using receiver = await startReceiver()
    await using service = await startService({ folder: disk.folder })
    await service.destination({ urls: [receiver.url] })
    assert.equal((await service.send([track('before')])).status, 200)
    await service.settled(1)

    // In flight when the disk is full, and answered while it is.
    const answers = gate()
    receiver.answer = () => ({ after: answers.opened })
    const inFlight = Array.from({ length: 20 }, (_, index) => `in-flight-${index}`)
    assert.equal((await service.send(inFlight.map((id) => track(id)))).status, 200)
    await receiver.until(() => receiver.byMessageId.size === 21)
    disk.fill()

    // Free space inside the files is used first; every 200 until then counts.
    using sender = startSender(() => service, { batchSize: 5, parallel: 2, fields: { properties: { text: 'x'.repeat(10_000) } } })
    await sender.until(() => (sender.refusals.get(503) ?? 0) === 2)
    assert.deepEqual([...sender.refusals.keys()], [503])
    // Smaller messages may still fit for a while.
    const small: string[] = []
    const refused = await eventually(
      () => service.send([track(`small-${small.length}`)]),
      ({ status }) => status === 503 || (small.push(`small-${small.length}`), false),
    )
    assert.equal(refused.body.code, 'store_unavailable')
    assert.ok(Number(refused.headers.get('retry-after')) > 0, `Retry-After: ${refused.headers.get('retry-after')}`)
    assert.equal(await statusOf(service, '/healthz'), 200)
    await eventually(
      () => statusOf(service, '/readyz'),
      (status) => status === 503,
    )
    const acknowledged = sender.acknowledged.size

    answers.open()
    await receiver.until(() => receiver.arrivals.every((arrival) => arrival.answer !== 'awaited'))
    const unrecorded = receiver.arrivals.filter(({ answer }) => answer === 'written').length - 1
    assert.ok(unrecorded > 0, 'some were delivered while the outcome could not be recorded')
    const stored = 1 + inFlight.length + acknowledged + small.length
    assert.equal((await service.ledger())[0]?.owed, stored)
    await service.logged(({ level, problem }) => level === 'error' && /full/.test(String(problem)))
    assert.deepEqual(
      service.log().filter(({ msg }) => msg === 'the store accepts writes again'),
      [],
    )

    disk.free()
    await service.logged(({ msg }) => msg === 'the store accepts writes again')
    assert.equal(await statusOf(service, '/readyz'), 200)
    // The service continues by itself: first outcomes are recorded, then pending messages are sent.
    const [ledger] = await service.settled(stored)
    assert.equal(ledger?.delivered, stored)
    assert.deepEqual(await service.ledger({ recount: true }), [ledger])

    sender.resume()
    await sender.until(() => sender.acknowledged.size > acknowledged + 20)
    await sender.finish()
    const total = stored - acknowledged + sender.sent.size
    assert.deepEqual(await service.settled(total), await service.ledger({ recount: true }))
    assert.equal((await service.stats()).accepted, total)
    assert.equal(receiver.byMessageId.size, total)
    // That an outcome could not be recorded is no reason to send again. On a busy machine, an attempt can time out before it is answered.
    const late = service.log().filter(({ reason }) => reason === 'timeout').length
    const arrived = receiver.arrivals.length
    assert.ok(arrived >= total && arrived <= total + late, `${arrived} arrived, ${total} expected, ${late} late`)
    assert.equal(receiver.byMessageId.has(`small-${small.length}`), false)
  })

  test('if messages fill the disk, every acknowledged one survives kill -9 and a start on the full disk', async () => {
    using disk = mountSmallDisk(2)
    await using receiver = await startReceiver(() => ({ status: 503 }))
    await using first = await startService({ folder: disk.folder, log: 'error' })
    await first.destination({ urls: [receiver.url] })
    using sender = startSender(() => first, { batchSize: 5, fields: { properties: { text: 'x'.repeat(10_000) } } })
    await sender.until(() => (sender.refusals.get(503) ?? 0) >= 4)
    assert.deepEqual([...sender.refusals.keys()], [503])
    assert.ok(sender.acknowledged.size > 0)
    first.kill('SIGKILL')
    await first.ended

    disk.fill()
    const full = await first.restart()
    using another = startSender(() => full, { name: 'another', batchSize: 5, fields: { properties: { text: 'x'.repeat(10_000) } } })
    await another.until(() => (another.refusals.get(503) ?? 0) >= 4)
    const acknowledged = new Set([...sender.acknowledged, ...another.acknowledged])
    full.kill('SIGKILL')
    await full.ended

    disk.grow(64)
    receiver.answer = () => undefined
    const service = await first.restart()
    const [ledger] = await eventually(
      () => service.ledger(),
      ([row]) => row?.pending === 0,
    )
    assert.deepEqual(await service.ledger({ recount: true }), [ledger])
    const stored = new Set((await service.deliveries()).map(({ messageId }) => messageId))
    assert.deepEqual(
      [...acknowledged].filter((id) => !stored.has(id)),
      [],
    )
    assert.deepEqual(
      [...acknowledged].filter((id) => !receiver.byMessageId.has(id)),
      [],
    )
  })

  test('a first start on a full disk fails with a clear message, and leaves nothing behind that would break the next start', async () => {
    using disk = mountSmallDisk(1)
    disk.fill()
    const file = join(disk.folder, 'switchyard.db')
    const { code, stdout, stderr } = await runService({ env: { SWITCHYARD_PORT: '0', SWITCHYARD_STORE: `sqlite:${file}` } }).ended
    assert.deepEqual([code, stdout], [1, ''], stderr)
    assert.match(stderr, /^.*switchyard\.db.*(full|no space).*\n$/)
    disk.free()
    disk.grow(16)
    await using service = await startService({ folder: disk.folder })
    assert.equal((await service.send([track('m-1')])).status, 200)
  })

  test('SIGTERM while the disk is full: exit code 6 within 10 s, and what could not be recorded is delivered again after the restart', async () => {
    using disk = mountSmallDisk(16)
    await using receiver = await startReceiver()
    await using first = await startService({ folder: disk.folder })
    await first.destination({ urls: [receiver.url] })
    const answers = gate()
    receiver.answer = () => ({ after: answers.opened })
    assert.equal((await first.send([track('in-flight')])).status, 200)
    await receiver.until(() => receiver.byMessageId.size === 1)
    disk.fill()
    using sender = startSender(() => first, { batchSize: 5, parallel: 1, fields: { properties: { text: 'x'.repeat(10_000) } } })
    await sender.until(() => sender.refusals.has(503))
    answers.open()
    await receiver.until(() => receiver.arrivals.every((arrival) => arrival.answer === 'written'))

    const { code, ms, stderr } = await first.stop()
    assert.equal(code, 6, stderr)
    assert.match(stderr, /"unfinished":\["recording the outcomes of deliveries"/)
    assert.ok(ms < STOPPED_WITHIN_MS, `${ms} ms`)

    disk.free()
    const service = await first.restart()
    const total = 1 + sender.acknowledged.size
    const [ledger] = await service.settled(total)
    assert.equal(ledger?.delivered, total)
    assert.deepEqual(await service.ledger({ recount: true }), [ledger])
    assert.equal(receiver.byMessageId.size, total)
  })
})

async function statusOf({ url }: Service, path: string): Promise<number> {
  const response = await fetch(`${url}${path}`)
  await response.arrayBuffer()
  return response.status
}
