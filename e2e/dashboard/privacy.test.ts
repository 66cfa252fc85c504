// The privacy rules on the page of a source, by keyboard and on a phone: edited, previewed, refused and saved.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { NARROW, startBrowser, type TestBrowser, WIDE } from './browser.ts'
import { end, type Scene, startScene } from './scene.ts'

let browser: TestBrowser
let scene: Scene

before(async () => {
  ;[browser, scene] = await Promise.all([startBrowser(), startScene({ empty: true })])
})
after(() => end(browser, scene))

interface Source {
  id: string
  privacy: { path: string; action: string }[]
}

async function newSource(privacy: Source['privacy'] = []): Promise<Source & { writeKeys: [string] }> {
  const name = `Shop ${Math.random()}`
  const source = await scene.service.api<Source & { writeKeys: [string] }>('/sources', { method: 'POST', body: { name, privacy } })
  const messages = [1, 2, 3].map((nth) => ({
    type: 'identify',
    userId: `u-${nth}`,
    messageId: `${source.id}-${nth}`,
    traits: { plan: 'pro', ...(nth < 3 ? { email: `alice-${nth}@example.com` } : {}) },
  }))
  await scene.service.send(messages, { headers: { authorization: `Basic ${btoa(`${source.writeKeys[0]}:`)}` } })
  return source
}

test('a rule is added by keyboard, previewed on the last messages, and saved', async () => {
  const source = await newSource()
  await using tab = await browser.open(scene.service)
  const { page } = tab
  await tab.visit(`/sources/${source.id}`)
  const section = page.getByRole('region', { name: 'Privacy' })
  await section.getByText('No privacy rules.').waitFor()
  await section.getByRole('button', { name: 'Add a rule' }).focus()
  await page.keyboard.press('Enter')
  await section.getByLabel('Path 1').focus()
  await page.keyboard.type('traits.email')
  await section.getByText('2 of the last 3 messages change').waitFor()
  await section.getByText('Changes 2 of the 3 messages below.').waitFor()
  // The newest message has no address, the one before has one.
  await section.getByText('The rules change nothing in this message.').waitFor()
  await section.getByRole('button', { name: 'Older' }).focus()
  await page.keyboard.press('Enter')
  await section.getByRole('region', { name: 'Message before the rules' }).getByText('alice-2@example.com').waitFor()
  await section
    .getByRole('region', { name: 'Message after the rules' })
    .getByText(/"[0-9a-f]{64}"/)
    .waitFor()
  assert.deepEqual((await scene.service.api<Source>(`/sources/${source.id}`)).privacy, [])
  await section.getByLabel('Path 1').focus()
  await page.keyboard.press('Enter')
  await page.getByText('Privacy rules saved.').waitFor()
  assert.deepEqual((await scene.service.api<Source>(`/sources/${source.id}`)).privacy, [{ path: 'traits.email', action: 'hash' }])
  assert.deepEqual(await tab.accessibility(), [])
  tab.check()
})

test('a rule that is not allowed shows its error at the rule, and a typed message can be tried on a phone', async () => {
  const source = await newSource([{ path: 'traits.email', action: 'mask' }])
  await using tab = await browser.open(scene.service, { width: NARROW })
  const { page } = tab
  await tab.visit(`/sources/${source.id}`)
  const section = page.getByRole('region', { name: 'Privacy' })
  await section.getByText('Your message').click()
  await section.getByRole('region', { name: 'Message after the rules' }).getByText('a***************m').waitFor()
  await section.getByLabel('Message', { exact: true }).fill('{')
  await section.getByText('Enter a message as JSON').waitFor()
  tab.expected.push(/400/)
  await section.getByLabel('Path 1').fill('messageId')
  await section.getByText('Last messages').click()
  await section.getByText('Is messageId, which the service needs unchanged.').waitFor()
  assert.equal(await section.getByLabel('Path 1').getAttribute('aria-invalid'), 'true')
  await section.getByRole('button', { name: 'Discard changes' }).click()
  assert.equal(await section.getByLabel('Path 1').inputValue(), 'traits.email')
  await section.getByRole('button', { name: 'Remove rule 1' }).click()
  await section.getByRole('button', { name: 'Save rules' }).click()
  await page.getByText('Privacy rules removed.').waitFor()
  assert.deepEqual((await scene.service.api<Source>(`/sources/${source.id}`)).privacy, [])
  assert.deepEqual(await tab.overflowing(), [])
  tab.check()
})

test('with rules and a preview, nothing is too wide and axe-core finds nothing serious', async () => {
  const source = await newSource([
    { path: 'traits.email', action: 'mask' },
    { path: `properties.${'a'.repeat(200)}.*`, action: 'drop' },
    { path: 'userId', action: 'hash' },
  ])
  await using tab = await browser.open(scene.service)
  await tab.visit(`/sources/${source.id}`)
  await tab.page.getByRole('region', { name: 'Message after the rules' }).waitFor()
  for (const [width, theme] of [
    [WIDE, 'light'],
    [NARROW, 'dark'],
  ] as const) {
    await tab.look(width, theme)
    assert.deepEqual(await tab.overflowing(), [])
    assert.deepEqual(await tab.accessibility(), [])
  }
  tab.check()
})

test('a viewer sees the rules but cannot change them', async () => {
  const source = await newSource([{ path: 'traits.email', action: 'mask' }])
  const { token } = await scene.service.api<{ token: string }>('/tokens', { method: 'POST', body: { name: 'viewer', role: 'viewer' } })
  await using tab = await browser.open(scene.service, { token })
  await tab.visit(`/sources/${source.id}`)
  const section = tab.page.getByRole('region', { name: 'Privacy' })
  await section.getByText('traits.email', { exact: true }).waitFor()
  assert.equal(await section.getByRole('button').count(), 0)
  tab.check()
})
