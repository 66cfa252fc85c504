// What is noticed about tables of a warehouse is an incident, with the cause in words.

import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { addLake, attemptsOf, idsIn, loaded, startWithLake } from './system.ts'

interface Incident {
  rule: string
  state: string
  severity: string
  message: string
  details: Record<string, unknown>
}

test('a table that cannot be loaded is an incident that names it, until it is loaded', async () => {
  await using system = await startWithLake()
  const { service, lake } = system
  const id = await addLake(service, lake)
  await service.send([track('m1', { event: 'Order Completed' })])
  await loaded(service, 1)
  mkdirSync(lake.source, { recursive: true })
  // In the place of the folder of a table.
  writeFileSync(join(lake.source, 'cart_viewed'), '')
  await service.send([track('m2', { event: 'Cart Viewed' }), track('m3', { event: 'Order Completed' })])
  const incidents = async (state: string): Promise<Incident | undefined> =>
    (await service.api<{ data: Incident[] }>(`/incidents?rule=warehouse_tables&destinationId=${id}&state=${state}`)).data[0]
  const open = await eventually(
    () => incidents('open'),
    (found) => found !== undefined,
    { what: 'the incident', deadlineMs: 300_000 },
  )
  assert.equal(open?.severity, 'critical')
  assert.match(
    open?.message ?? '',
    /^1 table of "Lake" cannot be loaded \(default\.cart_viewed\): The database, bucket or folder of the warehouse does not exist\. The other/,
  )
  const health = async (): Promise<{ failingTables: { table: string; error: string; since: string }[] }> =>
    await service.api(`/destinations/${id}/health`)
  const [failing, ...others] = (await health()).failingTables
  assert.deepEqual(
    [failing?.table, failing?.error, others],
    ['default.cart_viewed', 'The database, bucket or folder of the warehouse does not exist.', []],
  )
  const { data } = await service.api<{ data: { destinationId: string; failingTables: object[] }[] }>('/destinations/health')
  assert.deepEqual(data.find(({ destinationId }) => destinationId === id)?.failingTables, [failing])
  // The error of the engine may contain values of messages, so only people who may see the messages can see it.
  const error = (await attemptsOf(service, `&destinationId=${id}`)).find((attempt) => attempt.error !== null)?.error
  assert.match(error ?? '', /^Table cart_viewed: .*not a folder/)
  assert.doesNotMatch(JSON.stringify(open), /not a folder/)
  assert.deepEqual(await idsIn(lake.source, 'order_completed'), ['m1', 'm3'])
  rmSync(join(lake.source, 'cart_viewed'))
  await loaded(service, 3)
  assert.deepEqual(await idsIn(lake.source, 'cart_viewed'), ['m2'])
  assert.deepEqual((await health()).failingTables, [])
  await eventually(
    () => incidents('closed'),
    (found) => found !== undefined,
    { what: 'the end of the incident', deadlineMs: 300_000 },
  )
})
