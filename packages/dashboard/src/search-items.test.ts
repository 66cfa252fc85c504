import assert from 'node:assert/strict'
import { test } from 'node:test'
import { foundItems, type SearchData } from './search-items.ts'

const DATA: SearchData = {
  pages: [
    { path: '/', label: 'Overview' },
    { path: '/deliveries', label: 'Deliveries' },
    { path: '/settings/tokens', label: 'Settings: Tokens', about: 'Access to the control API.' },
  ],
  sources: [{ id: 'src_1', name: 'Shop' }],
  destinations: [
    { id: 'dst_1', name: 'CRM', paused: false, enabled: true },
    { id: 'dst_2', name: 'Lake', paused: true, enabled: false },
    { id: 'dst_3', name: 'Shared', paused: false, enabled: true, shared: true },
  ],
  events: [{ id: 'evt_1', event: 'Order Completed', type: 'track', sourceName: 'Shop' }],
  plans: [{ id: 'pln_1', name: 'Orders' }],
  incidents: [{ id: 'inc_1', message: 'CRM: connection refused', since: '3 min ago' }],
  docs: [['/docs/guide/order', 'Order', 'Delivery']],
  mayEdit: true,
}
const labels = (text: string, data: SearchData = DATA): string[] => foundItems(data, text).map(({ label }) => label)

test('without a text, what is wrong now comes before the pages', () => {
  assert.deepEqual(labels('  '), ['CRM: connection refused', 'Overview', 'Deliveries', 'Settings: Tokens'])
})

test('"order" finds the event, the plan and the documentation', () => {
  assert.deepEqual(labels('order'), ['Order Completed', 'Orders', 'Order', 'Messages of user order'])
})

test('actions are found by what they do and the name of the destination, in any order', () => {
  const [first] = foundItems(DATA, 'pause crm')
  assert.deepEqual([first?.label, first?.to], ['Pause CRM', '/destinations/dst_1?ask=pause'])
  const [replay] = foundItems(DATA, 'crm replay failed')
  assert.deepEqual([replay?.label, replay?.replayOf, replay?.to], ['Replay failed of CRM', 'dst_1', undefined])
})

test('a link to an action asks at most; what would happen at once is left to the button of the page', () => {
  const [resume] = foundItems(DATA, 'resume lake')
  assert.deepEqual([resume?.label, resume?.to], ['Resume Lake', '/destinations/dst_2'])
  const [enable] = foundItems(DATA, 'enable lake')
  assert.equal(enable?.to, '/destinations/dst_2')
})

test('viewers are offered no actions, and nobody those of a destination that is shared with sources out of scope', () => {
  const none = foundItems({ ...DATA, mayEdit: false }, 'pause').filter(({ kind }) => kind === 'action')
  assert.deepEqual(none, [])
  assert.deepEqual(
    foundItems(DATA, 'pause shared').filter(({ kind }) => kind === 'action'),
    [],
  )
})

test('ids of messages and users are looked up last, also with special characters', () => {
  const items = foundItems(DATA, 'a/b?c#12345')
  assert.deepEqual(
    items.map(({ to }) => to),
    ['/messages/a%2Fb%3Fc%2312345', '/messages?userId=a%2Fb%3Fc%2312345'],
  )
  assert.deepEqual(labels('short'), ['Messages of user short'])
  assert.deepEqual(labels('two words that match nothing'), [])
})

test('settings are found by what they are about, and never more than twenty items are listed', () => {
  assert.equal(labels('control api')[0], 'Settings: Tokens')
  const many = { ...DATA, sources: Array.from({ length: 500 }, (_, at) => ({ id: `src_${at}`, name: `Shop ${at}` })) }
  assert.equal(foundItems(many, 'shop').length, 19)
})
