// The end of the process: natural exit, process.exit and signals, each in a real process.

import assert from 'node:assert/strict'
import test from 'node:test'
import { runChild } from './child.ts'
import { startTrackingServer } from './tracking-server.ts'

test('natural exit delivers queued messages at once, without waiting for flushInterval', async () => {
  await using server = await startTrackingServer()
  const child = runChild(
    server.url,
    `const analytics = new Analytics({ writeKey: 'wk', host, flushInterval: 3_600_000 })
     for (let i = 0; i < 40; i++) analytics.track(event)`,
  )
  const { code, stderr } = await child.ended
  assert.equal(code, 0, stderr)
  assert.equal(server.messages().length, 40)
})

test('natural exit waits for retries', async () => {
  await using server = await startTrackingServer((_request, number) => (number <= 2 ? { status: 500 } : undefined))
  const child = runChild(server.url, `new Analytics({ writeKey: 'wk', host }).track(event)`)
  assert.equal((await child.ended).code, 0)
  assert.equal(server.requests.length, 3)
})

test('natural exit delivers from several clients', async () => {
  await using server = await startTrackingServer()
  const child = runChild(server.url, `for (let i = 0; i < 20; i++) new Analytics({ writeKey: 'wk' + i, host }).track(event)`)
  const { code, stderr } = await child.ended
  assert.equal(code, 0)
  assert.equal(server.messages().length, 20)
  assert.doesNotMatch(stderr, /MaxListeners/)
})

test('an idle client does not keep the process alive', async () => {
  await using server = await startTrackingServer()
  const child = runChild(
    server.url,
    `const analytics = new Analytics({ writeKey: 'wk', host })
     analytics.track(event)
     await analytics.flush()
     const since = performance.now()
     process.on('exit', () => say(String(performance.now() - since)))`,
  )
  const { code, stdout } = await child.ended
  assert.equal(code, 0)
  // The server closes an idle connection after five seconds.
  assert.ok(Number(stdout) < 4_000, `took ${stdout} ms`)
})

test('process.exit with pending messages prints how many were lost', async () => {
  await using server = await startTrackingServer()
  const child = runChild(
    server.url,
    `const analytics = new Analytics({ writeKey: 'wk', host }); analytics.track(event); analytics.track(event); process.exit(3)`,
  )
  const { code, stderr } = await child.ended
  assert.equal(code, 3)
  assert.match(stderr, /exited with 2 messages not delivered/)
  assert.equal(server.requests.length, 0)
})

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`handleSignals drains on ${signal}, and the process then ends by that signal`, async () => {
    await using server = await startTrackingServer(() => ({ delayMs: 50 }))
    const child = runChild(
      server.url,
      `const analytics = new Analytics({ writeKey: 'wk', host, handleSignals: true, maxInFlight: 1 })
       for (let i = 0; i < 40; i++) analytics.track(event)
       setInterval(() => {}, 1000)
       say('ready')`,
    )
    await child.printed('ready')
    child.process.kill(signal)
    const ended = await child.ended
    assert.equal(ended.signal, signal)
    assert.equal(server.messages().length, 40)
  })
}

for (const listen of ['on', 'once']) {
  test(`handleSignals leaves the end of the process to an application that handles the signal itself, with ${listen}`, async () => {
    await using server = await startTrackingServer()
    const child = runChild(
      server.url,
      `const analytics = new Analytics({ writeKey: 'wk', host, handleSignals: true })
       const timer = setInterval(() => {}, 1000)
       const end = () => { say('mine'); clearInterval(timer); process.exitCode = 7 }
       process.${listen}('SIGTERM', () => setTimeout(end, 300))
       analytics.track(event)
       say('ready')`,
    )
    await child.printed('ready')
    child.process.kill('SIGTERM')
    const { code, stdout } = await child.ended
    assert.equal(code, 7)
    assert.match(stdout, /mine/)
    assert.equal(server.messages().length, 1)
  })
}

test('calls made while a signal is being handled are delivered, too', async () => {
  await using server = await startTrackingServer(() => ({ delayMs: 100 }))
  const child = runChild(
    server.url,
    `const analytics = new Analytics({ writeKey: 'wk', host, handleSignals: true })
     let more = 5
     analytics.on('flush', () => { if (more-- > 0) analytics.track(event) })
     analytics.track(event)
     setInterval(() => {}, 1000)
     say('ready')`,
  )
  await child.printed('ready')
  child.process.kill('SIGTERM')
  assert.equal((await child.ended).signal, 'SIGTERM')
  assert.equal(server.messages().length, 6)
})

test('the client stays open while an application with its own signal handler shuts down', async () => {
  await using server = await startTrackingServer()
  const child = runChild(
    server.url,
    `const analytics = new Analytics({ writeKey: 'wk', host, handleSignals: true })
     const timer = setInterval(() => {}, 1000)
     process.once('SIGTERM', () => setTimeout(() => { analytics.track(event); clearInterval(timer) }, 300))
     say('ready')`,
  )
  await child.printed('ready')
  child.process.kill('SIGTERM')
  assert.equal((await child.ended).code, 0)
  assert.equal(server.messages().length, 1)
})

test('a second signal ends the process at once', async () => {
  await using server = await startTrackingServer(() => ({ after: new Promise(() => {}) }))
  const child = runChild(
    server.url,
    `const analytics = new Analytics({ writeKey: 'wk', host, handleSignals: true })
     analytics.track(event)
     setInterval(() => {}, 1000)
     say('ready')`,
  )
  await child.printed('ready')
  child.process.kill('SIGTERM')
  // The first signal flushes, and the server never answers: its request shows that the signal is being handled.
  await server.arrived(1)
  const since = performance.now()
  child.process.kill('SIGTERM')
  assert.equal((await child.ended).signal, 'SIGTERM')
  // The first signal alone would end it after ten seconds.
  assert.ok(performance.now() - since < 8_000)
})

test('an exit in the callback of a delivered message prints no warning', async () => {
  await using server = await startTrackingServer()
  const child = runChild(server.url, `new Analytics({ writeKey: 'wk', host, flushAt: 1 }).track(event, () => process.exit(0))`)
  const { code, stderr } = await child.ended
  assert.equal(code, 0)
  assert.equal(stderr, '')
})

test('without handleSignals no signal listener is added', async () => {
  await using server = await startTrackingServer()
  const child = runChild(server.url, `new Analytics({ writeKey: 'wk', host }).track(event); say(String(process.listenerCount('SIGTERM')))`)
  const { stdout } = await child.ended
  assert.equal(stdout.trim(), '0')
})

test('importing the client starts nothing: no handles, no listeners', async () => {
  const child = runChild(
    'http://localhost:1',
    `new Analytics({ writeKey: 'wk', host }); say(JSON.stringify([process.getActiveResourcesInfo().filter((kind) => kind !== 'PipeWrap'), process.listenerCount('beforeExit')]))`,
  )
  const { stdout, code } = await child.ended
  assert.equal(code, 0)
  assert.equal(stdout.trim(), '[[],0]')
})

test('an awaited close resolves before the process ends, even if a callback never settles', async () => {
  await using server = await startTrackingServer()
  const child = runChild(
    server.url,
    `const analytics = new Analytics({ writeKey: 'wk', host, httpRequestTimeout: 300 })
     analytics.track(event, () => new Promise(() => {}))
     const { delivered } = await analytics.closeAndFlush()
     say('delivered ' + delivered)`,
  )
  const { code, stdout } = await child.ended
  assert.equal(code, 0)
  assert.match(stdout, /delivered 1/)
})
