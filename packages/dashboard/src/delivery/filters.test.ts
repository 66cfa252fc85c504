import assert from 'node:assert/strict'
import test from 'node:test'
import { deliveriesAddress, filtersOf, listQuery, replayOf, timesOf } from './filters.ts'

const NOW = Date.parse('2026-11-15T12:00:00.000Z')
const of = (search: string) => filtersOf(new URLSearchParams(search))

test('failures are grouped by cause by default', () => {
  const views = [
    '',
    'state=failed',
    'state=expired',
    'state=failed&view=list',
    'view=causes',
    'state=failed&reason=timeout',
    'state=delivered&view=causes',
  ]
  assert.deepEqual(
    views.map((search) => of(search).view),
    ['causes', 'causes', 'causes', 'list', 'causes', 'list', 'list'],
  )
  assert.equal(of('state=failed&user=u-1').view, 'list')
  assert.equal(of('state=failed&event=Seen&view=causes').view, 'list')
})

test('filters are read from the URL, without invalid ones', () => {
  assert.deepEqual(of('state=lost&within=1y&from=never').state, undefined)
  assert.equal(of('destinationId=d-1').destinationId, 'd-1')
  assert.equal(of('destination=d-2').destinationId, 'd-2')
  assert.equal(of('userId=u%25').userId, 'u%')
  assert.deepEqual([of('within=1h&from=2026-01-01').from, of('from=2026-01-01').from], [undefined, '2026-01-01T00:00:00.000Z'])
  const all = of('destination=d&state=failed&reason=timeout&user=u&event=e&within=6h&view=list')
  assert.deepEqual(of(deliveriesAddress(all).split('?')[1] ?? ''), all)
  assert.equal(deliveriesAddress({}), '/deliveries')
})

test('a relative period counts back from the given time', () => {
  assert.deepEqual(timesOf(of('within=1h'), NOW), { from: '2026-11-15T11:00:00.000Z', to: undefined })
  assert.equal(listQuery(of('state=pending&within=15m'), NOW).from, '2026-11-15T11:45:00.000Z')
})

test('all matches can be replayed if the API can select them', () => {
  assert.deepEqual(replayOf(of('state=failed&reason=timeout&destination=d&within=1h'), NOW).body, {
    destinationId: 'd',
    states: ['failed'],
    reason: 'timeout',
    from: '2026-11-15T11:00:00.000Z',
    to: undefined,
  })
  assert.deepEqual(replayOf(of('reason=timeout'), NOW).body?.states, ['failed', 'expired', 'cancelled'])
  assert.match(replayOf(of('state=failed&user=u&event=e'), NOW).why ?? '', /user and event/)
  assert.match(replayOf(of('state=pending'), NOW).why ?? '', /Pending deliveries/)
  assert.match(replayOf(of(''), NOW).why ?? '', /Choose a state/)
})
