// Conformance: details of a message: its trace context, the filter rule that excluded it, how often it was sent again, whether it was purged, all messages with its messageId, and the other messages of a request.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { GatheredPart, Shipment, Store, TraceContext } from '../store.ts'
import {
  accept,
  claim,
  claimOne,
  DAY_MS,
  deliveriesOf,
  newDestination,
  newSource,
  newSourceAndDestination,
  quietMoment,
  requestRecord,
  type StoreFixture,
  settle,
  settlementOf,
  track,
  tracks,
  until,
} from './fixtures.ts'

const TRACE: TraceContext = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: null }

export function messageDetails({ store, reopen, open }: StoreFixture): void {
  const trail = async (id: string) => {
    const [newest, ...others] = await store().history.trails(id)
    assert.ok(newest !== undefined, `${id} must be found`)
    assert.deepEqual(others, [])
    return newest
  }

  test('the trace context of a call is returned with its messages, by every method', async () => {
    for (const trace of [TRACE, { ...TRACE, tracestate: 'congo=t61rcWkgMzE, rojo=00f067aa0ba902b7' }]) {
      const { sourceId, destinationId } = await newSourceAndDestination(store())
      const { segment } = await accept(store(), sourceId, [track('traced')], [destinationId], { trace })
      const bare = await accept(store(), sourceId, [track('bare')], [destinationId])
      await reopen()
      const { shipments } = await claim(store(), destinationId)
      const traces = shipments.map(({ bodies }) => [...bodies].map(([of, { about }]) => [of, about.trace]))
      assert.deepEqual(traces.flat(), [
        [segment, trace],
        [bare.segment, null],
      ])
      const { data } = await store().history.messages({ sourceId }, { limit: 2, cursor: null })
      assert.deepEqual(
        data.map(({ content }) => content.trace),
        [null, trace],
      )
      assert.deepEqual(
        (await store().history.delivery(deliveriesOf((shipments[0] as { shipment: Shipment }).shipment)[0] as string))?.content?.trace,
        trace,
      )
    }
  })

  test('a message in a large batch is found by its id, its messageId and its user, and in its delivery', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const name = (index: number) => `large-${sourceId}-${index}`
    const items = Array.from({ length: 300 }, (_, index) =>
      track(name(index), { userId: name(index), properties: { text: 'é"}]'.repeat(100) } }),
    )
    await accept(store(), sourceId, items, [destinationId])
    for (const index of [0, 123, 299]) {
      const [listed] = (await store().history.messages({ sourceId, userId: name(index) }, { limit: 10, cursor: null })).data
      const [row] = (await store().history.deliveries({ destinationId, userId: name(index) }, { limit: 10, cursor: null })).data
      const detail = await store().history.delivery(row?.id ?? '')
      const found = [
        listed,
        await store().history.message(listed?.id ?? ''),
        await store().history.message(name(index)),
        ...(await store().history.trails(name(index))),
        detail,
      ]
      assert.deepEqual(
        found.map((each) => each?.content?.items[each.index]),
        found.map(() => items[index]),
      )
      assert.deepEqual([row?.messageId, row?.userId, detail?.messageId], [name(index), name(index), name(index)])
    }
  })

  test('the filter rule that excluded a message is stored with it', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const other = await newDestination(store(), sourceId)
    await accept(store(), sourceId, [track('kept-back-0'), track('kept-back-1'), track('kept-back-2')], {
      skips: [
        { destinationId, reason: 'filtered', rule: 'type_denied', indexes: [0] },
        { destinationId, reason: 'filtered', rule: 'event_not_allowed', indexes: [1] },
        { destinationId, reason: 'filtered', rule: 'subscribe', indexes: [2] },
        { destinationId: other.id, reason: 'historical', indexes: null },
      ],
    })
    await reopen()
    for (const [id, rule] of [
      ['kept-back-0', 'type_denied'],
      ['kept-back-1', 'event_not_allowed'],
      ['kept-back-2', 'subscribe'],
    ] as const) {
      const expected = [
        { destinationId, reason: 'filtered', rule },
        { destinationId: other.id, reason: 'historical' },
      ]
      assert.deepEqual((await trail(id)).skips, expected)
      assert.deepEqual((await store().history.message(id))?.skips, expected)
    }
  })

  test('the number of times a message was sent again, and the last time, are stored', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const send = (receivedAtMs: number, ...ids: string[]): Promise<unknown> =>
      accept(
        store(),
        sourceId,
        ids.map((id) => track(id)),
        [destinationId],
        { receivedAtMs },
      )
    await send(1_000, 'again-a', 'again-b')
    assert.equal((await trail('again-a')).repeats, null)
    await send(2_000, 'again-a', 'again-b')
    await send(3_000, 'again-a', 'again-b')
    await send(4_000, 'again-b', 'again-c')
    assert.deepEqual((await trail('again-a')).repeats, { count: 2, lastAtMs: 3_000 })
    await reopen()
    await send(5_000, 'again-c', 'again-c')
    assert.deepEqual((await trail('again-a')).repeats, { count: 2, lastAtMs: 3_000 })
    assert.deepEqual((await trail('again-b')).repeats, { count: 3, lastAtMs: 4_000 })
    assert.deepEqual((await trail('again-c')).repeats, { count: 2, lastAtMs: 5_000 })
    await send(6_000, 'again-d', 'again-d', 'again-d')
    assert.deepEqual((await trail('again-d')).repeats, { count: 2, lastAtMs: 6_000 }, 'also within one call')
  })

  test('the same messageId from another source is no repeat, and both messages are found', async () => {
    const [first, second] = [await newSource(store()), await newSource(store())]
    await accept(store(), first.id, [track('shared-trail')])
    await quietMoment()
    await accept(store(), second.id, [track('x-0'), track('shared-trail')])
    const trails = await store().history.trails('shared-trail')
    assert.deepEqual(
      trails.map(({ content, index, repeats }) => [content.sourceId, index, repeats]),
      [
        [second.id, 1, null],
        [first.id, 0, null],
      ],
    )
    const [newest] = trails
    assert.deepEqual(await store().history.trails((newest as { id: string }).id), [newest], 'only this one by its own id')
    for (const unknown of ['3-14', 'never-told', '9-99', `${newest?.segment}-2`, `${newest?.segment}-9999`]) {
      assert.deepEqual(await store().history.trails(unknown), [], unknown)
    }
  })

  test('the time and the deliveries of a purged message are still known, but nothing of its content', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, [track('purged-0', { userId: 'leaves' }), track('purged-1')], [destinationId])
    const { id } = await trail('purged-0')
    const { id: deletion } = await store().deletions.create({ userIds: ['leaves'], sourceIds: [sourceId], suppress: false })
    await until(
      () => store().deletions.one(deletion),
      (detail) => detail?.purged === 1,
      'it is purged',
    )
    await reopen()
    for (const name of ['purged-0', id]) {
      const left = await trail(name)
      assert.equal(left.content.items[left.index], null)
      assert.deepEqual([left.id, left.content.sourceId, left.deliveries.length], [id, sourceId, 1])
      assert.doesNotMatch(JSON.stringify(left), /leaves|purged-0/)
    }
    assert.equal((await trail('purged-1')).content.items[1]?.['messageId'], 'purged-1')
  })

  test('a duplicate is not found by its index', async () => {
    const { id: sourceId } = await newSource(store())
    const { segment, duplicates } = await accept(store(), sourceId, [track('twice-in-one'), track('twice-in-one')])
    assert.deepEqual(duplicates, [1])
    assert.deepEqual(await store().history.trails(`${segment}-1`), [])
    assert.equal((await trail(`${segment}-0`)).repeats?.count, 1)
  })

  test('the count of repeats is dropped together with the message', async () => {
    const opened = await open({ retentionDays: 7 })
    try {
      const { id: sourceId } = await newSource(opened.store)
      const items = tracks(3, 'old')
      for (let times = 0; times < 2; times++) await accept(opened.store, sourceId, items)
      await opened.store.dropExpired(Date.now() + 100 * DAY_MS)
      assert.deepEqual(await opened.store.history.trails('old-0'), [])
      await accept(opened.store, sourceId, items)
      assert.equal((await opened.store.history.trails('old-0'))[0]?.repeats ?? null, null)
    } finally {
      await opened.dispose()
    }
  })

  // ── The contents of a request ──

  const URLS = ['https://one.example/', 'https://two.example/']

  /** Three calls with two messages each, sent as one batch to two URLs. */
  async function sentTogether(of: Store): Promise<{ destinationId: string; shipments: Shipment[]; parts: Shipment['parts'] }> {
    const { sourceId, destinationId } = await newSourceAndDestination(of)
    for (const prefix of ['x', 'y', 'z']) await accept(of, sourceId, tracks(2, `${sourceId}-${prefix}`), [destinationId])
    const shipments = (await claim(of, destinationId)).shipments.map(({ shipment }) => shipment)
    const parts = shipments.flatMap(({ parts }) => parts)
    const settlement = settlementOf(shipments, 'delivered')
    for (const [at, record] of settlement.records.entries()) {
      const gathered = { lead: parts[0]?.origin as number, parts: at === 0 ? parts : null }
      record.requests = URLS.map((url) => requestRecord({ url, startedAtMs: 5_000, indexes: [0, 1], gathered }))
    }
    await of.delivery.settle(settlement)
    return { destinationId, shipments, parts }
  }

  const shown = (gathered: readonly GatheredPart[] | null | undefined): unknown =>
    gathered?.map(({ origin, segment, indexes, content }) => [origin, segment, indexes, content?.items.map((item) => item?.['messageId'])])

  test('a delivery whose request contained messages of several calls shows all of them, in order', async () => {
    const { shipments, parts } = await sentTogether(store())
    await reopen()
    const names: unknown[] = []
    for (const delivery of shipments.flatMap(deliveriesOf)) {
      const detail = await store().history.delivery(delivery)
      const found = shown(detail?.gathered) as unknown[][]
      assert.deepEqual(
        found.map((part) => part.slice(0, 3)),
        parts.map(({ origin, segment, indexes }) => [origin, segment, indexes]),
      )
      names.push(found.map((part) => part[3]))
      assert.deepEqual(detail?.content?.items.length, 2, 'and its own call as before')
    }
    assert.deepEqual(
      new Set((names[0] as string[][]).flat().map((name) => name.replace(/^.*?-(?=[xyz]-)/, ''))),
      new Set(['x-0', 'x-1', 'y-0', 'y-1', 'z-0', 'z-1']),
    )
    assert.ok(names.every((each) => JSON.stringify(each) === JSON.stringify(names[0])))
  })

  test('a delivery whose request contained messages of only one call has no gathered parts', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, tracks(2, 'alone'), [destinationId])
    const claimed = await claimOne(store(), destinationId)
    assert.equal((await store().history.delivery(deliveriesOf(claimed.shipment)[0] as string))?.gathered, null)
    await settle(store(), claimed, 'delivered', { request: { indexes: [0, 1] } })
    assert.equal((await store().history.delivery(deliveriesOf(claimed.shipment)[0] as string))?.gathered, null)
  })
}
