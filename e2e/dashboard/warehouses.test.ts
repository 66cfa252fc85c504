// Warehouses in the dashboard: a lake in a folder and tables in PostgreSQL are tested before they are created, and errors are shown at their fields.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { PostgresServer } from '../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { startReceiver } from '../system/receiver.ts'
import type { Service } from '../system/service.ts'
import { track } from '../system/service.ts'
import { startWithLake } from '../warehouse/system.ts'
import { NARROW, startBrowser, type Tab, type TestBrowser, WIDE } from './browser.ts'

let browser: TestBrowser
let service: Service
let database: PostgresServer
let tab: Tab

before(async () => {
  ;[browser, { service }, database] = await Promise.all([startBrowser(), startWithLake(), PostgresServer.start()])
  const admin = await database.client()
  await admin.query('CREATE DATABASE wizard')
  await admin.query("CREATE ROLE reader LOGIN PASSWORD 'pass-of-reader'")
  await admin.end()
  await service.send([
    ...Array.from({ length: 5 }, (_, at) => track(`m${at}`, { event: 'Order Completed', properties: { total: at + 0.5, paid: true } })),
    { type: 'identify', userId: 'ada', messageId: 'i1', traits: { plan: 'pro' } },
  ])
  tab = await browser.open(service)
})
after(async () => {
  await browser?.[Symbol.asyncDispose]()
  await service?.[Symbol.asyncDispose]()
  await database?.dispose()
})

const field = (name: string) => tab.page.getByRole('textbox', { name, exact: true })
const click = (name: string) => tab.page.getByRole('button', { name, exact: true }).click()

async function isClean(): Promise<void> {
  for (const [width, theme] of [
    [WIDE, 'light'],
    [NARROW, 'dark'],
  ] as const) {
    await tab.look(width, theme)
    assert.deepEqual(await tab.overflowing(), [])
    assert.deepEqual(await tab.accessibility(), [])
  }
  await tab.look(WIDE, 'light')
}

test('a lake in a folder: tested before it is created, with the tables of the newest messages', async () => {
  await tab.visit('/destinations/new?type=warehouse')
  await click('Test connection')
  await tab.page.getByText('Test passed: tables can be written').waitFor({ timeout: 60_000 })
  await tab.page.getByText('From the newest 6 messages.').waitFor()
  await tab.page.getByRole('button', { name: /default\.order_completed/ }).click()
  await tab.page.getByRole('row', { name: 'total double 0.5' }).waitFor()
  await isClean()
  assert.equal((await service.api<{ data: unknown[] }>('/destinations')).data.length, 0, 'nothing is created yet')

  await field('Folder').fill('/somewhere/else')
  assert.equal(await tab.page.getByText('Test passed').count(), 0, 'the result of other settings is not shown')
  tab.expected.push(/400/)
  await click('Test connection')
  await tab.page.getByText(/Must be below file:\/\/.*, the folder of lakes/).waitFor()
  assert.equal(await field('Folder').getAttribute('aria-invalid'), 'true')
  await tab.visit('/destinations/new?type=warehouse')
  await click('Create destination')
  await tab.page.getByRole('heading', { name: 'Lake', level: 1 }).waitFor()
  const [created] = (await service.api<{ data: { warehouse: { url: string } }[] }>('/destinations')).data
  assert.match(created?.warehouse.url ?? '', /^file:.*\/lake\/main$/)
})

test('PostgreSQL: a missing permission is named, and the password is kept when other settings change', async () => {
  const { hostname, port } = new URL(database.url('wizard'))
  await tab.visit('/destinations/new?type=warehouse')
  await tab.page.getByRole('radio', { name: 'PostgreSQL' }).check()
  await click('Test connection')
  await tab.page.getByText('Enter the host name of the server.').waitFor()
  await field('Name').fill('Tables')
  await field('Host').fill(`postgres://reader:pass-of-reader@${hostname}:${port}/wizard`)
  assert.deepEqual(
    [await field('Host').inputValue(), await field('Database').inputValue()],
    [hostname, 'wizard'],
    'a pasted URL fills the fields',
  )
  await click('Test connection')
  await tab.page.getByText('Test failed').waitFor({ timeout: 60_000 })
  await tab.page
    .getByText(/permission/)
    .first()
    .waitFor()
  await tab.page.getByText('✗ Create schema: failed').waitFor()
  await isClean()

  await field('Host').fill(database.url('wizard'))
  await click('Test connection')
  await tab.page.getByText(/Test passed: tables can be written \(PostgreSQL \d+/).waitFor({ timeout: 60_000 })
  await click('Create destination')
  await tab.page.getByRole('heading', { name: 'Tables', level: 1 }).waitFor()
  await tab.page.getByRole('tab', { name: 'Settings' }).click()
  await tab.page.getByRole('button', { name: /^Loads/ }).click()
  await field('Every').fill('5 min')
  await click('Save changes')
  await tab.page.getByText('Saved.').waitFor()
  const { data } = await service.api<{ data: { id: string; name: string; load: { everyMs: number } }[] }>('/destinations')
  const tables = data.find(({ name }) => name === 'Tables')
  assert.equal(tables?.load.everyMs, 300_000)
  const { success } = await service.api<{ success: boolean }>(`/destinations/${tables?.id}/test`, { method: 'POST', body: {} })
  assert.ok(success, 'the password is still known')
  tab.check()
})

test('the page of a warehouse shows what waits, its loads, its tables, and what did not fit', async () => {
  const { data } = await service.api<{ data: { id: string; name: string }[] }>('/destinations')
  const id = data.find(({ name }) => name === 'Lake')?.id ?? ''
  await service.api(`/destinations/${id}`, { method: 'PATCH', body: { load: { everyMs: 3_600_000 } } })
  await service.send([
    track('n1', { event: 'Order Completed', properties: { total: 1 } }),
    track('n2', { event: 'Order Completed', properties: { total: { oops: true } } }),
    track('n3', { event: 'Order Completed', properties: { total: 'many' } }),
  ])
  await tab.visit(`/destinations/${id}`)
  await tab.page.getByText('3 messages', { exact: true }).waitFor()
  await click('Load now')
  await tab.page.getByText('0 messages', { exact: true }).waitFor({ timeout: 60_000 })
  await tab.page
    .getByText(/^\d+ rows in \d+ tables, .* in /)
    .first()
    .waitFor({ timeout: 60_000 })
  for (const name of ['Latency (p95)', 'Circuit breaker', 'Success rate'])
    assert.equal(await tab.page.getByRole('heading', { name }).count(), 0, name)
  await tab.page.getByText(/\d values?$/).waitFor()
  await isClean()
  await click('Run now')
  await tab.page.getByText(/^Last run .*: nothing to do\.$/).waitFor({ timeout: 60_000 })

  await tab.page.getByRole('tab', { name: 'Tables' }).click()
  await tab.page.getByRole('button', { name: /order_completed .*did not fit/ }).click()
  await tab.page.getByRole('row', { name: /total double properties\.total .* 1 × string/ }).waitFor()
  await isClean()

  const { data: deliveries } = await service.api<{ data: { id: string }[] }>(`/deliveries?destinationId=${id}&limit=1`)
  await tab.visit(`/deliveries/${deliveries[0]?.id}`)
  await tab.page.getByText(/^\d+ rows in \d+ tables, .* in /).waitFor()
  await tab.page.getByText(/Load load_.*: .*order_completed \(3\)/).waitFor()
  tab.check()
})

test('messages of the archive are counted, and replayed to a destination that was added later', async () => {
  await using receiver = await startReceiver()
  await service.api('/destinations', { method: 'POST', body: { name: 'Added later', urls: [receiver.url], sourceIds: [service.sourceId] } })
  await tab.visit('/replays')
  await click('Replay from a lake')
  await tab.page.getByLabel('To the destination').selectOption('Added later')
  await tab.page.getByLabel('Received before').fill('2100-01-01T00:00:00')
  await field('Event').fill('Order Completed')
  await click('Count messages')
  await tab.page.getByText(/^Up to \d+ messages? will be sent\.$/).waitFor({ timeout: 60_000 })
  await isClean()
  await tab.page.getByRole('button', { name: /^Replay up to \d+$/ }).click()
  await tab.page.getByRole('heading', { level: 1, name: /Replay/ }).waitFor()
  await receiver.until(() => receiver.byMessageId.has('n3'))
  assert.ok(!receiver.byMessageId.has('i1'), 'only this event')
  tab.check()
})

test('the page of a warehouse that cannot be reached says when messages expire', async () => {
  await using gone = await startReceiver()
  const url = `postgres://nobody:nothing@${new URL(gone.url).host}/none`
  const body = { name: 'Gone', type: 'warehouse', warehouse: { engine: 'postgres', url }, sourceIds: [service.sourceId] }
  const { id } = await service.api<{ id: string }>('/destinations', { method: 'POST', body })
  await gone[Symbol.asyncDispose]()
  await service.send([track('late')])
  await service.api(`/destinations/${id}/load`, { method: 'POST', body: {} })
  await tab.visit(`/destinations/${id}`)
  await tab.page
    .getByText(/^the first one expires in .* \(retry window .*\)\. Expired deliveries can be replayed\.$/)
    .waitFor({ timeout: 60_000 })
  await isClean()
  await service.api(`/destinations/${id}`, { method: 'DELETE' })
  tab.check()
})
