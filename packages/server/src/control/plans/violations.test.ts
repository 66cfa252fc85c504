import assert from 'node:assert/strict'
import test from 'node:test'
import type { JsonObject, Violation } from '@switchyard/protocol'
import { Violations } from '../../observe/violations/violations.ts'
import { createPlanJudges } from '../../plans/plan-judges.ts'
import { accept, startControl } from '../fixtures/start-control.ts'

const violation = (path: string): Violation => ({ rule: 'track Order', code: 'wrong_type', path, expected: 'a number', found: 'a string' })

test('violations are counted by rule and path, bounded, and listed by plan and source', async (t) => {
  const faults = [{ rule: 'page', message: 'does not compile' }]
  let recorder: Violations | undefined
  const { call, store } = await startControl(t, { planFaults: () => faults, flushViolations: async () => recorder?.flush() })
  const errors: unknown[] = []
  recorder = new Violations({
    store,
    plans: createPlanJudges(() => {}),
    wallMs: () => Date.now(),
    onError: (error) => errors.push(error),
    maxPerSource: 2,
  })
  t.after(() => recorder?.close())
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop' })
  const { body: other } = await call('POST', '/api/sources', { name: 'Other' })
  const { body: plan } = await call('POST', '/api/plans', { name: 'Plan', rules: [], sourceIds: [source.id] })

  const violations = {
    0: [violation('properties.products.0.price'), violation('properties.products.1.price')],
    1: [violation('properties.total')],
  }
  const items: JsonObject[] = ['a', 'b', 'c'].map((messageId) => ({ type: 'track', event: 'Order', userId: 'u', messageId }))
  const content = await accept(store, source.id, items, {}, { violations })
  const event = { sourceId: source.id as string, messages: 3, duplicates: 0, bytes: 1, content, repeated: [] as number[] }
  recorder.accepted(event)
  recorder.accepted({ ...event, repeated: [0] })
  await recorder.flush()
  recorder.accepted({
    ...event,
    content: { ...content, violations: { 2: [violation('properties.third'), violation('properties.fourth')] } },
  })

  const { body } = await call('GET', `/api/violations?sourceId=${source.id}`)
  const found = body.data.map((entry: JsonObject) => [
    entry['violation']?.path ?? null,
    entry['total'],
    entry['messageIds'],
    entry['hours'].at(-1),
  ])
  const order = ([path]: [string | null]): string => path ?? ''
  assert.deepEqual(
    found.sort((left: [string], right: [string]) => (order(left) < order(right) ? -1 : 1)),
    [
      [null, 2, ['c', 'c'], 2],
      ['properties.products.*.price', 1, ['a'], 1],
      ['properties.total', 2, ['b', 'b'], 2],
    ],
  )
  assert.deepEqual(body.faults, [{ planId: plan.id, ...faults[0] }])
  assert.deepEqual((await call('GET', `/api/violations?plan=${plan.id}`)).body.data, body.data)
  assert.deepEqual((await call('GET', `/api/violations?source=${source.id}`)).body.data, body.data, 'the older name')
  assert.deepEqual((await call('GET', `/api/violations?sourceId=${other.id}`)).body.data, [])
  const recent = await recorder.recent(Date.now())
  assert.deepEqual([...recent.keys()], [source.id])
  assert.deepEqual([recent.get(source.id)?.violations, recent.get(source.id)?.planRule], [5, 'track Order'])

  for (const query of ['plan=%00', `plan=${plan.id}&sourceId=%00`, 'sourceId=%00']) {
    const { status, body: none } = await call('GET', `/api/violations?${query}`)
    assert.deepEqual([status, none.data], [200, []], query)
  }
  // The name of an event that is not planned comes from the sender, so it must not appear in an alert.
  const unplanned: Violation = { ...violation('event'), rule: 'track <https://example.com|Log in>', code: 'unplanned_event' }
  const named = new Violations({
    store,
    plans: createPlanJudges(() => {}),
    wallMs: () => Date.now(),
    onError: (error) => errors.push(error),
  })
  for (let at = 0; at < 9; at++) named.accepted({ ...event, content: { ...content, violations: { 0: [unplanned] } } })
  await named.close()
  const { violations: count, planRule } = (await recorder.recent(Date.now())).get(source.id) ?? {}
  assert.deepEqual([count, planRule], [14, null])

  const pages: string[] = []
  let cursor = ''
  do {
    const page = (await call('GET', `/api/violations?limit=1${cursor}`)).body
    pages.push(...page.data.map((entry: JsonObject) => entry['violation']?.path))
    cursor = page.next === null ? '' : `&cursor=${page.next}`
  } while (cursor !== '')
  assert.equal(pages.length, 4)

  const message = (await call('GET', '/api/messages/b')).body
  assert.deepEqual(message.violations, [violation('properties.total')])
  assert.deepEqual((await call('GET', '/api/messages/c')).body.violations, [])

  await call('DELETE', `/api/plans/${plan.id}`)
  await recorder.flush()
  assert.deepEqual((await call('GET', '/api/violations')).body.data, [])
  assert.deepEqual(errors, [])
})
