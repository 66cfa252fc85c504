// Plugins: types, order, errors, loading (packages/node/README.md, “Plugins”).

import assert from 'node:assert/strict'
import test from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Analytics, type AnalyticsError, type Context, type Plugin, type PluginType } from '@switchyard/node'
import { gate, startTrackingServer } from './tracking-server.ts'

const event = { userId: 'u', event: 'e' }

function plugin(type: PluginType, name: string, rest: Partial<Plugin> = {}): Plugin {
  return { name, type, version: '1.0.0', isLoaded: () => true, load: () => Promise.resolve(), ...rest }
}

/** Registers plugins, tracks one event, and returns the messages that arrived and the errors. */
async function trackThrough(plugins: Plugin[], params: object = {}) {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  const errors: AnalyticsError[] = []
  analytics.on('error', (error) => errors.push(error))
  await analytics.register(...plugins)
  const called = new Promise<AnalyticsError | undefined>((resolve) => analytics.track({ ...event, ...params }, resolve))
  const result = await analytics.closeAndFlush()
  return { messages: server.messages(), errors, called: await called, result }
}

test('plugins run in the order of their types: before, enrichment, destination, after', async () => {
  const order: string[] = []
  const note = (name: string) => (ctx: Context) => {
    order.push(name)
    return ctx
  }
  const { messages } = await trackThrough([
    plugin('after', 'a', { track: note('after') }),
    plugin('destination', 'd', { track: note('destination') }),
    plugin('enrichment', 'e', { track: note('enrichment') }),
    plugin('before', 'b', { track: note('before') }),
  ])
  assert.deepEqual(order, ['before', 'enrichment', 'destination', 'after'])
  assert.equal(messages.length, 1)
})

test('an enrichment plugin modifies events, directly and by path, synchronously and asynchronously', async () => {
  const { messages } = await trackThrough([
    plugin('enrichment', 'direct', {
      track: (ctx) => {
        ctx.event.properties = { ...ctx.event.properties, direct: true }
        return ctx
      },
    }),
    plugin('enrichment', 'path', {
      track: async (ctx) => {
        await delay(5)
        ctx.updateEvent('properties.by.path', 1)
        ctx.updateEvent('context.ip', '203.0.113.7')
        return ctx
      },
    }),
  ])
  assert.deepEqual(messages[0]?.['properties'], { direct: true, by: { path: 1 } })
  assert.equal((messages[0]?.['context'] as { ip: string } | undefined)?.ip, '203.0.113.7')
})

test('a plugin without a handler for the call is skipped', async () => {
  const { messages } = await trackThrough([plugin('enrichment', 'e', { identify: () => assert.fail('not an identify') })])
  assert.equal(messages.length, 1)
})

for (const role of ['before', 'enrichment'] as const) {
  test(`an error thrown by a ${role} plugin blocks the pipeline`, async () => {
    for (const track of [
      () => {
        throw new Error('mine')
      },
      () => Promise.reject(new Error('mine')),
    ]) {
      const { messages, errors, called, result } = await trackThrough([plugin(role, 'p', { track })])
      assert.deepEqual(messages, [])
      assert.equal(errors.length, 1)
      assert.equal(errors[0]?.code, 'plugin_failed')
      assert.equal((errors[0]?.reason as Error | undefined)?.message, 'mine')
      assert.equal(called, errors[0])
      assert.deepEqual(result, { stored: 0, failed: 1, pending: 0 })
    }
  })
}

test('ctx.cancel() in a plugin cancels the message: plugin_cancelled', async () => {
  const { messages, called } = await trackThrough([plugin('before', 'p', { track: (ctx) => ctx.cancel() })])
  assert.deepEqual(messages, [])
  assert.equal(called?.code, 'plugin_cancelled')
})

for (const role of ['destination', 'after'] as const) {
  test(`an error thrown by a ${role} plugin is reported and does not block the pipeline`, async () => {
    const { messages, errors, called } = await trackThrough([plugin(role, 'p', { track: () => Promise.reject(new Error('mine')) })])
    assert.equal(messages.length, 1)
    assert.deepEqual(
      errors.map((error) => error.code),
      ['plugin_failed'],
    )
    assert.equal(called, undefined)
  })
}

test('a destination plugin obeys integrations, by name, by another name, and by All', async () => {
  const runs = async (integrations: object | undefined): Promise<boolean> => {
    let ran = false
    const track = (ctx: Context): Context => {
      ran = true
      return ctx
    }
    await trackThrough([plugin('destination', 'Mine', { alternativeNames: ['Other'], track })], { integrations })
    return ran
  }
  assert.equal(await runs(undefined), true)
  assert.equal(await runs({ Mine: false }), false)
  assert.equal(await runs({ Other: false }), false)
  assert.equal(await runs({ mine: false }), true)
  assert.equal(await runs({ All: false }), false)
  assert.equal(await runs({ all: false }), false)
  assert.equal(await runs({ All: false, Mine: true }), true)
  assert.equal(await runs({ All: false, Mine: { option: 1 } }), true)
})

test('an after plugin runs when the outcome is known', async () => {
  let failure: unknown = 'not run'
  await using server = await startTrackingServer(() => ({ status: 400 }))
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  analytics.on('error', () => {})
  await analytics.register(
    plugin('after', 'p', {
      track: (ctx) => {
        failure = ctx.failedDelivery()?.reason
        return ctx
      },
    }),
  )
  analytics.track(event)
  await analytics.closeAndFlush()
  assert.match(String(failure), /400/)
})

test('a utility plugin gets the instance through load() and sees no events', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  let given: unknown
  await analytics.register(
    plugin('utility', 'p', {
      load: async (_ctx, instance) => {
        given = instance
      },
      track: () => assert.fail('a utility sees no events'),
    }),
  )
  assert.equal(given, analytics)
  analytics.track(event)
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 1, failed: 0, pending: 0 })
})

test('no events are sent to destinations until load() has resolved', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushAt: 1 })
  let loaded: (() => void) | undefined
  const seen: string[] = []
  const registered = analytics.register(
    plugin('destination', 'slow', {
      load: () =>
        new Promise<void>((resolve) => {
          loaded = resolve
        }),
      track: (ctx) => {
        seen.push(ctx.event.event ?? '')
        return ctx
      },
    }),
  )
  analytics.track(event)
  const flushed = analytics.flush()
  await delay(30)
  assert.equal(server.requests.length, 0)
  assert.deepEqual(seen, [])
  loaded?.()
  await registered
  await analytics.ready
  assert.deepEqual(await flushed, { stored: 1, failed: 0, pending: 0 })
  assert.deepEqual(seen, ['e'])
  await analytics.closeAndFlush()
})

test('a plugin whose load() fails is not registered: register rejects, the error is emitted, and messages are still sent', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  const codes: string[] = []
  analytics.on('error', (error) => codes.push(error.code))
  const bad = plugin('before', 'bad', { load: () => Promise.reject(new Error('no')), track: () => assert.fail('not loaded') })
  await assert.rejects(analytics.register(bad), { code: 'plugin_load_failed' })
  assert.deepEqual(codes, ['plugin_load_failed'])
  analytics.track(event)
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 1, failed: 0, pending: 0 })
})

test('a value that is not a plugin is rejected by name', async () => {
  const analytics = new Analytics({ writeKey: 'wk' })
  await assert.rejects(analytics.register({} as Plugin), /name/)
  await assert.rejects(analytics.register({ ...plugin('before', 'p'), type: 'sideways' as PluginType }), /p: type must be one of/)
  await assert.rejects(analytics.register({ ...plugin('before', 'p'), load: undefined as unknown as Plugin['load'] }), /p: load/)
  await assert.rejects(analytics.register({ ...plugin('before', 'p'), alternativeNames: 5 as unknown as string[] }), /p: alternativeNames/)
})

test('a value that is not a plugin, registered without await, emits an error event', async () => {
  const analytics = new Analytics({ writeKey: 'wk' })
  const failed = new Promise<AnalyticsError>((resolve) => analytics.on('error', resolve))
  void analytics.register({ ...plugin('before', 'p'), type: 'enrich' as PluginType })
  assert.equal((await failed).code, 'plugin_load_failed')
})

test('a context that a plugin has corrupted blocks neither its message nor others of its batch', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  analytics.on('error', () => {})
  const spoil = (ctx: Context): Context => {
    if (ctx.event.event === 'spoilt') {
      setImmediate(() =>
        Object.defineProperty(ctx, 'event', {
          get() {
            throw new Error('mine')
          },
        }),
      )
    }
    return ctx
  }
  await analytics.register(plugin('destination', 'p', { track: spoil }))
  for (const name of ['a', 'spoilt', 'b']) analytics.track({ userId: 'u', event: name })
  await new Promise(setImmediate)
  assert.deepEqual(await analytics.closeAndFlush({ timeout: 5_000 }), { stored: 3, failed: 0, pending: 0 })
})

test('a deregistered plugin is unloaded and sees no more events', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  let unloaded = 0
  await analytics.register(plugin('before', 'p', { unload: () => unloaded++, track: () => assert.fail('deregistered') }))
  await analytics.deregister('p')
  analytics.track(event)
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 1, failed: 0, pending: 0 })
  assert.equal(unloaded, 1)
})

test('a message changed by plugins is validated like the call itself', async () => {
  const { messages, called } = await trackThrough([
    plugin('enrichment', 'p', {
      track: (ctx) => {
        delete ctx.event.event
        return ctx
      },
    }),
  ])
  assert.deepEqual(messages, [])
  assert.equal(called?.code, 'event_required')
})

test('updateEvent cannot change prototypes', async () => {
  const { called } = await trackThrough([
    plugin('enrichment', 'p', {
      track: (ctx) => {
        ctx.updateEvent('properties.__proto__.polluted', true)
        return ctx
      },
    }),
  ])
  assert.equal(called?.code, 'plugin_failed')
  assert.equal(({} as { polluted?: boolean }).polluted, undefined)
})

test('a flush waits for messages that are still in a plugin, and sends them without waiting for the interval', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushInterval: 60_000 })
  const { open: go, opened: mayGo } = gate()
  await analytics.register(
    plugin('before', 'slow', {
      track: async (ctx) => {
        await mayGo
        return ctx
      },
    }),
  )
  analytics.track(event)
  const flushed = analytics.flush()
  go()
  assert.deepEqual(await flushed, { stored: 1, failed: 0, pending: 0 })
  await analytics.closeAndFlush()
})

test('a plugin whose isLoaded() throws is skipped and reported, and delays no message', async () => {
  const isLoaded = (): boolean => {
    throw new Error('mine')
  }
  for (const role of ['before', 'destination', 'after'] as const) {
    const { messages, errors, result } = await trackThrough([plugin(role, 'p', { isLoaded, track: () => assert.fail('not loaded') })])
    assert.equal(messages.length, 1)
    assert.equal(result.delivered, 1)
    assert.ok(errors.length > 0 && errors.every((error) => error.code === 'plugin_failed'))
  }
})

test('a message gets a new messageId if a plugin removes it', async () => {
  const track = (ctx: Context): Context => {
    delete (ctx.event as Partial<Context['event']>).messageId
    return ctx
  }
  const { messages } = await trackThrough([plugin('before', 'p', { track })])
  assert.ok((messages[0]?.messageId.length ?? 0) > 20)
})

test('a plugin that makes the event unserializable fails its message, and nothing hangs', async () => {
  const track = (ctx: Context): Context => {
    ctx.event = { ...ctx.event, toJSON: () => undefined } as Context['event']
    return ctx
  }
  const { messages, called, result } = await trackThrough([plugin('before', 'p', { track })])
  assert.deepEqual(messages, [])
  assert.equal(called?.code, 'not_serializable')
  assert.equal(result.failed, 1)
})

test('a register() that fails without being awaited emits an error event, not an unhandled rejection', async () => {
  const analytics = new Analytics({ writeKey: 'wk' })
  const failed = new Promise<AnalyticsError>((resolve) => analytics.on('error', resolve))
  void analytics.register(plugin('before', 'p', { load: () => Promise.reject(new Error('no')) }))
  assert.equal((await failed).code, 'plugin_load_failed')
  await new Promise(setImmediate)
  await analytics.closeAndFlush()
})

test('plugins, listeners and callbacks get ctx.event.integrations as an object; an empty one is not sent', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url })
  const found: unknown[] = []
  const note = (ctx: Context): Context => {
    found.push(ctx.event.integrations)
    return ctx
  }
  analytics.on('track', note)
  analytics.track(event, (_error, ctx) => void (ctx && note(ctx)))
  await analytics.flush()
  await analytics.register(
    ...(['before', 'destination', 'after'] as const).map((role) => plugin(role, role, { load: async (ctx) => note(ctx), track: note })),
    plugin('enrichment', 'switch', {
      track: (ctx) => {
        if (ctx.event.event === 'switched') (ctx.event.integrations as Record<string, unknown>)['Foo'] = false
        return ctx
      },
    }),
  )
  analytics.track(event)
  analytics.enqueue({ type: 'track', ...event })
  analytics.track({ ...event, event: 'switched' })
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 3, failed: 0, pending: 0 })
  assert.ok(found.length > 12)
  for (const integrations of found) assert.equal(typeof integrations, 'object')
  const sent = server.messages().map((message) => message['integrations'])
  assert.deepEqual(sent, [undefined, undefined, undefined, { Foo: false }])
})

for (const role of ['before', 'enrichment', 'destination', 'after'] as const) {
  test(`a ${role} plugin that is registered right after a call, without an await, processes that call`, async () => {
    await using server = await startTrackingServer()
    const analytics = new Analytics({ writeKey: 'wk', host: server.url, flushAt: 10 })
    const seen: (string | undefined)[] = []
    analytics.track({ userId: 'u', event: 'earlier' })
    await Promise.resolve()
    const told = new Promise((resolve) => analytics.identify({ userId: 'u' }, (_error, ctx) => resolve(ctx)))
    // More than one batch.
    for (let i = 0; i < 25; i++) analytics.track({ userId: 'u', event: `e-${i}` })
    const mark = (ctx: Context): Context => {
      seen.push(ctx.event.event ?? ctx.event.type)
      ctx.updateEvent('context.seen', true)
      return ctx
    }
    void analytics.register(plugin(role, 'p', { load: () => delay(5), identify: mark, track: mark }))
    const names = ['identify', ...Array.from({ length: 25 }, (_, i) => `e-${i}`)]
    assert.deepEqual(await analytics.closeAndFlush(), { stored: 27, failed: 0, pending: 0 })
    // Batches are sent concurrently, so after plugins see them in any order.
    assert.equal(seen.length, 26)
    assert.deepEqual(new Set(seen), new Set(names))
    assert.equal(((await told) as Context).event.context['seen'], true)
    const sent = server.messages()
    assert.equal(new Set(sent.map((message) => message.messageId)).size, 27)
    const marked = sent.filter((message) => (message['context'] as { seen?: boolean }).seen)
    assert.equal(marked.length, role === 'before' || role === 'enrichment' ? 26 : 0)
  })
}

test('recalled messages do not keep room in the queue after their plugins ran', async () => {
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, maxQueueBytes: 4_000 })
  analytics.on('error', (error) => assert.fail(error.message))
  for (let i = 0; i < 30; i++) {
    analytics.track({ ...event, properties: { text: 'ä€😀\ud800'.repeat(20) } })
    void analytics.register(plugin('before', 'p', { identify: (ctx) => ctx }))
    assert.deepEqual(await analytics.flush(), { stored: 1, failed: 0, pending: 0 })
  }
  await analytics.closeAndFlush()
})
