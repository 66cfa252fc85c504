// kill -9 under load, again and again, with several processes on one spool folder: the callers' ledger against the
// receiver's. A call is in the ledger when it has returned, and then its message must arrive.

import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { runChild } from './child.ts'
import { startTrackingServer } from './tracking-server.ts'

const WRITERS = 3
const KILLS_EACH = 8

test('every message whose call returned is delivered after the last restart, and nothing is left on disk', async () => {
  const place = mkdtempSync(join(tmpdir(), 'switchyard-kill-'))
  const spool = join(place, 'spool')
  await using server = await startTrackingServer(() => ({ delayMs: Math.random() * 30 }))

  /** Makes calls until it is killed; each ID is written to the ledger when its call has returned. */
  const calling = (name: string): string => `
    import { openSync, writeSync } from 'node:fs'
    const ledger = openSync(${JSON.stringify(join(place, `${name}.ledger`))}, 'a')
    const analytics = new Analytics({ writeKey: 'wk', host, flushAt: 10, spool: { dir: ${JSON.stringify(spool)} } })
    for (let i = 0; ; i++) {
      if (i === 10) say('calling')
      const messageId = ${JSON.stringify(name)} + '-' + i
      analytics.track({ ...event, messageId })
      writeSync(ledger, messageId + '\\n')
      if (i % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    }`
  const closing = `
    const analytics = new Analytics({ writeKey: 'wk', host, spool: { dir: ${JSON.stringify(spool)} } })
    const { pending, failed } = await analytics.closeAndFlush()
    say(pending + ' ' + failed)`

  try {
    await Promise.all(
      Array.from({ length: WRITERS }, async (_, writer) => {
        for (let kill = 0; kill < KILLS_EACH; kill++) {
          const child = runChild(server.url, calling(`${writer}-${kill}`))
          await child.printed('calling')
          await delay(Math.random() * 150)
          child.process.kill('SIGKILL')
          assert.equal((await child.ended).signal, 'SIGKILL')
        }
      }),
    )
    // One start takes over the messages of all of them.
    const last = await runChild(server.url, closing).ended
    assert.equal(last.stdout.trim(), '0 0', last.stderr)

    const called = readdirSync(place)
      .filter((file) => file.endsWith('.ledger'))
      .flatMap((file) => readFileSync(join(place, file), 'utf8').trimEnd().split('\n'))
    const received = new Set(server.messages().map((message) => message.messageId))
    assert.ok(called.length > 100, `${called.length} calls`)
    assert.deepEqual(
      called.filter((messageId) => !received.has(messageId)),
      [],
    )
    assert.deepEqual(readdirSync(spool), [])
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
})
