// Third-party clients for browsers, from the registry, in a real browser: browser-clients.ts lists the features and results. First what a page
// can do without a client. All tests share one browser.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { snippetOf } from '../../packages/dashboard/src/text/snippets.ts'
import { type BrowserBench, startBrowserBench } from './browser-bench.ts'
import { BROWSER_CLIENTS } from './browser-clients.ts'
import { tryOut } from './results.ts'

let started: Promise<BrowserBench> | undefined
const bench = (): Promise<BrowserBench> => (started ??= startBrowserBench())
after(async () => (await started)?.[Symbol.asyncDispose]())

test('messages sent while a page is closed arrive: with sendBeacon, as text and as JSON, and with fetch and keepalive', async () => {
  const { gate, source: newSource, open } = await bench()
  await using source = await newSource()
  await using tab = await open('blank')
  const call = (event: string): string => JSON.stringify(JSON.stringify({ writeKey: source.writeKey, anonymousId: 'a-1', event }))
  await tab.leave(`
    navigator.sendBeacon('${gate.url}/v1/track', ${call('Text')})
    navigator.sendBeacon('${gate.url}/v1/track', new Blob([${call('JSON')}], { type: 'application/json' }))
    fetch('${gate.url}/v1/track', { method: 'POST', keepalive: true, body: ${call('Fetch')} })`)
  for (const event of ['Text', 'JSON', 'Fetch']) {
    const { anonymousId, context } = await source.got(event)
    assert.deepEqual([anonymousId, (context as { ip: string }).ip], ['a-1', '127.0.0.1'])
  }
  await source.books(3)
})

test('a page can read the answer and the reason of a refusal, also if its request has cookies', async () => {
  const { gate, open } = await bench()
  await using tab = await open('blank')
  const answer = await tab.run<{ code: string }>(`fetch('${gate.url}/v1/track', {
    method: 'POST',
    credentials: 'include',
    headers: { 'Content-Type': 'application/json', 'X-Of-The-Page': '1' },
    body: JSON.stringify({ writeKey: 'nobody', userId: 'u-1', event: 'Tested' }),
  }).then((response) => response.json())`)
  assert.equal(answer.code, 'invalid_write_key')
})

test('the pixel is shown, also in a cross-origin isolated page, and its call arrives', async () => {
  const { gate, source: newSource, open } = await bench()
  await using source = await newSource()
  await using tab = await open('blank', { headers: { 'cross-origin-embedder-policy': 'require-corp' } })
  const data = btoa(JSON.stringify({ writeKey: source.writeKey, userId: 'u-1', event: 'Email Opened' }))
  const width = await tab.run<number>(`{
    const image = document.body.appendChild(new Image())
    image.src = '${gate.url}/v1/pixel/track?data=${encodeURIComponent(data)}'
    image.decode().then(() => image.naturalWidth)
  }`)
  assert.equal(width, 1)
  const { userId, context } = await source.got('Email Opened')
  assert.deepEqual([userId, (context as { ip: string }).ip], ['u-1', '127.0.0.1'])
  await source.books(1)
})

test('a browser with cached settings checks whether they have changed, and gets an error when their key was removed', async () => {
  const { gate, service, source: newSource, open } = await bench()
  await using source = await newSource()
  await using tab = await open('blank')
  const ask = (cache: string): Promise<number> =>
    tab.run(`fetch('${gate.url}/v1/projects/${source.writeKey}/settings', { cache: '${cache}' }).then(({ status }) => status)`)
  const from = gate.requests.length
  const asked = (): (number | null)[] => gate.requests.slice(from).map(({ status }) => status)
  assert.deepEqual([await ask('default'), asked()], [200, [200]])
  assert.deepEqual([await ask('default'), asked()], [200, [200]], 'kept')
  assert.deepEqual([await ask('no-cache'), asked()], [200, [200, 304]], 'asked')
  await service.api(`/sources/${source.sourceId}/write-keys`, { method: 'POST', body: {} })
  await service.api(`/sources/${source.sourceId}/write-keys/${source.writeKey}`, { method: 'DELETE' })
  assert.deepEqual([await ask('no-cache'), asked()], [404, [200, 304, 404]])
})

test('the snippet of the dashboard works in a page', async () => {
  const { gate, source: newSource, open } = await bench()
  await using source = await newSource()
  await using tab = await open('blank')
  await tab.run(`${snippetOf('browser', { origin: gate.url, writeKey: source.writeKey })}.then(() => undefined)`)
  assert.equal((await source.got('Order Completed'))['anonymousId'], 'visitor-1')
})

test('the snippet of old pages works with a copy of the client’s file on the pages’ own host', async () => {
  const { gate, service, source: newSource, open, script } = await bench()
  const path = '/analytics.js/v1/key/analytics.min.js'
  assert.equal((await fetch(`${service.url}${path}`)).status, 404, 'the service does not serve it')
  await script('standalone', new URL('umd/standalone.js', import.meta.resolve('@segment/analytics-next/dist/')))
  await using source = await newSource()
  await using tab = await open('blank')
  await tab.run(`{
    const analytics = (window.analytics = [])
    analytics._writeKey = '${source.writeKey}'
    analytics._cdn = '${gate.url}'
    analytics.push(['track', 'From The Snippet', { total: 12.5 }])
    const file = document.createElement('script')
    file.src = '/standalone.js'
    document.head.append(file)
  }`)
  assert.deepEqual((await source.got('From The Snippet'))['properties'], { total: 12.5 })
  await source.books(1)
})

tryOut(BROWSER_CLIENTS, async () => ({ ...(await bench()), [Symbol.asyncDispose]: () => Promise.resolve() }))
