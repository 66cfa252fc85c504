// Conformance: lists with their filters and cursors, one message, one delivery.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CauseFilter, type DeliveryFilter, InvalidCursor, type MessageFilter } from '../store.ts'
import {
  accept,
  allPages,
  claim,
  claimOne,
  deliveriesOf,
  type Fate,
  messageIdsOf,
  NOW_MS,
  newDestination,
  newSource,
  newSourceAndDestination,
  quietMoment,
  requestRecord,
  type StoreFixture,
  settle,
  settleAll,
  track,
  tracks,
} from './fixtures.ts'

const FIRST = { limit: 1_000, cursor: null }

export function reading({ store, reopen }: StoreFixture): void {
  const idsOf = async (filter: MessageFilter): Promise<unknown[]> => {
    const { data, next } = await store().history.messages(filter, FIRST)
    assert.equal(next, null)
    return data.map(({ content, index }) => content.items[index]?.['messageId'])
  }
  const deliveriesWith = async (filter: DeliveryFilter): Promise<string[]> => {
    const { data, next } = await store().history.deliveries(filter, FIRST)
    assert.equal(next, null)
    return data.map(({ messageId, state, reason, attempts }) => [messageId, state, reason ?? '-', attempts].join(' ')).sort()
  }

  // ── Messages ──

  test('messages are listed newest first, by source, type, user and messageId', async () => {
    const [{ id: one }, { id: other }] = [await newSource(store()), await newSource(store())]
    await accept(store(), one, [track('a', { userId: 'ann' }), { type: 'identify', userId: 'bob', messageId: 'b' }])
    await accept(store(), one, [
      { type: 'track', event: 'e', anonymousId: 'anon', messageId: 'c' },
      { type: 'alias', userId: 'cyd', previousId: 'ann', messageId: 'd' },
    ])
    await accept(store(), other, [track('a', { userId: 'ann' }), track('e', { userId: 'ann' })])
    assert.deepEqual(await idsOf({ sourceId: one }), ['d', 'c', 'b', 'a'])
    assert.deepEqual(await idsOf({ sourceId: one, type: 'identify' }), ['b'])
    assert.deepEqual(await idsOf({ sourceId: one, userId: 'ann' }), ['d', 'a'])
    assert.deepEqual(await idsOf({ sourceId: one, userId: 'anon' }), ['c'])
    assert.deepEqual(await idsOf({ sourceId: one, userId: 'bob', type: 'track' }), [])
    assert.deepEqual(await idsOf({ sourceId: one, userId: 'nobody' }), [])
    assert.deepEqual(await idsOf({ sourceId: one, messageId: 'a' }), ['a'])
    assert.deepEqual(await idsOf({ sourceId: one, messageId: 'a', type: 'identify' }), [])
    assert.deepEqual(await idsOf({ sourceId: one, messageId: 'e' }), [])
    assert.deepEqual(await idsOf({ sourceId: 'src_unknown' }), [])
    const { data } = await store().history.messages({ messageId: 'a', userId: 'ann' }, FIRST)
    const ofThese = data.map(({ content }) => content.sourceId).filter((id) => id === one || id === other)
    assert.deepEqual(ofThese, [other, one], 'the same messageId of several sources')
  })

  test('messages are listed by when they were accepted', async () => {
    const { id: sourceId } = await newSource(store())
    const times: number[] = []
    for (const name of ['a', 'b', 'c']) {
      times.push(await quietMoment())
      await accept(store(), sourceId, [track(name)])
    }
    times.push(await quietMoment())
    const [, second, third, end] = times as [number, number, number, number]
    assert.deepEqual(await idsOf({ sourceId, fromMs: second }), ['c', 'b'])
    assert.deepEqual(await idsOf({ sourceId, toMs: third - 1 }), ['b', 'a'])
    assert.deepEqual(await idsOf({ sourceId, fromMs: second, toMs: third - 1 }), ['b'])
    assert.deepEqual(await idsOf({ sourceId, fromMs: second, toMs: third - 1, messageId: 'b' }), ['b'])
    assert.deepEqual(await idsOf({ sourceId, fromMs: third, messageId: 'b' }), [])
    assert.deepEqual(await idsOf({ sourceId, fromMs: end }), [])
  })

  for (const limit of [1, 2, 7]) {
    test(`with ${limit} per page, every message is on exactly one page, also while new ones arrive`, async () => {
      const { id: sourceId } = await newSource(store())
      for (const size of [1, 4, 2, 6]) await accept(store(), sourceId, tracks(size))
      const expected = await idsOf({ sourceId })
      const list = async (filter: MessageFilter): Promise<unknown[]> => {
        const all = await allPages(
          (page) => store().history.messages(filter, page),
          limit,
          () => accept(store(), sourceId, tracks(2)),
        )
        return all.map(({ content, index }) => content.items[index]?.['messageId'])
      }
      assert.deepEqual(await list({ sourceId }), expected)
      assert.deepEqual((await list({ sourceId, userId: 'a user', type: 'track' })).slice(-13), expected)
    })
  }

  test('a message is found by its id; a messageId finds the newest message that has it', async () => {
    const [{ id: one }, { id: other }] = [await newSource(store()), await newSource(store())]
    const shared = `shared-${one}`
    await accept(store(), one, [track('first'), track(shared, { event: 'older' })])
    await accept(store(), other, [track(shared, { event: 'newer' })])
    const newest = await store().history.message(shared)
    assert.equal(newest?.content.sourceId, other)
    assert.equal(newest.content.items[newest.index]?.['event'], 'newer')
    const [listed] = (await store().history.messages({ sourceId: one, messageId: shared }, FIRST)).data
    assert.ok(listed !== undefined)
    assert.deepEqual(await store().history.message(listed.id), listed)
    assert.equal(listed.content.items[0], null, 'the other messages of its batch are left out')
    await reopen()
    assert.deepEqual(await store().history.message(listed.id), listed)
    assert.equal((await store().history.message(shared))?.content.sourceId, other)
    for (const unknown of ['none', '2-0', '99999999999999999999-0', `${listed.segment}-9`, `${listed.segment}--1`, `0${listed.id}`]) {
      assert.equal(await store().history.message(unknown), undefined, unknown)
    }
  })

  test('messages of a deleted source are still found', async () => {
    const { id: sourceId } = await newSource(store())
    const messageId = `kept-${sourceId}`
    await accept(store(), sourceId, [track(messageId, { userId: `user-${sourceId}` })])
    await store().resources.deleteSource(sourceId)
    assert.equal((await store().history.message(messageId))?.content.sourceId, sourceId)
    assert.deepEqual(await idsOf({ userId: `user-${sourceId}` }), [messageId])
    assert.deepEqual(await idsOf({ sourceId }), [messageId])
  })

  // ── Deliveries ──

  const someDeliveries = async (): Promise<{ sourceId: string; destinationId: string }> => {
    const way = await newSourceAndDestination(store())
    const { sourceId, destinationId } = way
    await accept(store(), sourceId, tracks(7, 'd'), [destinationId])
    await accept(store(), sourceId, [track('fresh')], [destinationId])
    const fates: Fate[] = ['delivered', 'failed', 'expired', 'cancelled', 'retry', 'untouched', 'delivered']
    const fateOf = (delivery: string): Fate => fates[Number(delivery.split('-').at(-1))] as Fate
    await settle(store(), await claimOne(store(), destinationId), fateOf, { reason: 'http_410' })
    await accept(store(), sourceId, [track('other')], [destinationId])
    const { shipments } = await claim(store(), destinationId)
    for (const claimed of shipments) {
      if (messageIdsOf(claimed)[0] === 'other') await settle(store(), claimed, 'failed', { reason: 'http_404' })
      else store().delivery.release([claimed.shipment])
    }
    return way
  }

  test('deliveries are listed by destination, state and reason', async () => {
    const { destinationId } = await someDeliveries()
    await someDeliveries()
    const pending = ['d-4 pending - 1', 'd-5 pending - 0', 'fresh pending - 0']
    const ended = ['d-0 delivered - 1', 'd-1 failed http_410 1', 'd-2 expired http_410 1', 'd-3 cancelled http_410 1', 'd-6 delivered - 1']
    const others = ['other failed http_404 1']
    assert.deepEqual(await deliveriesWith({ destinationId }), [...ended, ...pending, ...others].sort())
    assert.deepEqual(await deliveriesWith({ destinationId, state: 'pending' }), pending)
    assert.deepEqual(await deliveriesWith({ destinationId, state: 'delivered' }), [ended[0], ended[4]])
    assert.deepEqual(await deliveriesWith({ destinationId, state: 'failed' }), [ended[1], ...others])
    assert.deepEqual(await deliveriesWith({ destinationId, state: 'expired' }), [ended[2]])
    assert.deepEqual(await deliveriesWith({ destinationId, state: 'cancelled' }), [ended[3]])
    assert.deepEqual(await deliveriesWith({ destinationId, reason: 'http_410' }), ended.slice(1, 4))
    assert.deepEqual(await deliveriesWith({ destinationId, state: 'failed', reason: 'http_404' }), others)
    assert.deepEqual(await deliveriesWith({ destinationId, state: 'pending', reason: 'http_404' }), [])
    assert.deepEqual(await deliveriesWith({ destinationId, state: 'delivered', reason: 'http_404' }), [])
    assert.deepEqual(await deliveriesWith({ destinationId: 'dst_unknown' }), [])
    assert.ok((await store().history.deliveries({ state: 'failed' }, FIRST)).data.length >= 4, 'for all destinations')
  })

  test('deliveries are listed by time: ended ones by when they ended, pending ones by when their message was accepted', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const start = await quietMoment()
    await accept(store(), sourceId, [track('a')], [destinationId])
    const second = await quietMoment()
    await accept(store(), sourceId, [track('b')], [destinationId])
    const third = await quietMoment()
    await settle(store(), await claimOne(store(), destinationId), 'failed')
    const end = await quietMoment()
    assert.deepEqual(await deliveriesWith({ destinationId, toMs: third - 1 }), ['b pending - 0'])
    assert.deepEqual(await deliveriesWith({ destinationId, fromMs: third }), ['a failed http_500 1'])
    assert.deepEqual(await deliveriesWith({ destinationId, fromMs: second, toMs: third - 1, state: 'pending' }), ['b pending - 0'])
    assert.deepEqual(await deliveriesWith({ destinationId, fromMs: start, toMs: second - 1, state: 'pending' }), [])
    assert.deepEqual(await deliveriesWith({ destinationId, fromMs: end }), [])
    assert.deepEqual(await deliveriesWith({ destinationId, fromMs: third, toMs: end - 1, state: 'failed' }), ['a failed http_500 1'])
    await settle(store(), await claimOne(store(), destinationId), 'retry')
    assert.deepEqual(
      await deliveriesWith({ destinationId, toMs: third - 1 }),
      ['b pending - 1'],
      'a retry keeps the time when its message was accepted',
    )
  })

  test('a list of pending deliveries in a time range leaves out any number of older ones', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    for (let nth = 0; nth < 120; nth++) await accept(store(), sourceId, [track(`old-${nth}`)], [destinationId])
    const filter = { state: 'pending', fromMs: await quietMoment() } as const
    await accept(store(), sourceId, [track('new')], [destinationId])
    for (const to of [{ destinationId }, {}]) assert.deepEqual(await deliveriesWith({ ...filter, ...to }), ['new pending - 0'])
  })

  test('deliveries are listed by the user and the event of their message', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const items = [
      track('a', { userId: 'ann', event: 'Bought' }),
      track('b', { userId: 'bob', event: 'Bought' }),
      { type: 'alias', userId: 'cyd', previousId: 'ann', messageId: 'c' },
      { type: 'track', event: 'Seen', anonymousId: 'ann', messageId: 'd' },
    ]
    // In every final state, and pending: attempted once, and not at all.
    for (const fate of ['delivered', 'failed', 'expired', 'cancelled', 'retry', 'untouched'] as const) {
      const named = items.map((item) => Object.assign({}, item, { messageId: `${item['messageId']}-${fate}` }))
      await accept(store(), sourceId, named, [destinationId])
      if (fate === 'untouched') continue
      for (const claimed of (await claim(store(), destinationId)).shipments) {
        if (messageIdsOf(claimed)[0] === `a-${fate}`) await settle(store(), claimed, fate)
        else store().delivery.release([claimed.shipment])
      }
    }
    const idsWith = async (filter: DeliveryFilter, limit = 1_000): Promise<string> => {
      const rows = await allPages((page) => store().history.deliveries({ destinationId, ...filter }, page), limit)
      return rows
        .map(({ messageId }) => messageId ?? '')
        .sort((a, b) => (a < b ? -1 : 1))
        .join(' ')
    }
    const every = (names: string, fates = 'cancelled delivered expired failed retry untouched'): string =>
      names
        .split('')
        .flatMap((name) => fates.split(' ').map((fate) => `${name}-${fate}`))
        .join(' ')
    for (const limit of [1, 3, 1_000]) {
      assert.equal(await idsWith({ userId: 'ann' }, limit), every('acd'))
      assert.equal(await idsWith({ event: 'Bought' }, limit), every('ab'))
      assert.equal(await idsWith({ userId: 'ann', event: 'Bought' }, limit), every('a'))
      assert.equal(await idsWith({ userId: 'bob', state: 'pending' }, limit), every('b', 'retry untouched'))
      assert.equal(await idsWith({ userId: 'bob', state: 'delivered' }, limit), 'b-delivered')
      assert.equal(await idsWith({ event: 'Seen', state: 'failed' }, limit), 'd-failed')
      assert.equal(await idsWith({ event: 'Seen', reason: 'http_500' }, limit), every('d', 'cancelled expired failed'))
    }
    assert.equal(await idsWith({ userId: 'nobody' }), '')
    assert.equal(await idsWith({ event: 'bought' }), '', 'exact event name')
    assert.equal(await idsWith({ userId: 'ann', event: 'Seen', state: 'failed', reason: 'http_404' }), '')
    const [row] = (await store().history.deliveries({ destinationId, userId: 'bob', state: 'failed' }, FIRST)).data
    assert.deepEqual([row?.type, row?.event, row?.userId, row?.anonymousId], ['track', 'Bought', 'bob', null])
  })

  test('failures are grouped by destination, state and reason', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const { id: otherId } = await newDestination(store(), sourceId)
    const fail = async (to: string, count: number, fate: Fate, reason: string): Promise<number> => {
      const atMs = await quietMoment()
      await accept(store(), sourceId, tracks(count), [to])
      await settleAll(store(), to, fate, { reason })
      return atMs
    }
    const first = await fail(destinationId, 3, 'failed', 'http_500')
    await fail(destinationId, 2, 'expired', 'http_500')
    const third = await fail(destinationId, 1, 'failed', 'timeout')
    const fourth = await fail(destinationId, 4, 'failed', 'http_500')
    await fail(destinationId, 5, 'delivered', 'none')
    await fail(otherId, 1, 'failed', 'timeout')
    const causesOf = async (filter: CauseFilter): Promise<string[]> => {
      const { causes, counted } = await store().history.failureCauses(filter)
      assert.equal(
        counted,
        causes.reduce((sum, { count }) => sum + count, 0),
      )
      assert.ok(causes.every(({ isPartial }) => !isPartial))
      return causes
        .filter((cause) => cause.destinationId === destinationId || cause.destinationId === otherId)
        .map(({ destinationId: to, state, reason, count }) => `${to === otherId ? 'other ' : ''}${state} ${reason} ${count}`)
    }
    const own = ['failed http_500 7', 'failed timeout 1', 'expired http_500 2']
    assert.deepEqual(await causesOf({ destinationId }), own)
    assert.deepEqual(await causesOf({}), ['other failed timeout 1', ...own])
    assert.deepEqual(await causesOf({ destinationId, state: 'expired' }), own.slice(2))
    assert.deepEqual(await causesOf({ state: 'failed' }), ['other failed timeout 1', ...own.slice(0, 2)])
    assert.deepEqual(await causesOf({ destinationId, state: 'cancelled' }), [])
    assert.deepEqual(await causesOf({ destinationId, fromMs: third, toMs: fourth - 1 }), own.slice(1, 2))
    assert.deepEqual(await causesOf({ destinationId, fromMs: third }), ['failed http_500 4', 'failed timeout 1'])
    assert.deepEqual(await causesOf({ destinationId: 'dst_unknown' }), [])
    const [newest] = (await store().history.failureCauses({ destinationId })).causes
    assert.ok(newest !== undefined && newest.firstAtMs >= first && newest.firstAtMs < third && newest.lastAtMs >= fourth)
    const example = await store().history.delivery(newest.deliveryId)
    assert.deepEqual([example?.state, example?.reason, example?.atMs], ['failed', 'http_500', newest.lastAtMs])
  })

  for (const limit of [1, 2, 7]) {
    test(`with ${limit} per page, every delivery is on exactly one page, also while new ones arrive`, async () => {
      const { sourceId, destinationId } = await someDeliveries()
      await settleAll(store(), destinationId, 'retry')
      for (const size of [3, 5]) await accept(store(), sourceId, tracks(size), [destinationId])
      for (const filter of [{}, { state: 'pending' }, { state: 'failed' }, { reason: 'http_410' }, { state: 'delivered' }] as const) {
        const all = { destinationId, ...filter }
        const expected = (await store().history.deliveries(all, FIRST)).data.map(({ id }) => id)
        const listed = await allPages(
          (page) => store().history.deliveries(all, page),
          limit,
          async () => {
            if (expected.length < 40) await accept(store(), sourceId, [track(`n-${Math.random()}`)])
          },
        )
        assert.deepEqual(
          listed.map(({ id }) => id),
          expected,
          JSON.stringify(filter),
        )
        assert.equal(new Set(expected).size, expected.length)
      }
      const known = new Set((await store().history.deliveries({ destinationId }, FIRST)).data.map(({ id }) => id))
      const arrivals = { left: 5 }
      const listed = await allPages(
        (page) => store().history.deliveries({ destinationId }, page),
        limit,
        async () => {
          if (arrivals.left-- > 0) await accept(store(), sourceId, tracks(2), [destinationId])
        },
      )
      const names = listed.map(({ id }) => id)
      assert.equal(new Set(names).size, names.length, 'none twice')
      for (const id of known) assert.ok(names.includes(id), 'none is left out')
    })
  }

  test('without a filter, every delivery is on exactly one page', async () => {
    await someDeliveries()
    const all = (await store().history.deliveries({}, { limit: 100_000, cursor: null })).data.map(({ id }) => id)
    const paged = await allPages((page) => store().history.deliveries({}, page), 97)
    assert.deepEqual(
      paged.map(({ id }) => id),
      all,
    )
  })

  test('a cursor that was not returned by the list is rejected', async () => {
    const { sourceId, destinationId } = await someDeliveries()
    const { deletions, history } = store()
    const next = async (ask: Promise<{ next: string | null }>): Promise<string> => (await ask).next as string
    const messages = await next(history.messages({ sourceId }, { limit: 1, cursor: null }))
    const failed = await next(history.deliveries({ destinationId, state: 'failed' }, { limit: 1, cursor: null }))
    const pending = await next(history.deliveries({ destinationId, state: 'pending' }, { limit: 1, cursor: null }))
    const bad = [
      '',
      'x',
      '{}',
      '[]',
      'null',
      '1',
      '["m"]',
      '["m",1]',
      '["m",-1,0]',
      '["m",1,-1]',
      '["m",1.5,0]',
      '["m",1,null]',
      '["s",1]',
      '["s",1,-1]',
      '["p",1,1,1,1,-1]',
      '["f","a"]',
      '["d",-1]',
      '["u",1,1]',
      '["m",1e400,1]',
      '['.repeat(10_000),
    ]
    for (const cursor of [...bad, failed, pending]) await assert.rejects(history.messages({}, { limit: 1, cursor }), InvalidCursor, cursor)
    for (const cursor of [...bad, messages]) {
      for (const filter of [{}, { state: 'pending' }, { state: 'delivered' }, { state: 'failed' }, { destinationId }] as const) {
        await assert.rejects(history.deliveries(filter, { limit: 1, cursor }), InvalidCursor, cursor)
      }
    }
    for (const cursor of [...bad, messages]) {
      await assert.rejects(deletions.list({}, { limit: 1, cursor }), InvalidCursor, cursor)
      await assert.rejects(deletions.suppressions({}, { limit: 1, cursor }), InvalidCursor, cursor)
    }
    const far = JSON.stringify([...(JSON.parse(messages) as unknown[]).slice(0, 2), Number.MAX_SAFE_INTEGER])
    assert.ok((await history.messages({ sourceId }, { limit: 1, cursor: far })).data.length <= 1, 'a valid cursor past the end')
  })

  test('a delivery is shown with its message and every request that was made for it', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, tracks(2, 'h'), [destinationId])
    const failing = requestRecord({
      status: 503,
      reason: 'http_503',
      error: 'the receiver answered 503',
      dnsMs: 1.25,
      connectMs: 2.5,
      tlsMs: 3.75,
      responseStart: 'busy \u0000 \ud83d\ude00',
    })
    const first = await claimOne(store(), destinationId)
    await settle(store(), first, 'retry', { dueAtMs: NOW_MS + 10, request: { ...failing, indexes: [0, 1] } })
    const [delivery, other] = deliveriesOf(first.shipment) as [string, string]
    const waiting = await store().history.delivery(delivery)
    assert.deepEqual([waiting?.state, waiting?.atMs, waiting?.attempts], ['pending', NOW_MS + 10, 1])
    const second = await claimOne(store(), destinationId, { nowMs: NOW_MS + 10 })
    await settle(store(), second, (of) => (of === delivery ? 'delivered' : 'expired'), { reason: 'retry_window_over' })
    await reopen()
    const shown = await store().history.delivery(delivery)
    assert.ok(shown !== undefined)
    const { content, history, owedAtMs: _, gathered: __, deadLetter: ___, withheldFrom: ____, orderPlace, sourceId: of, ...row } = shown
    assert.equal(orderPlace, 'accepted')
    const [listed] = (await store().history.deliveries({ destinationId, state: 'delivered' }, FIRST)).data
    assert.equal(of, sourceId)
    assert.deepEqual(row, listed)
    assert.deepEqual([row.state, row.reason, row.attempts, row.messageId, row.replay], ['delivered', null, 2, 'h-0', false])
    assert.deepEqual(content?.items, tracks(2, 'h'), 'with the messages of the same requests')
    assert.deepEqual(history, [
      { ...failing, indexes: [0, 1], attempt: 1 },
      { ...requestRecord({ indexes: [0, 1] }), attempt: 2 },
    ])
    assert.deepEqual((await store().history.delivery(other))?.state, 'expired')
    for (const unknown of ['', '1-0', 'x', `${delivery}0`, `${delivery.split('-')[0]}-5`, `${row.segment}-0`]) {
      assert.equal(await store().history.delivery(unknown), undefined, unknown)
    }
  })
}
