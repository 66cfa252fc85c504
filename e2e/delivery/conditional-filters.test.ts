// Conditional filters of a destination: what they exclude is not sent and says why, what they remove reaches neither the receiver nor a preview.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startReceiver } from '../system/receiver.ts'
import { startService, track } from '../system/service.ts'

interface Message {
  story: { what: string; sentence: string; destinationId: string | null }[]
  skips: { destinationId: string; reason: string; rule: string | null }[]
}

const FILTERS = [
  { name: 'internal', when: 'contains(properties.email, "@example.com")', action: 'drop' },
  { when: 'event = "Heartbeat"', action: 'sample', share: 0 },
  {
    when: 'type = "track"',
    action: 'drop_properties',
    fields: { properties: ['email'], 'context.traits': ['email'], '': ['anonymousId'] },
  },
  { when: 'event = "Strict"', action: 'allow_properties', fields: { properties: ['total'] } },
]

test('messages are dropped, sampled and reduced for one destination, and sent in full to another', async () => {
  await using receiver = await startReceiver()
  await using other = await startReceiver()
  await using service = await startService()
  const id = await service.destination({ urls: [receiver.url], name: 'Filtered', conditionalFilters: FILTERS })
  await service.destination({ urls: [other.url], name: 'Full' })
  const about = { anonymousId: 'a', context: { traits: { email: 'e', plan: 'p' } } }
  await service.send([
    track('internal', { ...about, properties: { email: 'me@example.com' } }),
    track('heartbeat', { ...about, event: 'Heartbeat' }),
    track('kept', { ...about, event: 'Paid', properties: { email: 'you@elsewhere', total: 5 } }),
    track('strict', { ...about, event: 'Strict', properties: { total: 5, more: 1 } }),
    track('other', { ...about, event: 'Paid', properties: { total: 7 } }),
  ])
  await other.until(() => other.arrivals.length === 5)
  await receiver.until(() => receiver.arrivals.length === 3)
  await service.settled()
  const bodies = new Map(
    receiver.arrivals.map(({ bytes }) => {
      const body = JSON.parse(bytes.toString()) as { messageId: string }
      return [body.messageId, body]
    }),
  )
  assert.deepEqual([...bodies.keys()].sort(), ['kept', 'other', 'strict'])
  for (const [messageId, properties] of [
    ['kept', { total: 5 }],
    ['strict', { total: 5 }],
    ['other', { total: 7 }],
  ] as const) {
    const {
      anonymousId,
      context,
      properties: sent,
    } = bodies.get(messageId) as unknown as { anonymousId?: string; context: { traits: object }; properties: object }
    assert.deepEqual([anonymousId, context.traits, sent], [undefined, { plan: 'p' }, properties], messageId)
  }
  assert.ok(other.arrivals.every(({ bytes }) => JSON.parse(bytes.toString()).context.traits.email === 'e'))

  for (const [messageId, rule, sentence] of [
    ['internal', 'conditional_filter', /Not sent to "Filtered"\. A conditional filter of the destination drops the message\./],
    ['heartbeat', 'not_sampled', /sends only a share of such messages/],
  ] as const) {
    const { skips, story } = await service.api<Message>(`/messages/${messageId}`)
    assert.deepEqual(
      skips.map(({ destinationId, reason, rule: by }) => [destinationId, reason, by]),
      [[id, 'filtered', rule]],
    )
    assert.match(story.map((entry) => entry.sentence).join('\n'), sentence)
  }

  const { data } = await service.api<{ data: { messageId: string; request: { body: string } | null; skipped?: { rule: string } }[] }>(
    `/destinations/${id}/preview`,
    { method: 'POST', body: { limit: 10 } },
  )
  const previewed = new Map(data.map((entry) => [entry.messageId, entry]))
  assert.deepEqual(JSON.parse(previewed.get('kept')?.request?.body ?? '').properties, { total: 5 })
  assert.equal(previewed.get('internal')?.skipped?.rule, 'conditional_filter')

  // A deletion request passes every filter, with its userId.
  await service.api(`/destinations/${id}`, {
    method: 'PATCH',
    body: { conditionalFilters: [{ action: 'drop' }, { action: 'drop_properties', fields: { '': ['userId'] } }] },
  })
  await service.api('/deletions', { method: 'POST', body: { userIds: ['u-deleted'] } })
  await receiver.until(() => receiver.arrivals.length === 4)
  assert.partialDeepStrictEqual(JSON.parse(receiver.arrivals[3]?.bytes.toString() ?? ''), { type: 'delete', userId: 'u-deleted' })
})

test('a filter that cannot work is rejected with its field', async () => {
  await using service = await startService()
  const id = await service.destination({ urls: ['http://127.0.0.1:9/'] })
  const rows: [filter: object, field: string][] = [
    [{ action: 'explode' }, 'conditionalFilters[0].action'],
    [{ action: 'drop', when: 'type =' }, 'conditionalFilters[0].when'],
    [{ action: 'sample' }, 'conditionalFilters[0].share'],
    [{ action: 'sample', share: 1.5 }, 'conditionalFilters[0].share'],
    [{ action: 'drop', share: 0.5 }, 'conditionalFilters[0].share'],
    [{ action: 'drop', path: 'userId' }, 'conditionalFilters[0].path'],
    [{ action: 'drop_properties' }, 'conditionalFilters[0].fields'],
    [{ action: 'drop_properties', fields: {} }, 'conditionalFilters[0].fields'],
    [{ action: 'drop_properties', fields: { '': ['messageId'] } }, 'conditionalFilters[0].fields'],
    [{ action: 'drop_properties', fields: { 'a..b': ['c'] } }, 'conditionalFilters[0].fields.a..b'],
    [{ action: 'allow_properties', fields: { '': ['userId'] } }, 'conditionalFilters[0].fields'],
  ]
  for (const [filter, field] of rows) {
    const change = service.api(`/destinations/${id}`, { method: 'PATCH', body: { conditionalFilters: [filter] } })
    await assert.rejects(change, (error: Error) => error.message.includes(JSON.stringify(field)), JSON.stringify(filter))
  }
})
