// The routes for alerts.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { alertsOn, count, newInstallation, START_MS, toldEvents } from '../../alerts/fixtures/rig.ts'
import { MINUTE_MS } from '../../alerts/rules/rule.ts'
import { RULES } from '../../alerts/rules/rules.ts'
import { newStoreLocation } from '../../store/fixtures/test-store.ts'
import { startControl } from '../fixtures/start-control.ts'

async function startAlerts(t: test.TestContext) {
  const place = await newStoreLocation()
  const store = await place.open()
  t.after(async () => {
    await store.close()
    await place.remove()
  })
  const rig = alertsOn(store)
  const fixture = await startControl(t, { store, alerts: rig.alerts, clock: { wallMs: () => rig.nowMs, scheduleMs: () => rig.nowMs } })
  return { rig, store, call: fixture.call, ...(await newInstallation(store)) }
}

test('an incident is listed, shown with its timeline, and filtered', async (t) => {
  const { rig, store, call, shop, source } = await startAlerts(t)
  for (let minute = 0; minute < 10; minute++) await count(store, 'destination', shop.id, START_MS + minute * MINUTE_MS, { retried: 2 })
  await rig.pass(6)
  const { body } = await call('GET', '/api/incidents')
  assert.equal(body.data.length, 1)
  const [incident] = body.data
  assert.deepEqual(
    [incident.rule, incident.event, incident.state, incident.subject.id, incident.link, incident.muted],
    ['destination_failing', 'Destination Failing', 'open', shop.id, `/destinations/${shop.id}`, false],
  )
  const shown = await call('GET', `/api/incidents/${incident.id}`)
  assert.deepEqual(
    shown.body.timeline.map(({ what }: { what: string }) => what),
    ['began', 'opened', 'told'],
  )
  assert.equal((await call('GET', `/api/messages/${shown.body.openedMessageId}`)).body.event, 'Destination Failing')
  for (const [query, found] of [
    [`destinationId=${shop.id}`, 1],
    [`sourceId=${source.id}`, 0],
    ['state=closed', 0],
    ['rule=destination_failing&state=open', 1],
    ['rule=node_lost', 0],
  ] as const)
    assert.equal((await call('GET', `/api/incidents?${query}`)).body.data.length, found, query)
  assert.equal((await call('GET', '/api/incidents?rule=other')).status, 400)
  assert.equal((await call('GET', '/api/incidents/inc_x')).body.code, 'incident_not_found')
})

test('an incident is acknowledged with a name and a note, until that is taken back', async (t) => {
  const { rig, store, call, shop } = await startAlerts(t)
  await count(store, 'destination', shop.id, START_MS, { retried: 5 })
  await rig.pass(0)
  const [incident] = (await call('GET', '/api/incidents?state=active')).body.data
  assert.deepEqual([incident.state, incident.severity, incident.acknowledged], ['starting', 'critical', null])
  assert.deepEqual(incident.actions, [], 'nothing is pending')
  assert.equal(incident.measure.label, 'pending deliveries')
  assert.equal((await call('GET', '/api/incidents?state=open')).body.data.length, 0)
  const path = `/api/incidents/${incident.id}/acknowledge`
  const { body } = await call('POST', path, { name: 'Ada', note: 'on it' })
  assert.deepEqual([body.acknowledged.name, body.acknowledged.note], ['Ada', 'on it'])
  assert.equal((await call('GET', `/api/incidents/${incident.id}`)).body.timeline.at(-1).sentence, 'Ada acknowledged it: on it')
  assert.equal((await call('DELETE', path)).status, 204)
  assert.equal((await call('GET', `/api/incidents/${incident.id}`)).body.acknowledged, null)
  for (const wrong of [{ name: '' }, { note: 'x'.repeat(501) }, { other: 1 }]) assert.equal((await call('POST', path, wrong)).status, 400)
  assert.equal((await call('POST', '/api/incidents/inc_none/acknowledge', {})).body.code, 'incident_not_found')
  for (let minute = 1; minute < 7; minute++) {
    await count(store, 'destination', shop.id, START_MS + minute * MINUTE_MS, { retried: 5 })
    await rig.pass(1)
  }
  await store.resources.updateDestination(shop.id, { paused: true })
  await rig.pass(1)
  assert.equal((await call('POST', path, {})).body.code, 'incident_closed')
})

test('rules are listed and changed, for all and for one source', async (t) => {
  const { call, pager, shop, source } = await startAlerts(t)
  const { body } = await call('GET', '/api/alerts')
  assert.deepEqual(
    body.rules.map(({ event }: { event: string }) => event),
    RULES.map(({ event }) => event),
  )
  assert.deepEqual(new Set(body.destinationIds), new Set([pager.id, shop.id]))
  const exceptions = { source_silent: { [source.id]: { enabled: false } } }
  const changed = await call('PATCH', '/api/alerts', { rules: { source_silent: { openAfterMinutes: 30 } }, exceptions })
  const ruleOf = (answer: { body: { rules: { rule: string }[] } }) => answer.body.rules.find(({ rule }) => rule === 'source_silent')
  const { settings, exceptions: shown } = ruleOf(changed) as unknown as { settings: object; exceptions: object[] }
  assert.deepEqual(settings, { openAfterMinutes: 30, closeAfterMinutes: 0 })
  assert.deepEqual(shown, [{ subjectId: source.id, subjectName: 'web shop', enabled: false, notify: true, settings }])
  const reset = await call('PATCH', '/api/alerts', { rules: { source_silent: null }, exceptions: { source_silent: { [source.id]: null } } })
  assert.deepEqual(ruleOf(reset), ruleOf({ body }))
  for (const [wrong, field] of [
    [{ rules: { nothing: {} } }, 'rules.nothing'],
    [{ rules: { source_silent: { openAfterMinutes: -1 } } }, 'rules.source_silent.openAfterMinutes'],
    [{ rules: { source_silent: { other: 1 } } }, 'rules.source_silent.other'],
    [{ exceptions: { source_silent: { src_x: {} } } }, 'exceptions.source_silent'],
    [{ exceptions: { node_lost: { [source.id]: {} } } }, 'exceptions.node_lost'],
  ] as const) {
    const answer = await call('PATCH', '/api/alerts', wrong)
    assert.deepEqual([answer.status, answer.body.field], [400, field])
  }
  const audit = await call('GET', '/api/audit?action=alerts.update')
  assert.equal(audit.body.data.length, 2)
})

test('a mute has an end, is listed, and can be ended early', async (t) => {
  const { rig, call, shop } = await startAlerts(t)
  const made = await call('POST', '/api/alerts/mutes', {
    rule: 'destination_failing',
    destinationId: shop.id,
    minutes: 60,
    note: 'migration',
  })
  assert.equal(made.status, 201)
  assert.deepEqual(
    [made.body.rule, made.body.sourceId, made.body.destinationId, made.body.until, made.body.note],
    ['destination_failing', null, shop.id, new Date(START_MS + 60 * MINUTE_MS).toISOString(), 'migration'],
  )
  assert.equal((await call('GET', '/api/alerts/mutes')).body.data.length, 1)
  rig.nowMs += 61 * MINUTE_MS
  assert.equal((await call('GET', '/api/alerts/mutes')).body.data.length, 0)
  const all = await call('POST', '/api/alerts/mutes', { until: new Date(rig.nowMs + MINUTE_MS).toISOString() })
  assert.equal((await call('DELETE', `/api/alerts/mutes/${all.body.id}`)).status, 204)
  assert.equal((await call('DELETE', `/api/alerts/mutes/${all.body.id}`)).body.code, 'mute_not_found')
  for (const wrong of [
    {},
    { minutes: 1, until: new Date(rig.nowMs + MINUTE_MS).toISOString() },
    { until: new Date(rig.nowMs - 1).toISOString() },
    { minutes: 1_000_000_000 },
    { minutes: 1, sourceId: 'a', destinationId: 'b' },
    { minutes: 1, rule: 'other' },
  ])
    assert.equal((await call('POST', '/api/alerts/mutes', wrong)).status, 400, JSON.stringify(wrong))
  assert.equal((await call('POST', '/api/alerts/mutes', { minutes: 1, sourceId: 'src_x' })).body.code, 'source_not_found')
})

test('a test alert is a message like any other', async (t) => {
  const { store, call } = await startAlerts(t)
  const { body } = await call('POST', '/api/alerts/test')
  assert.equal(body.destinationIds.length, 2)
  assert.deepEqual(await toldEvents(store), [['Alert Test', 'open']])
  assert.equal((await call('GET', `/api/messages/${body.messageId}`)).body.sourceId, 'system')
})

test('the destinations in the guide can be created', async (t) => {
  const { call } = await startAlerts(t)
  const guide = readFileSync(join(import.meta.dirname, '../../../../../docs/guide/alerts.md'), 'utf8')
  const examples = [...guide.matchAll(/```json\n(.*?)```/gs)].map(([, text]) => JSON.parse(text as string) as { urls?: string[] })
  const destinations = examples.filter(({ urls }) => urls !== undefined)
  assert.equal(destinations.length, 4)
  for (const body of destinations) assert.equal((await call('POST', '/api/destinations', body)).status, 201)
})
