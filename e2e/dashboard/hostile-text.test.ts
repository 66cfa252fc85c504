// Malicious text in every field that can contain text: names, URLs, headers, events, properties, traits, ids, responses of receivers,
// reasons, the audit log. It is stored through the control API and the tracking API, then every page is visited with everything expanded.
// None of the text is executed or becomes an element or a link, and it is shown as text.

import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { after, before, test } from 'node:test'
import { PAGE_PATHS } from '../../packages/server/src/pages/paths.ts'
import { type Receiver, startReceiver } from '../system/receiver.ts'
import { eventually } from '../system/signals.ts'
import { startBrowser, type Tab, type TestBrowser } from './browser.ts'
import { end, type Scene, startScene, TABS } from './scene.ts'

const RUN = 'window.hostile=1'
const IMAGE = `<img src=x onerror=${RUN}>`
const SCRIPT = `"><script>${RUN}</script>`
const LINK = `javascript:${RUN}//`
const SVG = `'--></title></textarea><svg/onload=${RUN}>`
const TEMPLATE = `{{constructor.constructor('${RUN}')()}}\${${RUN}}`
const TURNED = '\u202Eevil\u2066\u200B<b onmouseover=1>\u2028x\u0000y'
/** Text with HTML syntax, for every field. */
const PAYLOADS = [IMAGE, SCRIPT, LINK, SVG, TEMPLATE]

let browser: TestBrowser
let scene: Scene
let receiver: Receiver
let addresses: string[]
let source: { id: string }
let destination: string

before(async () => {
  ;[browser, scene] = await Promise.all([startBrowser(), startScene({ empty: true })])
  receiver = await startReceiver(({ number }) =>
    number % 3 === 0
      ? { status: 200, body: SCRIPT }
      : {
          script: (response) =>
            response
              .writeHead(400, `Bad ${IMAGE}`, { 'content-type': 'text/html', 'x-note': SCRIPT })
              .end(`<html><body>${PAYLOADS.join('\n')}`),
        },
  )
  addresses = await fill()
})
after(() => end(browser, scene, receiver))

async function fill(): Promise<string[]> {
  const { service } = scene
  const post = <T>(path: string, body: object): Promise<T> => service.api<T>(path, { method: 'POST', body })
  source = await post('/sources', { name: IMAGE, writeKeys: ['key-of-strangers'] })
  await service.api(`/sources/${service.sourceId}`, { method: 'PATCH', body: { name: SVG } })
  const sourceIds = [source.id, service.sourceId]
  destination = await post<{ id: string }>('/destinations', {
    name: SCRIPT,
    sourceIds,
    urls: [`${receiver.url}a?b=${IMAGE.replaceAll(' ', '/')}&c="><script>`, `${receiver.url}${LINK}?'><svg/onload=1>`],
    headers: { 'x-note': IMAGE, 'x-link': LINK },
    filter: { events: { deny: [IMAGE, SCRIPT] } },
  }).then(({ id }) => id)
  await post('/destinations', { name: TEMPLATE, sourceIds, urls: [`${receiver.url}template`], retryWindowMs: 1_000, batch: { size: 10 } })
  await post('/tokens', { name: IMAGE, role: 'viewer' })
  await post('/tokens', { name: SVG, role: 'admin' })
  const { publicKey } = generateKeyPairSync('ed25519')
  const publicKeyPem = publicKey.export({ type: 'spki', format: 'pem' })
  await post('/oauth-apps', { name: SCRIPT, sourceIds, keys: [{ publicKeyPem }] })

  const messages = [...PAYLOADS, TURNED].flatMap((text, at) => {
    const context = { ip: text, userAgent: text, page: { url: LINK, title: text, referrer: text }, [text]: { [text]: text } }
    const common = { userId: `${text}${at}`, anonymousId: text, context, integrations: { [text]: true } }
    return [
      {
        type: 'track',
        messageId: `${text}-${at}`,
        event: text,
        properties: { [text]: text, url: LINK, html: SCRIPT, list: [text, { [text]: LINK }] },
        ...common,
      },
      {
        type: 'track',
        event: 'Plain',
        properties: { __proto__: { x: text }, constructor: text, toString: text, dangerouslySetInnerHTML: { __html: text } },
        ...common,
      },
      { type: 'identify', traits: { name: text, email: text, avatar: LINK, website: LINK }, ...common },
      { type: 'page', name: text, category: text, properties: { url: LINK, path: text }, ...common },
      { type: 'screen', name: text, ...common },
      { type: 'group', groupId: text, traits: { name: text }, ...common },
      { type: 'alias', previousId: text, ...common },
    ]
  })
  const { status } = await service.send(messages)
  assert.equal(status, 200)
  // Rejected calls, with samples.
  for (const text of PAYLOADS) {
    await service.post('/v1/batch', JSON.stringify({ batch: [{ type: text, userId: text, messageId: text }] }), {
      'content-type': 'application/json',
    })
    await service.post('/v1/track', `{"${text}`, { 'content-type': text.replaceAll(/[^\w/ ]/g, '') })
  }

  const failed = await eventually(
    () => service.deliveries('state=failed'),
    (rows) => rows.length >= 5,
    { what: 'failed deliveries' },
  )
  await post('/suppressions', { userIds: [...PAYLOADS, 'u-9'] })
  const deletion = await post<{ id: string }>('/deletions', { userIds: PAYLOADS.map((text) => `deleted ${text}`), suppress: true })
  const replay = await post<{ id: string }>('/replays', {
    destinationId: destination,
    states: ['failed'],
    reason: 'http_400',
    ratePerSecond: 5,
  })
  await post('/replays', { reason: IMAGE })

  const ids: Record<string, string> = {
    sources: source.id,
    destinations: destination,
    messages: `${IMAGE}-0`,
    deliveries: (failed[0] as { id: string }).id,
    replays: replay.id,
    deletions: deletion.id,
    settings: 'tokens',
  }
  const encoded = encodeURIComponent(IMAGE)
  return [
    ...PAGE_PATHS.map((path) => path.replace(/:\w+/, encodeURIComponent(ids[path.split('/')[1] as string] ?? ''))),
    ...TABS.map((tab) => `/settings/${tab}`),
    // The URL can contain malicious text too.
    ...PAGE_PATHS.filter((path) => path.includes(':')).map((path) => path.replace(/:\w+/, encoded)),
    ...PAYLOADS.slice(1).map((text, at) => `/messages/${encodeURIComponent(`${text}-${at + 1}`)}`),
    `/deliveries?reason=${encoded}&userId=${encoded}&event=${encoded}&destinationId=${encoded}&state=${encoded}&from=${encoded}`,
    `/messages?userId=${encoded}&type=${encoded}&sourceId=${encoded}&messageId=${encoded}&q=${encoded}`,
    `/live?sourceId=${encoded}&type=${encoded}&event=${encoded}&userId=${encoded}`,
    `/settings/audit?actor=${encoded}&action=${encoded}&subject=${encoded}&userId=${encoded}`,
    `/signature?body=${encoded}&secret=${encoded}&header=${encoded}`,
    `/?range=${encoded}&from=${encoded}`,
    `/destinations/${destination}?tab=${encoded}&edit=${encoded}`,
  ]
}

/** Elements or links in the page that only the malicious text can have created. */
const MADE = `(() => {
  const found = []
  if (window.hostile) found.push('it ran')
  for (const element of document.querySelectorAll('img[src="x"], script:not([src]), [onerror], [onload], [onmouseover], iframe, object, embed, base, b[onmouseover]'))
    found.push('an element: ' + element.outerHTML.slice(0, 200))
  for (const element of document.querySelectorAll('a[href], area[href], form[action], [src]')) {
    const address = element.href ?? element.action ?? element.src
    if (typeof address === 'string' && !/^(https?:|blob:|data:image\\/)/.test(address)) found.push('a link: ' + element.outerHTML.slice(0, 200))
  }
  for (const element of document.querySelectorAll('[style]')) if (/expression|javascript|url\\(/.test(element.getAttribute('style'))) found.push('a style: ' + element.outerHTML.slice(0, 200))
  return found
})()`

/** All visible text, including the values of input fields. */
const TEXT = `[document.body.innerText, ...[...document.querySelectorAll('input, textarea')].map(({ value }) => value)].join('\\n')`

/** Opens everything that is collapsed: menus, selects, details, tabs. */
async function openAll({ page }: Tab): Promise<void> {
  for (let at = 0; at < 12; at++) {
    const closed = page.locator('main [aria-expanded="false"]:visible, main details:not([open]) > summary:visible').nth(at)
    if ((await closed.count()) === 0) break
    await closed.click({ timeout: 1_000 }).catch(() => {})
  }
  await page.keyboard.press('Escape')
}

test('no page executes the text, turns it into an element or a link, or breaks', async (t) => {
  await using tab = await browser.open(scene.service)
  tab.expected.push(/status of (400|404)/)
  tab.page.on('dialog', (dialog) => {
    tab.problems.push(`a dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  for (const address of addresses) {
    await t.test(decodeURIComponent(address), async () => {
      await tab.go(address)
      await openAll(tab)
      await tab.settled()
      assert.deepEqual(await tab.page.evaluate<string[]>(MADE), [])
      tab.check()
    })
  }
})

test('the text is shown as text where it belongs', async (t) => {
  await using tab = await browser.open(scene.service)
  for (const [address, texts] of [
    ['/sources', [IMAGE, SVG]],
    [`/sources/${source.id}`, [IMAGE]],
    ['/destinations', [SCRIPT, TEMPLATE]],
    [`/destinations/${destination}`, [SCRIPT]],
    [`/messages?userId=${encodeURIComponent(`${TEMPLATE}4`)}`, [TEMPLATE, IMAGE]],
    [`/messages/${encodeURIComponent(`${SCRIPT}-1`)}`, [SCRIPT, LINK]],
    ['/settings/tokens', [IMAGE, SVG]],
    ['/settings/oauth', [SCRIPT]],
    ['/settings/audit', [IMAGE]],
  ] as const) {
    await t.test(address, async () => {
      await tab.go(address)
      await openAll(tab)
      const text = await tab.page.evaluate<string>(TEXT)
      for (const each of texts) assert.ok(text.includes(each), `${each} is not to be read at ${address}:\n${text.slice(0, 1_500)}`)
    })
  }
})

test('the live page and the search show the text as text', async () => {
  await using tab = await browser.open(scene.service)
  await tab.visit('/live')
  await scene.service.send(
    PAYLOADS.map((text, at) => ({
      type: 'track',
      messageId: `live ${at} ${text}`,
      userId: text,
      event: text,
      properties: { [text]: text },
    })),
  )
  await tab.until(`document.body.innerText.includes(${JSON.stringify(IMAGE)})`)
  await openAll(tab)
  assert.deepEqual(await tab.page.evaluate<string[]>(MADE), [])
  await tab.page.keyboard.press('Control+k')
  const search = tab.page.getByPlaceholder('Search, or type what to do: pause …')
  for (const text of PAYLOADS) {
    await search.fill(text)
    assert.deepEqual(await tab.page.evaluate<string[]>(MADE), [])
  }
})

test('a URL that is not http or https is rejected, also as one of several', async () => {
  const { service } = scene
  for (const url of [LINK, `data:text/html,${SCRIPT}`, 'file:///etc/passwd', 'ftp://example.com/', 'vbscript:x']) {
    const body = { name: 'x', urls: [receiver.url, url] }
    await assert.rejects(service.api('/destinations', { method: 'POST', body }), /: 400 /, url)
  }
})

test('the session cookie is not available to scripts and other sites, and requests of other sites are rejected', async () => {
  const { service } = scene
  await using tab = await browser.open(service)
  await tab.visit('/settings')
  assert.equal(await tab.page.evaluate('document.cookie'), '')
  const [cookie] = await tab.context.cookies()
  assert.deepEqual([cookie?.httpOnly, cookie?.sameSite], [true, 'Strict'])
  // A page of another site in the same browser, with a form and a script. (localhost and 127.0.0.1 are different sites.)
  await using other = await startReceiver(() => ({
    headers: { 'content-type': 'text/html' },
    body: '<!doctype html><title>Elsewhere</title><h1>Elsewhere</h1>',
  }))
  const page = await tab.context.newPage()
  await page.goto(other.url.replace('127.0.0.1', 'localhost'))
  const before = (await service.api<{ data: unknown[] }>('/sources')).data.length
  const statuses = await page.evaluate<
    string[]
  >(`Promise.all(['text/plain', 'application/json', 'application/x-www-form-urlencoded'].map((type) =>
    fetch('${service.url}/api/sources', { method: 'POST', mode: type === 'application/json' ? 'cors' : 'no-cors', credentials: 'include', headers: { 'content-type': type }, body: '{"name":"stolen"}' })
      .then((response) => response.type, (error) => error.name)))`)
  // The other site cannot read the response.
  assert.deepEqual(
    statuses.filter((status) => status !== 'opaque' && status !== 'TypeError'),
    [],
  )
  assert.equal((await service.api<{ data: unknown[] }>('/sources')).data.length, before)
  // Even if the cookie is sent, as by a browser without SameSite.
  for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }, { origin: 'null' }]) {
    const answer = await fetch(`${service.url}/api/sources`, {
      method: 'POST',
      headers: { cookie: `${cookie?.name}=${cookie?.value}`, 'content-type': 'application/json', ...headers },
      body: '{"name":"stolen"}',
    })
    assert.equal(answer.status, 403, JSON.stringify(headers))
  }
  // The dashboard cannot be framed.
  tab.expected.push(/frame-ancestors|X-Frame-Options|refused to connect/i)
  const framed = await page.evaluate<boolean>(`new Promise((resolve) => {
    const frame = document.createElement('iframe')
    frame.onload = () => { try { resolve(frame.contentDocument !== null && frame.contentDocument.title !== '') } catch { resolve(false) } }
    frame.src = '${service.url}/'
    document.body.append(frame)
  })`)
  assert.equal(framed, false)
  await page.close()
})
