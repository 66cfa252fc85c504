// What a person sees at a glance: destinations with problems that have no incident, when pending deliveries expire, why an attempt failed in words, and
// one time range for all charts. In both widths and themes.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { LOOKS, startBrowser, type Tab, type TestBrowser, WIDE } from './browser.ts'
import { end, type Scene, startScene } from './scene.ts'

let browser: TestBrowser
let scene: Scene
let flakyId: string

/** Two of 22 attempts: too few for an incident, but the destination is degraded. The next attempts are at least half an hour away. */
const RETRY = { initialMs: 3_600_000, maxMs: 3_600_000, factor: 1 }

before(async () => {
  ;[browser, scene] = await Promise.all([startBrowser(), startScene({ empty: true })])
  const { service, receivers } = scene
  receivers.crm.answer = ({ number }) => (number === 3 || number === 4 ? { status: 503, body: 'upstream is restarting' } : undefined)
  flakyId = await service.destination({ name: 'CRM', urls: [receivers.crm.url], retry: RETRY, maxInFlight: 1 })
  for (let at = 0; at < 20; at++) await service.send([track(`m-${at}`, { event: 'Order Completed', userId: 'ada' })])
  await eventually(
    () => service.deliveries(`destinationId=${flakyId}&state=delivered`),
    (rows) => rows.length === 18,
    { what: '18 of 20 messages are delivered' },
  )
})
after(() => end(browser, scene))

/** Looks at the current page in every width and theme. */
async function lookAt(tab: Tab, name: string): Promise<void> {
  const folder = process.env['SCREENSHOTS']
  for (const [width, theme] of LOOKS) {
    await tab.look(width, theme)
    assert.deepEqual(await tab.overflowing(), [], `${name} ${width} ${theme}`)
    if (folder !== undefined) await tab.page.screenshot({ path: `${folder}/${name}-${width}-${theme}.png`, fullPage: true })
    // While a new minute's numbers are loaded, the old ones are faded out.
    await eventually(
      () => tab.accessibility(),
      ({ length }) => length === 0,
      { what: `no findings of axe-core: ${name} ${width} ${theme}` },
    )
  }
  await tab.look(WIDE, 'light')
}

const mainText = (tab: Tab): Promise<string> => tab.page.locator('main').innerText()
const attention = (tab: Tab) => tab.page.getByRole('region', { name: 'Needs attention' })

test('the overview lists a destination with problems even if there is no incident about it, together with incidents about others', async () => {
  const { service, receivers } = scene
  await using tab = await browser.open(service)
  await tab.visit('/')
  await tab.page.getByText('A destination has problems').waitFor()
  assert.deepEqual((await service.api<{ data: unknown[] }>('/incidents?state=active')).data, [])
  const text = await attention(tab).innerText()
  assert.match(text, /CRM The receiver answered 503 Service Unavailable\. .*upstream is restarting.*2 recent attempts failed/)
  assert.doesNotMatch(text, /Nothing needs attention/)
  await lookAt(tab, 'overview-problems')

  const other = { name: 'Ledger', urls: [receivers.warehouse.url], sourceIds: [service.sourceId] }
  const otherId = await service.destination({ ...other, paused: true })
  await service.send([track('m-paused', { event: 'Order Completed' })])
  await eventually(
    () => service.api<{ data: { rule: string }[] }>('/incidents?state=active'),
    ({ data }) => data.some(({ rule }) => rule === 'destination_stopped'),
    { what: 'the incident about the paused destination', deadlineMs: 180_000 },
  )
  await tab.visit('/')
  await tab.page.getByText('Another destination has problems').waitFor()
  assert.match(await attention(tab).innerText(), /Paused: 1 delivery pending/)
  await lookAt(tab, 'overview-problems-and-incident')
  await service.api(`/destinations/${otherId}`, { method: 'DELETE' })
})

test('pages of the destination, its deliveries and its messages say when pending deliveries expire', async () => {
  const { service } = scene
  await using tab = await browser.open(service)
  const [pending] = await service.deliveries(`destinationId=${flakyId}&state=pending`)
  const { id, messageId } = pending as { id: string; messageId: string }
  for (const [path, name, said] of [
    [`/destinations/${flakyId}`, 'destination-expiry', /the first one expires in (3 h|4 h)/],
    [`/deliveries/${id}`, 'delivery-expiry', /expires in (3 h|4 h)/],
    [`/messages/${messageId}`, 'message-expiry', /next retry in .*, expires in (3 h|4 h)/],
  ] as const) {
    await tab.visit(path)
    assert.match(await mainText(tab), said, path)
    await lookAt(tab, name)
  }
})

test('live rows say why an attempt failed in words', async () => {
  const { service, receivers } = scene
  receivers.refusing.answer = () => ({ status: 422 })
  const id = await service.destination({ name: 'Loyalty', urls: [receivers.refusing.url] })
  await using tab = await browser.open(service)
  await tab.visit('/live')
  await tab.until(`document.body.innerText.includes('Connected')`)
  await service.send([track('live-1', { event: 'Order Completed', userId: 'ada' })])
  await service.post('/v1/track', '{"userId":"u-1","type":"track"}', { 'content-type': 'application/json' })
  const answered = 'The receiver answered 422 Unprocessable Entity.'
  await tab.page.getByRole('gridcell', { name: answered }).waitFor()
  await tab.page.getByRole('row', { name: /rejected/ }).waitFor()
  assert.doesNotMatch(await mainText(tab), /http_422|event_required/)
  await lookAt(tab, 'live-rows')
  await service.api(`/destinations/${id}`, { method: 'DELETE' })
})

test('the page of an event uses the time range of the dashboard', async () => {
  const { service } = scene
  const { data } = await service.api<{ data: { id: string; event: string }[] }>('/events')
  const event = data.find((each) => each.event === 'Order Completed') as { id: string }
  await using tab = await browser.open(service)
  await tab.visit('/?period=7d')
  await tab.go(`/events/${event.id}`)
  assert.equal(new URL(tab.page.url()).searchParams.get('period'), '7d', 'the range of the page before')
  assert.match(await mainText(tab), /messages in the last 7 days\./)
  await lookAt(tab, 'event-7d')
  await tab.page.getByText('15 min', { exact: true }).click()
  await tab.until(`new URLSearchParams(location.search).get('period') === '15m'`)
  await eventually(
    () => mainText(tab),
    (text) => /messages since .*Events are counted per hour\./.test(text),
  )
  await tab.visit(`/events/${event.id}?period=30d`)
  assert.match(await mainText(tab), /messages in the last 30 days\.|messages since .*counted per day, in UTC/)
  await tab.visit(`/events/${event.id}?period=2026-01-01T00:00Z/2026-01-02T00:00Z`)
  assert.match(await mainText(tab), /0 messages in the chosen period\..*There are no counts before [\s\S]*No messages in the chosen period/)
  await lookAt(tab, 'event-nothing')
})
