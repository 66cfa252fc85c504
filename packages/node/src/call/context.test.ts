import assert from 'node:assert/strict'
import test from 'node:test'
import { Context, ContextCancelation } from './context.ts'

test('updateEvent sets a value by its path and creates missing objects', () => {
  const ctx = new Context({ type: 'track', event: 'e', properties: { plan: 'text' } })
  ctx.updateEvent('properties.plan.name', 'pro')
  ctx.updateEvent('integrations.Webhooks', false)
  ctx.updateEvent('event', 'renamed')
  assert.deepEqual(ctx.event, { type: 'track', event: 'renamed', properties: { plan: { name: 'pro' } }, integrations: { Webhooks: false } })
})

for (const path of [
  '__proto__.polluted',
  'properties.__proto__.polluted',
  'properties.constructor.prototype.polluted',
  'prototype',
  '__proto__',
]) {
  test(`updateEvent rejects the path ${path}`, () => {
    const ctx = new Context({ type: 'track', properties: {} })
    assert.throws(() => ctx.updateEvent(path, true), TypeError)
    assert.equal(({} as { polluted?: boolean }).polluted, undefined)
  })
}

test('a context created from JSON returns the event, with its timestamp as a Date', () => {
  const ctx = Context.fromJson('{"type":"track","messageId":"m","timestamp":"2026-11-15T00:00:00.000Z","context":{}}')
  assert.ok(ctx.event.timestamp instanceof Date)
  assert.equal(ctx.event.timestamp.getTime(), Date.UTC(2026, 10, 15))
  assert.equal(ctx.event, ctx.event)
})

test('a context has a unique ID, and equals another one with that ID', () => {
  const ctx = new Context({ type: 'track' }, 'id-1')
  assert.equal(ctx.id, 'id-1')
  assert.ok(ctx.isSame(new Context({ type: 'page' }, 'id-1')))
  assert.ok(!ctx.isSame(new Context({ type: 'track' })))
})

test('cancel throws a ContextCancelation, or its argument', () => {
  const ctx = new Context({ type: 'track' })
  assert.throws(() => ctx.cancel(), ContextCancelation)
  const mine = new Error('mine')
  assert.throws(() => ctx.cancel(mine), mine)
})

test('logs are kept until they are flushed, whether written by log or by logger.log', () => {
  const ctx = new Context({ type: 'track' })
  ctx.log('debug', 'one', { plugin: 'p' })
  ctx.logger.log('warn', 'two')
  assert.deepEqual(
    ctx.logs().map(({ level, message, extras }) => [level, message, extras]),
    [
      ['debug', 'one', { plugin: 'p' }],
      ['warn', 'two', undefined],
    ],
  )
  ctx.stats.increment('nowhere')
  assert.equal(ctx.toJSON().logs.length, 2)
  ctx.logger.flush()
  assert.deepEqual(ctx.logs(), [])
})
