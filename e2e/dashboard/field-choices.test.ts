// Dynamic fields in the form of a subscription: the values are loaded from the tool, chosen by keyboard or typed, before and after the destination is
// saved. On a phone and in the dark.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { type Gateway, startGateway } from '../integrations/gateway/recording-gateway.ts'
import { NARROW, startBrowser, type TestBrowser } from './browser.ts'
import { end, type Scene, startScene } from './scene.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const LISTS = { data: ['Customers', 'Leads'].map((name, at) => ({ id: `list-${at}`, attributes: { name } })) }

let browser: TestBrowser
let gateway: Gateway
let scene: Scene

before(async () => {
  gateway = await startGateway()
  ;[browser, scene] = await Promise.all([startBrowser(), startScene({ empty: true, env: gateway.env })])
})
beforeEach(() => {
  gateway.answer = ({ path }) => (path.startsWith('/api/lists') ? { headers: JSON_TYPE, body: JSON.stringify(LISTS) } : undefined)
})
after(() => end(browser, scene, gateway))

async function klaviyo(name: string): Promise<string> {
  const mapping = { list_id: 'typed-before', email: { '@path': '$.traits.email' } }
  const subscriptions = [{ name: 'Remove', action: 'removeProfile', subscribe: 'type = "identify"', mapping }]
  const settings = { api_key: 'key-of-klaviyo' }
  const body = {
    type: 'integration',
    integration: 'actions-klaviyo',
    name,
    sourceIds: [scene.service.sourceId],
    settings,
    subscriptions,
  }
  return (await scene.service.api<{ id: string }>('/destinations', { method: 'POST', body })).id
}

test('values are loaded from the tool, found by their names and chosen by keyboard; on a phone, in the dark', async () => {
  const id = await klaviyo('Klaviyo')
  await using tab = await browser.open(scene.service, { width: NARROW, theme: 'dark' })
  const { page } = tab
  await tab.visit(`/destinations/${id}?tab=subscriptions`)
  const card = page.getByRole('region', { name: 'Remove' })
  await card.getByRole('button', { name: 'Edit Remove' }).click()
  const field = card.getByRole('group', { name: /^List/ })
  const value = field.getByRole('combobox', { name: 'List', exact: true })
  assert.equal(await value.inputValue(), 'typed-before')
  await field.getByRole('button', { name: 'Load from Klaviyo: List' }).press('Enter')
  await field.getByText('2 values', { exact: true }).waitFor()
  await value.fill('lea')
  const options = page.getByRole('listbox').getByRole('option')
  await options.filter({ hasText: 'Leads' }).waitFor()
  assert.equal(await options.count(), 1)
  await value.press('ArrowDown')
  await value.press('Enter')
  assert.equal(await value.inputValue(), 'list-1')
  await field.getByText('Leads', { exact: true }).waitFor()
  assert.deepEqual(await tab.overflowing(), [])
  tab.check()
})

test('before the destination is saved, the tool is asked with the settings as they are typed', async () => {
  await using tab = await browser.open(scene.service)
  const { page } = tab
  await tab.visit('/catalog/actions-klaviyo')
  await page.getByRole('combobox', { name: 'Add a subscription' }).click()
  await page.getByRole('option', { name: 'Remove Profile', exact: true }).click()
  const field = page.getByRole('region', { name: 'Remove Profile' }).getByRole('group', { name: /^List/ })
  const load = field.getByRole('button', { name: 'Load from Klaviyo: List' })
  await load.click()
  await field
    .getByRole('alert')
    .getByText(/^Complete the settings first: Enter API Key/)
    .waitFor()
  const first = gateway.arrivals.length
  await page.getByLabel('API Key', { exact: false }).first().fill('key-that-is-typed')
  await load.click()
  await field.getByText('2 values', { exact: true }).waitFor()
  const [request] = gateway.requests().slice(first)
  assert.deepEqual([request?.path, request?.headers['authorization']], ['/api/lists/', 'Klaviyo-API-Key key-that-is-typed'])
  await field.getByRole('combobox', { name: 'List', exact: true }).click()
  await page.getByRole('option', { name: /Customers/ }).click()
  assert.equal(await field.getByRole('combobox', { name: 'List', exact: true }).inputValue(), 'list-0')
  tab.check()
})

test('a request that the tool refuses is shown at the field, and the value stays as it was typed', async () => {
  const id = await klaviyo('Klaviyo that refuses')
  const refusal = { errors: [{ status: 401, code: 'not_authenticated', detail: 'The API key is not known' }] }
  gateway.answer = () => ({ status: 401, headers: JSON_TYPE, body: JSON.stringify(refusal) })
  await using tab = await browser.open(scene.service)
  const { page } = tab
  await tab.visit(`/destinations/${id}?tab=subscriptions`)
  const card = page.getByRole('region', { name: 'Remove' })
  await card.getByRole('button', { name: 'Edit Remove' }).click()
  const field = card.getByRole('group', { name: /^List/ })
  await field.getByRole('button', { name: 'Load from Klaviyo: List' }).click()
  const alert = field.getByRole('alert')
  await alert.getByText('The tool answered 401: Unauthorized').waitFor()
  assert.equal(await field.getByRole('combobox', { name: 'List', exact: true }).inputValue(), 'typed-before')
  // The next attempt replaces the error.
  gateway.answer = () => ({ headers: JSON_TYPE, body: JSON.stringify(LISTS) })
  await field.getByRole('button', { name: 'Load from Klaviyo: List' }).click()
  await field.getByText('2 values', { exact: true }).waitFor()
  assert.equal(await alert.count(), 0)
  tab.check()
})
