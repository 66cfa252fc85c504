// Only one process can use a file. A second one reports that and exits, and the first is not affected.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { SQLITE_ONLY } from '../../packages/server/src/store/fixtures/test-store.ts'
import { startReceiver } from '../system/receiver.ts'
import { startSender } from '../system/sender.ts'
import { runService, startService, TOKEN } from '../system/service.ts'
import { Signals } from '../system/signals.ts'

const IN_USE = /is in use by another Switchyard process.*\n$/

suite('one file', { concurrency: 2, skip: SQLITE_ONLY }, () => {
  test('a second process on the same file refuses to start and says why, and the first is not affected', async () => {
    await using receiver = await startReceiver()
    await using service = await startService()
    await service.destination({ urls: [receiver.url] })
    using sender = startSender(() => service)
    const { code, signal, stdout, stderr } = await runService({ env: environment(service.file) }).ended
    assert.deepEqual([code, signal, stdout], [1, null, ''])
    assert.match(stderr, IN_USE)
    assert.ok(stderr.includes(service.file))
    const acknowledged = sender.acknowledged.size
    await sender.until(() => sender.acknowledged.size > acknowledged + 50)
    await sender.finish()
    const ledger = await service.settled(sender.sent.size)
    assert.deepEqual(await service.ledger({ recount: true }), ledger)
    assert.equal(receiver.arrivals.length, sender.sent.size)
    assert.deepEqual(
      service.log().filter(({ level }) => level === 'error'),
      [],
    )
  })

  test('of several processes that start at once on a new file, one starts and the others say why they did not', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'switchyard-e2e-'))
    const runs = Array.from({ length: 3 }, () => runService({ env: environment(join(folder, 'new', 'switchyard.db')) }))
    try {
      const signals = new Signals()
      for (const { ended, child } of runs) {
        void ended.then(() => signals.notify())
        child.stdout?.on('data', () => signals.notify())
      }
      const isServing = (run: (typeof runs)[number]): boolean => run.stdout().includes('Switchyard listens on')
      const isOver = ({ child }: (typeof runs)[number]): boolean => child.exitCode !== null
      await signals.until(() => runs.every((run) => isServing(run) || isOver(run)))
      const refused = runs.filter((run) => !isServing(run))
      assert.equal(refused.length, 2)
      for (const { ended } of refused) {
        const { code, stderr } = await ended
        assert.equal(code, 1)
        assert.match(stderr, IN_USE)
      }
      const serving = runs.find(isServing)
      serving?.kill('SIGTERM')
      assert.equal((await serving?.ended)?.code, 0)
    } finally {
      for (const { kill } of runs) kill('SIGKILL')
      await Promise.all(runs.map(({ ended }) => ended))
      rmSync(folder, { recursive: true })
    }
  })
})

function environment(file: string): Record<string, string> {
  return { SWITCHYARD_PORT: '0', SWITCHYARD_STORE: `sqlite:${file}`, SWITCHYARD_ADMIN_TOKEN: TOKEN }
}
