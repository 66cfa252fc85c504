// The list of incidents: problems that have just begun, current numbers, acknowledgements, and rules that say less than others.

import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import { usualSentence } from '../api/attempt-reasons.ts'
import { accept, claimOne, newDestination, settle, tracks } from '../store/conformance/fixtures.ts'
import { newStoreLocation, type TestStore } from '../store/fixtures/test-store.ts'
import { noteTables, WAREHOUSE_NOTICES } from '../store/port/warehouse-tables.ts'
import type { NewDestination } from '../store/store.ts'
import type { Alerts } from './alerts.ts'
import { alertsOn, count, newInstallation, START_MS, told, withNodes } from './fixtures/rig.ts'
import type { Incident } from './incidents.ts'
import { HOUR_MS, MINUTE_MS } from './rules/rule.ts'

async function openStore(t: TestContext): Promise<TestStore> {
  const place = await newStoreLocation()
  const store = await place.open()
  t.after(async () => {
    await store.close()
    await place.remove()
  })
  return store
}

const LOAD = { everyMs: 60_000, maxRows: 50_000, maxBytes: 1_000_000 }
const FIRST_PAGE = { limit: 50, cursor: null }
const fail = (store: TestStore, id: string, minute: number) =>
  count(store, 'destination', id, START_MS + minute * MINUTE_MS, { attempts: 5, retried: 5 })

const storedIncidents = (store: TestStore) =>
  store.documents.list('incident', { prefixes: ['current/', 'starting/'], order: 'key', limit: 10 })

async function listed(rig: ReturnType<typeof alertsOn>): Promise<Incident[]> {
  return (await rig.alerts.incidents(() => true, FIRST_PAGE)).data
}

suite('a problem that has just begun', () => {
  test('is listed at once, and becomes the open incident with the same id', async (t) => {
    const store = await openStore(t)
    const { shop } = await newInstallation(store)
    const rig = alertsOn(store, { failureOf: () => ({ reason: 'connection_refused' }) })
    await fail(store, shop.id, 0)
    await rig.pass(0)
    const [starting] = await listed(rig)
    assert.deepEqual(
      [starting?.state, starting?.severity, starting?.details['cause']],
      ['starting', 'critical', 'The receiver refused the connection.'],
    )
    assert.deepEqual(await told(store), [])
    assert.equal(await rig.alerts.openCount(), 0)
    for (let minute = 1; minute <= 6; minute++) {
      await fail(store, shop.id, minute)
      await rig.pass(1)
    }
    const [open, ...more] = await listed(rig)
    assert.deepEqual(more, [])
    assert.deepEqual([open?.id, open?.state, open?.sinceMs], [starting?.id, 'open', starting?.sinceMs])
    const messages = await told(store)
    assert.equal(messages.length, 1)
    const properties = messages[0]?.message['properties'] as { cause: string; severity: string; incidentLink: string }
    assert.deepEqual(
      [properties.cause, properties.severity, properties.incidentLink],
      ['The receiver refused the connection.', 'critical', `https://events.example.com/alerts/${open?.id}`],
    )
  })

  test('is forgotten if it ends before', async (t) => {
    const store = await openStore(t)
    const { shop } = await newInstallation(store)
    const rig = alertsOn(store)
    await fail(store, shop.id, 0)
    await rig.pass(0)
    assert.equal((await listed(rig)).length, 1)
    for (let minute = 1; minute < 5; minute++) {
      await count(store, 'destination', shop.id, START_MS + minute * MINUTE_MS, { delivered: 9 })
      await rig.pass(1)
    }
    assert.deepEqual(
      (await listed(rig)).filter(({ rule }) => rule === 'destination_failing'),
      [],
    )
    assert.deepEqual(await told(store), [])
  })
})

suite('an error that may quote a message', () => {
  const QUOTING = 'The tool answered: "ada@example.com" is not an email address.'

  test('is in no incident and no alert: they have the usual sentence of the reason', async (t) => {
    const store = await openStore(t)
    const { shop } = await newInstallation(store)
    const failure = { reason: 'invalid_payload', error: QUOTING }
    const rig = alertsOn(store, { failureOf: () => failure })
    for (let minute = 0; minute < 7; minute++) {
      await fail(store, shop.id, minute)
      await rig.pass(1)
    }
    const incidents = await listed(rig)
    const messages = await told(store)
    assert.equal(incidents[0]?.details['cause'], usualSentence('invalid_payload'))
    assert.equal(messages.length, 1)
    assert.doesNotMatch(JSON.stringify([incidents, messages]), /ada@example/)
  })

  test('is left out of incidents that an earlier version has stored, and is not stored again', async (t) => {
    const store = await openStore(t)
    const { shop } = await newInstallation(store)
    const rig = alertsOn(store, { failureOf: () => null })
    await fail(store, shop.id, 0)
    await rig.pass(0)
    const [{ key, doc } = assert.fail('nothing is stored')] = await storedIncidents(store)
    const earlier = doc as unknown as Incident
    const atMs = earlier.openedAtMs
    const quoting = { ...earlier, details: { ...earlier.details, cause: QUOTING } } as unknown as JsonObject
    const closed = { ...quoting, id: 'inc_past', state: 'closed', closedAtMs: atMs }
    await store.documents.update('incident', [key], () => new Map([[key, { atMs, doc: quoting }]]))
    await store.documents.update('incident', ['past/inc_past'], () => new Map([['past/inc_past', { atMs, doc: closed }]]))
    assert.deepEqual(
      (await listed(rig)).map(({ id, details }) => [id, details['cause']]),
      [
        [earlier.id, undefined],
        ['inc_past', undefined],
      ],
    )
    assert.equal((await rig.alerts.incident('inc_past'))?.details['cause'], undefined)
    await rig.pass(0)
    const [stored] = await storedIncidents(store)
    assert.deepEqual([stored?.doc['id'], stored?.doc['details']], [earlier.id, earlier.details])
  })
})

suite('an error of an engine that may quote a message', () => {
  const SAID = 'PostgreSQL says: invalid input syntax for type boolean: "ada@example.com"'
  const load = (destinationId: string) => {
    const about = { destinationId, sourceId: 'src_shop', schema: 'shop', loaded: [], limits: [], recreated: [] }
    return { ...about, failed: [{ table: 'cart_viewed', reason: 'warehouse_table_changed' }] }
  }

  test('is left out of incidents and notices that an earlier version stored, and of the alerts about them', async (t) => {
    const store = await openStore(t)
    const { source } = await newInstallation(store)
    const settings = { type: 'warehouse', name: 'Tables', warehouse: { engine: 'parquet', url: 'file:///lake' }, load: LOAD } as const
    const { id } = await newDestination(store, source.id, settings as unknown as Partial<NewDestination>)
    await accept(store, source.id, tracks(1), [id])
    const rig = alertsOn(store, { failureOf: () => null })
    await noteTables(store.documents, load(id), START_MS)
    await rig.pass(0)
    const isAboutTables = ({ rule }: Incident): boolean => rule === 'warehouse_tables'
    const listedTables = async (): Promise<Incident[]> => (await listed(rig)).filter(isAboutTables)
    const [open = assert.fail('no incident')] = await listedTables()
    const sentence = usualSentence('warehouse_table_changed') ?? ''
    assert.equal(open.details['problem'], sentence)
    assert.ok(open.message.startsWith(`1 table of "Tables" cannot be loaded (shop.cart_viewed): ${sentence} The other`), open.message)

    const replaced = (text: string): JsonObject =>
      JSON.parse(text.replaceAll(JSON.stringify(sentence).slice(1, -1), SAID.replaceAll('"', '\\"')))
    for (const [kind, { key, atMs, doc }] of [
      ...(await storedIncidents(store)).map((each) => ['incident', each] as const),
      ...(await store.documents.list(WAREHOUSE_NOTICES, { order: 'key', limit: 10 })).map((each) => [WAREHOUSE_NOTICES, each] as const),
    ])
      await store.documents.update(kind, [key], () => new Map([[key, { atMs, doc: replaced(JSON.stringify(doc)) }]]))
    const [earlier] = await listedTables()
    const failed = usualSentence('warehouse_failed') ?? ''
    assert.equal(earlier?.details['problem'], failed)
    for (const text of [earlier?.message, earlier?.openedMessage])
      assert.ok(text?.includes(`(shop.cart_viewed): ${failed} The other`), text)
    await rig.pass(1)
    const after = await listedTables()
    assert.equal(after[0]?.details['problem'], failed)
    assert.doesNotMatch(JSON.stringify([after, await storedIncidents(store), await told(store)]), /ada@example/)
  })
})

test('until it is closed, an incident keeps the counts of the attempts that failed', async (t) => {
  const store = await openStore(t)
  const { shop } = await newInstallation(store)
  const rig = alertsOn(store)
  for (let minute = 0; minute < 7; minute++) {
    await fail(store, shop.id, minute)
    await rig.pass(1)
  }
  const [before] = await listed(rig)
  await count(store, 'destination', shop.id, rig.nowMs, { delivered: 10 })
  await rig.pass(0)
  const [after] = await listed(rig)
  assert.deepEqual([after?.state, after?.observedAtMs, after?.details], ['open', rig.nowMs, before?.details])
  assert.match(after?.message ?? '', /: 35 of 35 delivery attempts failed\./)
})

test('an incident that moves to the past while it is read is found once', async (t) => {
  for (const find of [
    (alerts: Alerts, _id: string) => alerts.incidents(() => true, FIRST_PAGE).then(({ data }) => data),
    (alerts: Alerts, id: string) => alerts.incident(id).then((found) => [found]),
  ]) {
    const store = await openStore(t)
    const { shop } = await newInstallation(store)
    const rig = alertsOn(store)
    for (let minute = 0; minute < 6; minute++) await fail(store, shop.id, minute)
    await rig.pass(6)
    const [open] = await listed(rig)
    for (let minute = 6; minute < 12; minute++) await count(store, 'destination', shop.id, START_MS + minute * MINUTE_MS, { delivered: 5 })
    let isMoved = false
    /** After the first read, the incident is closed, and its alerts are sent. */
    const first = async <R>(read: Promise<R>): Promise<R> => {
      const answer = await read
      if (isMoved) return answer
      isMoved = true
      await rig.pass(6)
      return answer
    }
    const { documents } = store
    const moving = Object.assign(Object.create(documents) as typeof documents, {
      list: (...args: Parameters<typeof documents.list>) => first(documents.list(...args)),
      get: (...args: Parameters<typeof documents.get>) => first(documents.get(...args)),
    })
    const reader = alertsOn(withNodes(store, undefined, { documents: moving }))
    const found = await find(reader.alerts, open?.id ?? '')
    assert.deepEqual(
      found.map((each) => each?.id),
      [open?.id],
    )
    assert.deepEqual(
      (await listed(rig)).map(({ id, state }) => [id, state]),
      [[open?.id, 'closed']],
    )
  }
})

test('an incident shows the current numbers, and how they changed', async (t) => {
  const store = await openStore(t)
  const { source, shop } = await newInstallation(store)
  const rig = alertsOn(store)
  await accept(store, source.id, tracks(3), [shop.id])
  for (let minute = 0; minute < 7; minute++) {
    await fail(store, shop.id, minute)
    await rig.pass(1)
  }
  await accept(store, source.id, tracks(40, 'later'), [shop.id])
  await rig.pass(1)
  const incident = (await listed(rig)).find(({ rule }) => rule === 'destination_failing')
  assert.equal(incident?.details['pending'], 43)
  assert.match(incident?.message ?? '', /43 deliveries are pending/)
  assert.match(incident?.openedMessage ?? '', /3 deliveries are pending/)
  assert.equal(incident?.readings?.at(-1)?.[1], 43)
  assert.ok((incident?.readings?.length ?? 0) >= 5)
  assert.ok((incident?.observedAtMs ?? 0) === rig.nowMs)
})

test('an incident says when the first pending delivery expires, unless nothing expires', async (t) => {
  const store = await openStore(t)
  const { source, shop } = await newInstallation(store)
  let hold: { problem: string } | null = null
  const rig = alertsOn(store, { nowMs: Date.now(), holdOf: () => hold })
  await store.resources.updateDestination(shop.id, { retryWindowMs: 3 * HOUR_MS })
  await accept(store, source.id, tracks(1), [shop.id])
  await settle(store, await claimOne(store, shop.id), 'retry', { firstAttemptAtMs: rig.nowMs - HOUR_MS, dueAtMs: rig.nowMs + MINUTE_MS })
  await count(store, 'destination', shop.id, rig.nowMs, { attempts: 5, retried: 5 })
  const messageOf = async () => {
    await rig.pass(0)
    return (await listed(rig)).find(({ rule }) => rule === 'destination_failing')?.message ?? ''
  }
  assert.match(await messageOf(), /1 delivery is pending\. The first one expires in 2 hours \(\d{4}-\d\d-\d\d \d\d:\d\d UTC\)\.$/)
  hold = { problem: 'An action is gone.' }
  assert.match(await messageOf(), /1 delivery is pending\.$/)
})

test('the readings of a long incident cover the whole time, and there are at most 60', async (t) => {
  const store = await openStore(t)
  const { shop } = await newInstallation(store)
  const rig = alertsOn(store)
  for (let minute = 0; minute < 300; minute++) {
    await fail(store, shop.id, minute)
    await rig.pass(1)
  }
  const incident = (await listed(rig)).find(({ rule }) => rule === 'destination_failing')
  const readings = incident?.readings ?? []
  assert.ok(readings.length <= 60 && readings.length >= 20, String(readings.length))
  assert.ok((readings[0]?.[0] ?? 0) <= START_MS + 2 * MINUTE_MS)
  assert.equal(readings.at(-1)?.[0], rig.nowMs)
})

test('an acknowledged incident stays open, and keeps who acknowledged it', async (t) => {
  const store = await openStore(t)
  const { shop } = await newInstallation(store)
  const rig = alertsOn(store)
  await fail(store, shop.id, 0)
  await rig.pass(0)
  const [starting] = await listed(rig)
  const by = { id: 'tok_1', name: 'ops' }
  const acknowledged = { atMs: rig.nowMs, by, name: 'Ada', note: 'looking' }
  assert.equal((await rig.alerts.acknowledge(starting?.id ?? '', acknowledged))?.after.acknowledged?.name, 'Ada')
  for (let minute = 1; minute <= 6; minute++) {
    await fail(store, shop.id, minute)
    await rig.pass(1)
  }
  const [open] = await listed(rig)
  assert.deepEqual([open?.state, open?.acknowledged], ['open', acknowledged])
  assert.equal(await rig.alerts.acknowledge('inc_none', acknowledged), undefined)
})

test('a rule that says less about the same destination opens nothing', async (t) => {
  const store = await openStore(t)
  const { source, shop } = await newInstallation(store)
  await store.resources.updateDestination(shop.id, { sourceIds: [source.id] })
  await newDestination(store, source.id, { name: 'works' })
  const rig = alertsOn(store, { nowMs: Date.now() })
  await accept(store, source.id, tracks(2), [shop.id])
  await rig.pass(6)
  const rulesOf = async () => (await listed(rig)).filter(({ state }) => state !== 'closed').map(({ rule }) => rule)
  assert.deepEqual(await rulesOf(), ['deliveries_delayed'])
  await count(store, 'destination', shop.id, rig.nowMs, { attempts: 5, retried: 5 })
  await rig.pass(0)
  await rig.pass(0)
  assert.deepEqual(await rulesOf(), ['destination_failing'])
})

test('deliveries that failed permanently are a warning, and cause no alert unless somebody wants it', async (t) => {
  const store = await openStore(t)
  const { shop } = await newInstallation(store)
  const rig = alertsOn(store)
  await count(store, 'destination', shop.id, START_MS, { attempts: 9, failed: 2, delivered: 7 })
  await rig.pass(1)
  const [incident] = await listed(rig)
  assert.deepEqual([incident?.rule, incident?.severity, incident?.state], ['deliveries_failed', 'warning', 'open'])
  assert.deepEqual(await told(store), [])
  await rig.alerts.settings.change({ rules: { deliveries_failed: { notify: true } } }, rig.nowMs)
  await rig.pass(1)
  assert.equal((await told(store)).length, 1)
})

suite('a destination that rejects everything permanently', () => {
  const rejected = (store: TestStore, id: string, minute: number, times: number, more = {}) =>
    count(store, 'destination', id, START_MS + minute * MINUTE_MS, { attempts: times, failed: times, ...more })
  const active = async (rig: ReturnType<typeof alertsOn>) => (await listed(rig)).filter(({ state }) => state !== 'closed')

  test('has one incident, from its start to its end, which counts these deliveries and offers to replay them', async (t) => {
    const store = await openStore(t)
    const { shop } = await newInstallation(store)
    const rig = alertsOn(store, { failureOf: () => ({ reason: 'http_422' }) })
    await rig.alerts.settings.change({ rules: { deliveries_failed: { notify: true } } }, START_MS)
    await rejected(store, shop.id, 0, 4)
    await rig.pass(0)
    assert.deepEqual(
      (await active(rig)).map(({ rule, state }) => [rule, state]),
      [['destination_failing', 'starting']],
    )
    for (let minute = 1; minute <= 6; minute++) {
      await rejected(store, shop.id, minute, 4)
      await rig.pass(1)
      assert.equal((await active(rig)).length, 1)
    }
    const [open] = await active(rig)
    assert.deepEqual([open?.rule, open?.state, open?.details['failedPermanently']], ['destination_failing', 'open', 28])
    assert.equal(
      open?.message,
      'The destination "warehouse" has been failing for 6 minutes: 28 of 28 delivery attempts failed. 28 deliveries failed permanently and will not be retried: correct the cause, and replay them.',
    )
    assert.match(open?.details['cause'] as string, /422/)
    for (let minute = 7; minute <= 10; minute++) {
      await count(store, 'destination', shop.id, START_MS + minute * MINUTE_MS, { delivered: 9 })
      await rig.pass(1)
    }
    assert.deepEqual(await active(rig), [], 'failures from before open no second incident')
    const [closed] = await listed(rig)
    assert.match(closed?.closedMessage ?? '', /has recovered\..*The deliveries that failed permanently in that time can be replayed\./)
    const events = (await told(store)).map(({ message }) => message['event'])
    assert.deepEqual(events, ['Destination Failing', 'Destination Recovered'])
    await rejected(store, shop.id, 11, 1)
    await rig.pass(1)
    const [later, ...others] = await active(rig)
    assert.deepEqual([later?.rule, later?.details['failed'], others], ['deliveries_failed', 1, []], 'a new failure opens one')
  })

  test('has one open incident if a few deliveries failed first: their incident becomes part of the second one', async (t) => {
    const store = await openStore(t)
    const { shop } = await newInstallation(store)
    const rig = alertsOn(store, { failureOf: () => ({ reason: 'http_422' }) })
    await rejected(store, shop.id, 0, 2, { delivered: 50 })
    await rig.pass(0)
    assert.deepEqual(
      (await active(rig)).map(({ rule }) => rule),
      ['deliveries_failed'],
    )
    await rejected(store, shop.id, 1, 5)
    await rig.pass(1)
    assert.deepEqual(
      (await active(rig)).map(({ rule }) => rule),
      ['destination_failing'],
    )
    const first = (await listed(rig)).find(({ rule }) => rule === 'deliveries_failed')
    assert.equal(first?.closedMessage, 'This is now part of the incident "Destination Failing" about "warehouse".')
  })

  test('or rejects only some has one incident, because attempts_failing counts only attempts that are retried', async (t) => {
    const store = await openStore(t)
    const { shop } = await newInstallation(store)
    const rig = alertsOn(store)
    for (let minute = 0; minute < 3; minute++) {
      await rejected(store, shop.id, minute, 6, { delivered: 14 })
      await rig.pass(1)
    }
    assert.deepEqual(
      (await active(rig)).map(({ rule }) => rule),
      ['deliveries_failed'],
    )
    await count(store, 'destination', shop.id, rig.nowMs, { retried: 30, delivered: 40 })
    await rig.pass(0)
    assert.deepEqual(new Set((await active(rig)).map(({ rule }) => rule)), new Set(['deliveries_failed', 'attempts_failing']))
  })
})

test('a paused destination with a backlog is a notice', async (t) => {
  const store = await openStore(t)
  const { source, shop } = await newInstallation(store)
  const rig = alertsOn(store)
  await accept(store, source.id, tracks(4), [shop.id])
  await store.resources.updateDestination(shop.id, { paused: true })
  await rig.pass(1)
  const [incident] = await listed(rig)
  assert.deepEqual([incident?.rule, incident?.severity], ['destination_stopped', 'notice'])
  assert.match(incident?.message ?? '', /^Paused: 4 deliveries pending\./)
})
