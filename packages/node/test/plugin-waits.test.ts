// How long after plugins, callbacks, flush and close wait for plugins, and what happens if a plugin never finishes.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { Analytics, type AnalyticsError, type AnalyticsSettings, type Context, type Plugin, type PluginType } from '@switchyard/node'
import { gate, startTrackingServer } from './tracking-server.ts'

const event = { userId: 'u', event: 'e' }
const never = (): Promise<never> => new Promise(() => {})

function plugin(type: PluginType, name: string, rest: Partial<Plugin> = {}): Plugin {
  return { name, type, isLoaded: () => true, load: () => Promise.resolve(), ...rest }
}

/** A client that records every error event and every callback, in order. */
function client(settings: Partial<AnalyticsSettings> & { host?: string }) {
  const errors: AnalyticsError[] = []
  const calledBack: (AnalyticsError | undefined)[] = []
  const analytics = new Analytics({ writeKey: 'wk', ...settings })
  analytics.on('error', (error) => errors.push(error))
  const track = (): Promise<AnalyticsError | undefined> =>
    new Promise((resolve) =>
      analytics.track(event, (error) => {
        calledBack.push(error)
        resolve(error)
      }),
    )
  return { analytics, track, errors, calledBack }
}

test('after plugins wait for destination plugins, callbacks for both, and closeAndFlush for all of them', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushAt: 1 })
  const order: string[] = []
  const destination = gate()
  const after = gate()
  const note = (name: string, opened: Promise<void>) => async (ctx: Context) => {
    await opened
    order.push(name)
    return ctx
  }
  await analytics.register(
    plugin('destination', 'd', { track: note('destination', destination.opened) }),
    plugin('after', 'a', { track: note('after', after.opened) }),
  )
  const answered = new Promise((resolve) => analytics.on('flush', resolve))
  analytics.track(event, () => order.push('callback'))
  const closed = analytics.closeAndFlush().then((result) => {
    order.push('closed')
    return result
  })
  await answered
  await new Promise(setImmediate)
  assert.deepEqual(order, [])
  destination.open()
  await new Promise(setImmediate)
  assert.deepEqual(order, ['destination'])
  after.open()
  assert.deepEqual(await closed, { stored: 1, failed: 0, pending: 0 })
  assert.deepEqual(order, ['destination', 'after', 'callback', 'closed'])
})

test('a destination plugin that is slower than the tracking API keeps the outcome of the message as it is', async () => {
  await using server = await startTrackingServer(() => ({ status: 400 }))
  const { analytics, track, errors } = client({ host: server.url, flushAt: 1 })
  const { open, opened } = gate()
  await analytics.register(plugin('destination', 'd', { track: () => opened.then(() => Promise.reject(new Error('mine'))) }))
  const told = track()
  await new Promise((resolve) => analytics.once('flush', resolve))
  open()
  assert.equal((await told)?.status, 400)
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 0, failed: 1, pending: 0 })
  assert.deepEqual(
    errors.map((error) => error.code),
    ['delivery_failure', 'plugin_failed'],
  )
})

for (const role of ['before', 'enrichment'] as const) {
  test(`a message that a ${role} plugin never returns fails at close: its callback and one error event report it`, async () => {
    await using server = await startTrackingServer()
    const { analytics, track, errors, calledBack } = client({ host: server.url })
    const { open, opened } = gate()
    await analytics.register(plugin(role, 'stuck', { track: (ctx) => opened.then(() => ctx) }))
    const told = track()
    assert.deepEqual(await analytics.closeAndFlush({ timeout: 20 }), { stored: 0, failed: 0, pending: 1 })
    const error = await told
    assert.equal(error?.code, 'close_timeout')
    assert.match(error?.message ?? '', /plugin stuck/)
    assert.deepEqual(errors, [error])
    // Too late: nothing is sent, and no callback is called a second time.
    open()
    await new Promise(setImmediate)
    await new Promise(setImmediate)
    assert.equal(calledBack.length, 1)
    assert.equal(errors.length, 1)
    assert.equal(server.requests.length, 0)
    assert.deepEqual(await analytics.flush(), { stored: 0, failed: 1, pending: 0 })
  })
}

test('a message that waits for a plugin to load fails at close', async () => {
  await using server = await startTrackingServer()
  const { analytics, track, errors } = client({ host: server.url })
  void analytics.register(plugin('before', 'stuck', { load: never, track: () => assert.fail('not loaded') }))
  const told = track()
  await analytics.closeAndFlush({ timeout: 20 })
  assert.match(`${(await told)?.code} ${(await told)?.message}`, /^close_timeout .*plugin to load/)
  assert.equal(errors.length, 1)
})

for (const role of ['destination', 'after'] as const) {
  test(`a message that a ${role} plugin never finishes is delivered, and an error at close names the plugin`, async () => {
    await using server = await startTrackingServer()
    for (const timeout of [undefined, 20]) {
      const { analytics, track, errors } = client({ host: server.url, flushAt: 1, httpRequestTimeout: 1_000 })
      await analytics.register(plugin(role, 'stuck', { track: never }))
      const told = track()
      await new Promise((resolve) => analytics.once('flush', resolve))
      assert.deepEqual(await analytics.closeAndFlush({ timeout }), { stored: 1, failed: 0, pending: 0 })
      assert.equal(await told, undefined)
      assert.deepEqual(
        errors.map(({ code, message, ctx }) => [code, /plugin stuck/.test(message), ctx?.event.event]),
        [['plugin_failed', true, 'e']],
      )
    }
  })
}

test('a close without a timeout stops waiting for plugins after 75 seconds, including plugins that are loading', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const httpClient = async () => ({ status: 200, statusText: 'OK' })
  for (const rest of [{ track: never }, { load: never }]) {
    const { analytics, track, errors } = client({ httpClient })
    const loaded = analytics.register(plugin('before', 'stuck', rest))
    if (!rest.load) await loaded
    const told = track()
    const closed = analytics.closeAndFlush()
    t.mock.timers.tick(74_999)
    await new Promise(setImmediate)
    assert.equal(errors.length, 0)
    t.mock.timers.tick(1)
    assert.equal((await told)?.code, 'close_timeout')
    assert.deepEqual(await closed, { stored: 0, failed: 1, pending: 0 })
  }
})

test('a message that does not fit into the spool is not passed to destination plugins', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'switchyard-plugins-'))
  t.after(() => rmSync(dir, { recursive: true }))
  await using server = await startTrackingServer()
  const { analytics, errors } = client({ host: server.url, spool: { dir, maxBytes: 2_000 } })
  let seen = 0
  await analytics.register(
    plugin('destination', 'd', {
      track: (ctx) => {
        seen++
        return ctx
      },
    }),
  )
  for (let i = 0; i < 20; i++) analytics.track(event)
  const { delivered, failed } = await analytics.closeAndFlush()
  assert.ok(failed > 0 && errors.every((error) => error.code === 'queue_full'))
  assert.equal(delivered + failed, 20)
  assert.equal(seen, delivered)
})
