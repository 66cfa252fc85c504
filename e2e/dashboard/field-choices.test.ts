// Dynamic fields in the form of a subscription: the values are loaded from the tool, chosen by keyboard or typed, before and after the destination is
// saved. On a phone, in the dark, and when the tool refuses.

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

async function klaviyo(): Promise<string> {
  const mapping = { list_id: 'typed-before', email: { '@path': '$.traits.email' } }
  const subscriptions = [{ name: 'Remove', action: 'removeProfile', subscribe: 'type = "identify"', mapping }]
  const settings = { api_key: 'key-of-klaviyo' }
  const body = {
    type: 'integration',
    integration: 'actions-klaviyo',
    name: 'Klaviyo',
    sourceIds: [scene.service.sourceId],
    settings,
    subscriptions,
  }
  return (await scene.service.api<{ id: string }>('/destinations', { method: 'POST', body })).id
}

test('values are loaded from the tool, found by their names and chosen by keyboard; on a phone, in the dark', async () => {
  const id = await klaviyo()
  await using tab = await browser.open(scene.service, { width: NARROW, theme: 'dark' })
  const { page } = tab
  await tab.visit(`/destinations/${id}?tab=subscriptions`)
  const card = page.getByRole('region', { name: 'Remove' })
  await card.getByRole('button', { name: 'Edit Remove' }).click()
  const field = card.getByRole('group', { name: /^List/ })
  const value = field.getByRole('combobox', { name: 'List', exact: true })
  assert.equal(await value.inputValue(), 'typed-before')
  await field.getByRole('button', { name: 'Load List from Klaviyo' }).press('Enter')
  await field.getByText('2 values', { exact: true }).waitFor()
  await value.fill('lea')
  const options = page.getByRole('listbox').getByRole('option')
  await options.filter({ hasText: 'Leads' }).waitFor()
  assert.equal(await options.count(), 1)
  await value.press('ArrowDown')
  await value.press('Enter')
  assert.equal(await value.inputValue(), 'list-1')
  await field.getByText('Leads', { exact: true }).waitFor()
  assert.deepEqual([await tab.overflowing(), await tab.accessibility()], [[], []])
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved as version 2.').waitFor()
  const saved = await scene.service.api<{ subscriptions: { mapping: object }[] }>(`/destinations/${id}`)
  assert.deepEqual(saved.subscriptions[0]?.mapping, { list_id: 'list-1', email: { '@path': '$.traits.email' } })
  tab.check()
})

test('what the tool refuses is said at the field, where a value can still be typed', async () => {
  const id = await klaviyo()
  gateway.answer = () => ({ status: 401, headers: JSON_TYPE, body: '{}' })
  await using tab = await browser.open(scene.service)
  const { page } = tab
  await tab.visit(`/destinations/${id}?tab=subscriptions`)
  const card = page.getByRole('region', { name: 'Remove' })
  await card.getByRole('button', { name: 'Edit Remove' }).click()
  const field = card.getByRole('group', { name: /^List/ })
  await field.getByRole('button', { name: 'Load List from Klaviyo' }).click()
  await field
    .getByRole('alert')
    .getByText(/The tool answered 401.*You can enter the value by hand\./)
    .waitFor()
  const value = field.getByRole('combobox', { name: 'List', exact: true })
  await value.fill('by-hand')
  assert.equal(await value.inputValue(), 'by-hand')
  assert.deepEqual(await tab.accessibility(), [])
  tab.check()
})

test('before the destination is saved, the tool is asked with the settings as they are typed', async () => {
  await using tab = await browser.open(scene.service)
  const { page } = tab
  await tab.visit('/catalog/actions-klaviyo')
  await page.getByRole('combobox', { name: 'Add a subscription' }).click()
  await page.getByRole('option', { name: 'Remove Profile', exact: true }).click()
  const field = page.getByRole('region', { name: 'Remove Profile' }).getByRole('group', { name: /^List/ })
  const load = field.getByRole('button', { name: 'Load List from Klaviyo' })
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

test('properties that the tool has are added to an object', async () => {
  const results = [{ name: 'plan', label: 'Plan', type: 'string', hasUniqueValue: false, modificationMetadata: { readOnlyValue: false } }]
  gateway.answer = () => ({ headers: JSON_TYPE, body: JSON.stringify({ results }) })
  const object = { object_type: 'contact', id_field_name: 'email', id_field_value: { '@path': '$.userId' } }
  const mapping = {
    object_details: object,
    properties: { age: 5 },
    association_sync_mode: 'upsert',
    enable_batching: false,
    batch_size: 100,
  }
  const subscriptions = [{ name: 'Object', action: 'upsertObject', subscribe: 'type = "track"', mapping }]
  const settings = { oauth: { accessToken: 'token-of-hubspot' } }
  const body = { type: 'integration', integration: 'actions-hubspot-cloud', name: 'HubSpot', settings, subscriptions }
  const { id } = await scene.service.api<{ id: string }>('/destinations', { method: 'POST', body })
  await using tab = await browser.open(scene.service)
  const { page } = tab
  await tab.visit(`/destinations/${id}?tab=subscriptions`)
  const card = page.getByRole('region', { name: 'Object', exact: true })
  await card.getByRole('button', { name: 'Edit Object' }).click()
  const field = card.getByRole('group', { name: /^Properties/ })
  await field.getByRole('button', { name: 'Load Properties from HubSpot' }).click()
  await field.getByRole('combobox', { name: 'Add a property to Properties' }).click()
  await page.getByRole('option', { name: 'Plan - string' }).click()
  const text = await field.getByRole('textbox', { name: 'Properties', exact: true }).inputValue()
  assert.deepEqual(JSON.parse(text), { age: 5, plan: '' })
  tab.check()
})
