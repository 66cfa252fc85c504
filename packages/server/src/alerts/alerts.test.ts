// Incidents from the first observation to the message, on a real store.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import { accept, quarantining, tracks } from '../store/conformance/fixtures.ts'
import { newStoreLocation, ON_POSTGRES, type StoreLocation, type TestStore } from '../store/fixtures/test-store.ts'
import { type NodeSummary, type Nodes, StoreUnavailable } from '../store/store.ts'
import { alertsOn, count, newInstallation, START_MS, told, toldEvents, withNodes } from './fixtures/rig.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from './rules/rule.ts'
import { sourceSilent } from './rules/source-silent.ts'

async function openStore(t: TestContext): Promise<{ store: TestStore; place: StoreLocation }> {
  const place = await newStoreLocation()
  const store = await place.open()
  t.after(async () => {
    await store.close()
    await place.remove()
  })
  return { store, place }
}

const all = () => true
const ANSWERED_500 = 'The receiver answered 500 Internal Server Error.'
const COUNTS = { failed: 12, delivered: 0, failedPermanently: 0, pending: 0 }
const FIRST_PAGE = { limit: 50, cursor: null }
const propertiesOf = (message: JsonObject | undefined): JsonObject => message?.['properties'] as JsonObject

async function failFor(store: TestStore, destinationId: string, fromMs: number, minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute++)
    await count(store, 'destination', destinationId, fromMs + minute * MINUTE_MS, { attempts: 2, retried: 2 })
}

suite('a failing destination', () => {
  test('causes one alert, not to itself, and another one when it recovers', async (t) => {
    const { store } = await openStore(t)
    const { shop, pager } = await newInstallation(store)
    const rig = alertsOn(store)
    await failFor(store, shop.id, START_MS, 10)
    await rig.pass(1)
    assert.deepEqual(await told(store), [], 'not after a minute')
    for (let minute = 0; minute < 8; minute++) await rig.pass(1)
    const [opened, ...more] = await told(store)
    assert.deepEqual(more, [])
    assert.deepEqual(opened?.to, [pager.id])
    assert.deepEqual(opened?.skips, [[shop.id, 'about_destination']])
    const { data } = await rig.alerts.incidents(all, FIRST_PAGE)
    const [incident] = data
    assert.equal(opened?.message['event'], 'Destination Failing')
    assert.equal(opened?.message['messageId'], `${incident?.id}-opened`)
    const { message, since, ...properties } = propertiesOf(opened?.message)
    assert.deepEqual(properties, {
      incidentId: incident?.id,
      rule: 'destination_failing',
      state: 'open',
      subject: { kind: 'destination', id: shop.id, name: 'warehouse' },
      openedAt: new Date(START_MS + 5 * MINUTE_MS).toISOString(),
      closedAt: null,
      link: `https://events.example.com/destinations/${shop.id}`,
      incidentLink: `https://events.example.com/alerts/${incident?.id}`,
      severity: 'critical',
      cause: ANSWERED_500,
      details: { ...COUNTS, nextExpiryAt: null, expiresInMs: null, reason: 'http_500', cause: ANSWERED_500 },
    })
    assert.equal(since, new Date(START_MS).toISOString())
    assert.equal(
      message,
      `The destination "warehouse" has been failing for 5 minutes: 12 of 12 delivery attempts failed. No delivery is pending. Last error: ${ANSWERED_500}`,
    )
    assert.equal(`${incident?.openedMessage} Last error: ${ANSWERED_500}`, message, 'the list shows the cause beside the message')

    for (let minute = 10; minute < 14; minute++) await count(store, 'destination', shop.id, START_MS + minute * MINUTE_MS, { delivered: 5 })
    for (let minute = 0; minute < 5; minute++) await rig.pass(1)
    assert.deepEqual(await toldEvents(store), [
      ['Destination Failing', 'open'],
      ['Destination Recovered', 'closed'],
    ])
    const past = await rig.alerts.incidents(all, FIRST_PAGE)
    assert.deepEqual(
      past.data.map(({ id, state }) => [id, state]),
      [[incident?.id, 'closed']],
    )
    assert.equal((await rig.alerts.incident(incident?.id ?? ''))?.state, 'closed')
  })

  test('is no incident if only messages about the service fail', async (t) => {
    const { store } = await openStore(t)
    const { shop, pager } = await newInstallation(store)
    const rig = alertsOn(store)
    await failFor(store, pager.id, START_MS, 10)
    for (let minute = 0; minute < 10; minute++) {
      await count(store, 'destination', shop.id, START_MS + minute * MINUTE_MS, {
        retried: 2,
        expired: 1,
        systemFailed: 3,
        systemExpired: 1,
      })
    }
    for (let minute = 0; minute < 10; minute++) await rig.pass(1)
    assert.deepEqual(await rig.alerts.incidents(all, FIRST_PAGE), { data: [], next: null })
  })

  test('is recorded without a destination for alerts, and closed when it is deleted', async (t) => {
    const { store } = await openStore(t)
    const { shop, pager } = await newInstallation(store)
    await store.resources.deleteDestination(pager.id)
    const rig = alertsOn(store)
    await failFor(store, shop.id, START_MS, 10)
    await rig.pass(6)
    assert.equal(await rig.alerts.openCount(), 1)
    assert.deepEqual((await told(store))[0]?.to, [])
    await store.resources.deleteDestination(shop.id)
    await rig.pass(1)
    assert.equal(await rig.alerts.openCount(), 0)
  })
})

suite('a mute', () => {
  test('holds the message back until it ends', async (t) => {
    const { store } = await openStore(t)
    const { shop } = await newInstallation(store)
    const rig = alertsOn(store)
    const mute = { rule: null, subjectId: shop.id, note: null, createdBy: { id: 'a', name: 'a' }, createdAtMs: START_MS }
    await rig.alerts.settings.mute({ ...mute, untilMs: START_MS + 20 * MINUTE_MS })
    await failFor(store, shop.id, START_MS, 60)
    await rig.pass(10)
    assert.equal(await rig.alerts.openCount(), 1)
    assert.deepEqual(await toldEvents(store), [])
    await rig.pass(11)
    assert.deepEqual(await toldEvents(store), [['Destination Failing', 'open']])
  })

  test('of an incident that is over before it ends leaves no message', async (t) => {
    const { store } = await openStore(t)
    const { shop } = await newInstallation(store)
    const rig = alertsOn(store)
    const { id } = await rig.alerts.settings.mute({
      rule: 'destination_failing',
      subjectId: null,
      note: null,
      createdBy: { id: 'a', name: 'a' },
      createdAtMs: START_MS,
      untilMs: START_MS + DAY_MS,
    })
    await failFor(store, shop.id, START_MS, 6)
    await rig.pass(6)
    for (let minute = 6; minute < 12; minute++) await count(store, 'destination', shop.id, START_MS + minute * MINUTE_MS, { delivered: 5 })
    for (let minute = 0; minute < 6; minute++) await rig.pass(1)
    assert.equal((await rig.alerts.incidents(all, FIRST_PAGE)).data[0]?.state, 'closed')
    await rig.alerts.settings.unmute(id)
    await rig.pass(1)
    assert.deepEqual(await toldEvents(store), [])
  })
})

test('settings of a rule apply, and those of a destination before them', async (t) => {
  const { store } = await openStore(t)
  const { shop } = await newInstallation(store)
  const rig = alertsOn(store)
  await rig.alerts.settings.change({ rules: { destination_failing: { enabled: false } } }, START_MS)
  await failFor(store, shop.id, START_MS, 60)
  await rig.pass(6)
  assert.equal(await rig.alerts.openCount(), 0)
  await rig.alerts.settings.change(
    { exceptions: { destination_failing: { [shop.id]: { enabled: true, openAfterMinutes: 10 } } } },
    START_MS,
  )
  await rig.pass(3)
  assert.equal(await rig.alerts.openCount(), 0)
  await rig.pass(1)
  assert.equal(await rig.alerts.openCount(), 1)
  await rig.alerts.settings.change({ exceptions: { destination_failing: { [shop.id]: null } } }, START_MS)
  await rig.pass(1)
  assert.equal(await rig.alerts.openCount(), 0, 'a rule that is turned off closes its incidents')
})

suite('a silent source', () => {
  test('is critical after an hour, if it is known to send at this time', () => {
    const severityAfter = (minutes: number, comparedWeeks: number) =>
      sourceSilent.severity({ silentMs: minutes * MINUTE_MS, comparedWeeks })
    assert.deepEqual([severityAfter(59, 3), severityAfter(60, 3), severityAfter(600, 0)], ['warning', 'critical', 'warning'])
  })

  test('is compared with the same hours of past weeks, and causes another alert when it sends again', async (t) => {
    const { store } = await openStore(t)
    const { source } = await newInstallation(store)
    const rows = []
    for (let week = 1; week <= 3; week++) {
      for (let minute = -60; minute < 120; minute++) {
        const atMs = START_MS - week * 7 * DAY_MS + minute * MINUTE_MS
        rows.push({ kind: 'source', subject: source.id, atMs, counts: { accepted: 1 } } as const)
      }
    }
    for (let minute = -10; minute < 20; minute++)
      rows.push({ kind: 'source', subject: source.id, atMs: START_MS + minute * MINUTE_MS, counts: { accepted: 1 } } as const)
    await store.books.addStats(rows)
    const rig = alertsOn(store)
    for (let minute = 0; minute < 22; minute++) await rig.pass(1)
    assert.deepEqual(await toldEvents(store), [])
    await rig.pass(1)
    await rig.pass(1)
    const [opened] = await told(store)
    assert.equal(opened?.message['event'], 'Source Silent')
    assert.match(
      String(propertiesOf(opened?.message)['message']),
      /^The source "web shop" has sent nothing for [34] minutes\. At this time of the week it sent at least 60 messages an hour in the past 3 weeks\.$/,
    )
    await count(store, 'source', source.id, rig.nowMs, { accepted: 1 })
    await rig.pass(0)
    assert.deepEqual(await toldEvents(store), [
      ['Source Silent', 'open'],
      ['Source Silent', 'closed'],
    ])
  })

  test('causes no alert after the service itself was down', async (t) => {
    const { store } = await openStore(t)
    const { source } = await newInstallation(store)
    for (let minute = -60; minute < -30; minute++) await count(store, 'source', source.id, START_MS + minute * MINUTE_MS, { accepted: 1 })
    const rig = alertsOn(store)
    await rig.pass(1)
    assert.equal(await rig.alerts.openCount(), 0)
    for (let minute = 0; minute < 6; minute++) await rig.pass(1)
    assert.equal(await rig.alerts.openCount(), 1, 'nothing arrives although the service is up again')
  })

  test('causes no alert after the machine was suspended, or its clock was set back', async (t) => {
    const { store } = await openStore(t)
    const { source } = await newInstallation(store)
    for (let minute = -60; minute < 2; minute++) await count(store, 'source', source.id, START_MS + minute * MINUTE_MS, { accepted: 1 })
    const rig = alertsOn(store)
    await rig.pass(1)
    for (const jump of [30, -20]) {
      await rig.pass(jump)
      await rig.pass(1)
      assert.equal(await rig.alerts.openCount(), 0)
    }
    for (let minute = 0; minute < 6; minute++) await rig.pass(1)
    assert.equal(await rig.alerts.openCount(), 1, 'nothing arrives although the service is up again')
  })
})

suite('several nodes', () => {
  const nodesOf = (names: readonly string[], self: string, startedAtMs = START_MS): Nodes => {
    const nodes = names.map(
      (name, num): NodeSummary => ({ num, name, version: '1', startedAtMs, seenAtMs: startedAtMs, doc: {}, isSelf: name === self }),
    )
    return {
      nodes,
      others: () => nodes.filter(({ isSelf }) => !isSelf),
      count: nodes.length,
      rank: names.indexOf(self),
      announce: () => {},
      onChange: () => {},
    }
  }

  test('that all evaluate the rules at the same time send one alert about each incident', async (t) => {
    const { store, place } = await openStore(t)
    const { shop } = await newInstallation(store)
    // On SQLite, two evaluators of one process: their transactions are the same ones.
    const second = ON_POSTGRES ? await place.open() : store
    if (ON_POSTGRES) t.after(() => second.close())
    const rigs = [store, second].map((each) => alertsOn(withNodes(each, undefined)))
    await failFor(store, shop.id, START_MS, 10)
    for (let minute = 0; minute < 8; minute++) await Promise.all(rigs.map((rig) => rig.pass(1)))
    for (let minute = 10; minute < 14; minute++) await count(store, 'destination', shop.id, START_MS + minute * MINUTE_MS, { delivered: 5 })
    for (let minute = 8; minute < 14; minute++) await Promise.all(rigs.map((rig) => rig.pass(1)))
    assert.deepEqual(await toldEvents(store), [
      ['Destination Failing', 'open'],
      ['Destination Recovered', 'closed'],
    ])
  })

  test('notice a node that stopped unexpectedly, and not one that was shut down', async (t) => {
    const { store } = await openStore(t)
    await newInstallation(store)
    let names = ['a', 'b', 'c']
    const onNode = (self: string) => alertsOn(withNodes(store, () => nodesOf(names, self)))
    const [a, b, c] = [onNode('a'), onNode('b'), onNode('c')]
    for (const node of [a, b, c]) await node.pass(1)
    await c.alerts.stop()
    names = ['b']
    for (let minute = 0; minute < 3; minute++) await b.pass(1)
    const { data } = await b.alerts.incidents(all, FIRST_PAGE)
    assert.deepEqual(
      data.map(({ rule, subject }) => [rule, subject.name]),
      [['node_lost', 'a']],
    )
    names = ['b', 'd', 'e']
    const d = alertsOn(
      withNodes(store, () => nodesOf(names, 'b')),
      { nowMs: b.nowMs },
    )
    await d.pass(1)
    assert.deepEqual(await toldEvents(store), [
      ['Node Lost', 'open'],
      ['Node Lost', 'closed'],
    ])
  })
})

suite('a node that dies between opening an incident and sending the alert', () => {
  for (const when of ['before', 'after'] as const) {
    test(`loses nothing and repeats nothing, killed ${when} the message was stored`, async (t) => {
      const { store, place } = await openStore(t)
      const { shop } = await newInstallation(store)
      await failFor(store, shop.id, START_MS, 10)
      await store.close()
      const child = spawn(process.execPath, [join(import.meta.dirname, 'fixtures', 'killed-teller.ts'), when], {
        env: { ...process.env, ...place.env, SWITCHYARD_SECRET_KEY: 'a key for these tests' },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      t.after(() => child.kill('SIGKILL'))
      const [line] = (await Promise.race([once(child.stdout, 'data'), once(child, 'exit')])) as [unknown]
      assert.equal(String(line), 'telling\n')
      child.kill('SIGKILL')
      await once(child, 'exit')
      const reopened = await place.open()
      t.after(() => reopened.close())
      assert.deepEqual(await toldEvents(reopened), when === 'before' ? [] : [['Destination Failing', 'open']])
      const rig = alertsOn(withNodes(reopened, undefined), { nowMs: START_MS + 7 * MINUTE_MS })
      await rig.pass(1)
      await rig.pass(1)
      assert.deepEqual(await toldEvents(reopened), [['Destination Failing', 'open']])
    })
  }

  test('an unavailable store delays the message', async (t) => {
    const { store } = await openStore(t)
    const { shop } = await newInstallation(store)
    await failFor(store, shop.id, START_MS, 60)
    let isDown = true
    const accept: TestStore['ingest']['accept'] = async (batch) => {
      if (isDown) throw new StoreUnavailable('the disk is full')
      return store.ingest.accept(batch)
    }
    const rig = alertsOn(withNodes(store, undefined, { ingest: { ...store.ingest, accept } }))
    await rig.pass(6)
    assert.deepEqual([await rig.alerts.openCount(), await toldEvents(store)], [1, []])
    isDown = false
    await rig.pass(1)
    assert.deepEqual(await toldEvents(store), [['Destination Failing', 'open']])
  })
})

test('messages in quarantine cause an alert three days before they are deleted, and none if they are kept', async (t) => {
  const { store } = await openStore(t)
  const { source } = await newInstallation(store)
  const receivedAtMs = START_MS - 26 * DAY_MS
  await accept(store, source.id, tracks(2), [], { ...quarantining([0, 1]), receivedAtMs })
  const rig = alertsOn(store)
  const keeping = alertsOn(store, { quarantineDays: 0, nowMs: START_MS + 300 * DAY_MS })
  await keeping.pass(1)
  await rig.pass(1)
  assert.deepEqual(await toldEvents(store), [])
  await rig.pass((DAY_MS + HOUR_MS) / MINUTE_MS)
  const [alert] = await told(store)
  const { message, state } = propertiesOf(alert?.message)
  assert.deepEqual([alert?.message['event'], state], ['Quarantine Expiring', 'open'])
  assert.match(String(message), /^2 messages are in quarantine\. The oldest, from the source "web shop", will be deleted in 3 days\./)
  const held = await store.quarantine.list({}, FIRST_PAGE)
  await store.quarantine.delete(held.data.map(({ id }) => id))
  await rig.pass(1)
  assert.equal((await told(store)).length, 2)
})

test('a test alert goes to all destinations of the source system', async (t) => {
  const { store } = await openStore(t)
  const { shop, pager } = await newInstallation(store)
  const rig = alertsOn(store)
  const { messageId, destinationIds } = await rig.alerts.test({ id: 'admin', name: 'admin' })
  assert.deepEqual(new Set(destinationIds), new Set([shop.id, pager.id]))
  const [sent] = await told(store)
  assert.equal(sent?.message['messageId'], messageId)
  assert.equal(sent?.message['event'], 'Alert Test')
})

test('lists of incidents have pages: first those that are open, then those of the past', async (t) => {
  const { store } = await openStore(t)
  const { shop } = await newInstallation(store)
  const rig = alertsOn(store)
  for (let nth = 0; nth < 3; nth++) {
    await failFor(store, shop.id, rig.nowMs, 6)
    await rig.pass(6)
    if (nth === 2) break
    await count(store, 'destination', shop.id, rig.nowMs, { delivered: 5 })
    await rig.pass(5)
    rig.nowMs += HOUR_MS
  }
  const whole = (await rig.alerts.incidents(all, FIRST_PAGE)).data
  assert.deepEqual(
    whole.map(({ state }) => state),
    ['open', 'closed', 'closed'],
  )
  const paged = []
  for (let cursor: string | null = null; ; ) {
    const page = await rig.alerts.incidents(all, { limit: 1, cursor })
    paged.push(...page.data)
    cursor = page.next
    if (cursor === null) break
  }
  assert.deepEqual(paged, whole)
})
