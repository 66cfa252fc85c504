// The page SQL: a query with its result and chart, an error at its place, saved queries, completion, and cancelling.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import type { Service } from '../system/service.ts'
import { track } from '../system/service.ts'
import { addLake, loaded, startWithLake } from '../warehouse/system.ts'
import { NARROW, startBrowser, type Tab, type TestBrowser, WIDE } from './browser.ts'

let browser: TestBrowser
let service: Service
let tab: Tab
let lakeId: string

before(async () => {
  const [opened, started] = await Promise.all([startBrowser(), startWithLake()])
  browser = opened
  service = started.service
  lakeId = await addLake(service, started.lake)
  await service.send(Array.from({ length: 40 }, (_, at) => track(`m${at}`, { event: 'Order Completed', properties: { total: at + 0.5 } })))
  await loaded(service, 40)
  tab = await browser.open(service)
  tab.expected.push(/400/)
  await tab.visit('/sql')
})
after(async () => {
  await browser[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

async function write(query: string): Promise<void> {
  await tab.page.getByRole('textbox', { name: 'Query', exact: true }).click()
  await tab.page.keyboard.press('ControlOrMeta+a')
  // Typing over a selection makes the browser style the new text inline, which the policy of the page forbids.
  await tab.page.keyboard.press('Backspace')
  await tab.page.keyboard.insertText(query)
  await tab.page.keyboard.press('Escape')
}

async function run(query: string): Promise<void> {
  await write(query)
  await tab.page.getByRole('button', { name: 'Run', exact: true }).click()
}

test('a query with a time and a number shows a table and a chart', async () => {
  await run('select event, count(*) as orders, sum(total) as revenue from order_completed group by 1')
  await tab.page.getByRole('cell', { name: 'order_completed' }).waitFor({ timeout: 60_000 })
  assert.equal(await tab.page.getByRole('cell', { name: '40', exact: true }).count(), 1)
  assert.equal(await tab.page.getByRole('img', { name: /by/ }).count(), 0)
  await run("select timestamp '2026-01-01' + interval (i) hour as hour, i * 2 as orders from range(24) r(i)")
  await tab.page.getByRole('img', { name: 'orders by hour' }).waitFor({ timeout: 60_000 })
  for (const [width, theme] of [
    [WIDE, 'light'],
    [NARROW, 'dark'],
  ] as const) {
    await tab.look(width, theme)
    assert.deepEqual(await tab.overflowing(), [])
    assert.deepEqual(await tab.accessibility(), [])
  }
  await tab.look(WIDE, 'light')
})

test('the rows can be downloaded as CSV', async () => {
  await run("select 1 as one, 'a, b' as two")
  await tab.page.getByRole('cell', { name: 'a, b' }).waitFor({ timeout: 60_000 })
  const [file] = await Promise.all([tab.page.waitForEvent('download'), tab.page.getByRole('button', { name: 'Download CSV' }).click()])
  assert.equal(file.suggestedFilename(), 'result.csv')
  assert.equal(readFileSync(await file.path(), 'utf8'), 'one,two\r\n1,"a, b"\r\n')
})

test('an error is shown at its place', async () => {
  await run('select 1,\n  nothing from tracks')
  await tab.page
    .getByText(/nothing" not found/)
    .first()
    .waitFor({ timeout: 60_000 })
  assert.equal(await tab.page.locator('.cm-lintRange-error').count(), 1)
})

test('tables and columns are completed', async () => {
  await write('')
  await tab.page.keyboard.type('select * from order_c', { delay: 30 })
  await tab.page
    .getByRole('option', { name: /order_completed/ })
    .first()
    .waitFor()
  await tab.page.keyboard.press('Escape')
})

test('a query is saved and opened again', async () => {
  await write('select 42 as answer')
  await tab.page.getByRole('textbox', { name: 'Name of the query' }).fill('The answer')
  await tab.page.getByRole('button', { name: 'Save query' }).click()
  await tab.page.getByLabel('Saved queries').waitFor()
  await tab.page.getByLabel('Saved queries').selectOption('The answer')
  await tab.page.getByRole('button', { name: 'Run', exact: true }).click()
  await tab.page.getByRole('cell', { name: '42' }).waitFor({ timeout: 60_000 })
})

test('queries of a browser are shared only when somebody asks for it', async () => {
  await tab.page.evaluate(`localStorage.setItem('switchyard.sql.saved', '[{"name":"Old","query":"select 7"}]')`)
  await tab.visit('/sql')
  const queries = async (): Promise<string[]> =>
    (await service.api<{ data: { name: string }[] }>(`/destinations/${lakeId}/queries`)).data.map(({ name }) => name)
  const saved = tab.page.getByLabel('Saved queries')
  await saved.getByRole('option', { name: 'Old' }).waitFor({ state: 'attached' })
  await tab.page.getByRole('button', { name: 'Move 1 query from this browser to the lake' }).click()
  assert.deepEqual(await queries(), ['The answer'])
  await tab.page.getByText('Only this browser has “Old”.').waitFor()
  await tab.page.getByRole('button', { name: 'Move and share' }).click()
  await tab.until(`localStorage.getItem('switchyard.sql.saved') === null`)
  assert.deepEqual(await queries(), ['Old', 'The answer'])
  await saved.getByRole('option', { name: 'Old' }).waitFor({ state: 'attached' })
  await tab.page.getByRole('button', { name: 'Move 1 query from this browser to the lake' }).waitFor({ state: 'detached' })
})

test('a query of a browser can be opened and removed although the lake has one with the same name', async () => {
  await tab.page.evaluate(`localStorage.setItem('switchyard.sql.saved', '[{"name":"The answer","query":"select 43 as answer"}]')`)
  await tab.visit('/sql')
  const saved = tab.page.getByLabel('Saved queries')
  const own = saved.getByRole('option', { name: 'The answer (only in this browser)' })
  await own.waitFor({ state: 'attached' })
  await saved.selectOption({ label: 'The answer' })
  await tab.page.getByText('select 42 as answer').waitFor()
  await saved.selectOption({ label: 'The answer (only in this browser)' })
  await tab.page.getByText('select 43 as answer').waitFor()
  await tab.page.getByRole('button', { name: 'Remove' }).click()
  await own.waitFor({ state: 'detached' })
  await tab.until(`localStorage.getItem('switchyard.sql.saved') === null`)
  await saved.getByRole('option', { name: 'The answer' }).waitFor({ state: 'attached' })
})

test('a query is cancelled', async () => {
  await run('select count(*) from range(10000000) a, range(1000000) b where a.range * b.range = 7')
  await tab.page.getByRole('button', { name: 'Cancel' }).click()
  await tab.page.getByText('The query was cancelled.').waitFor()
  tab.check()
})
