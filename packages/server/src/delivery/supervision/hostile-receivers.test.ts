// Hostile receivers, broken settings and hostile messages: what a sender does about them, in this thread and in a sender thread.

import assert from 'node:assert/strict'
import test from 'node:test'
import { SegmentBody } from '../../store/port/stored-messages.ts'
import { type WebhookDestination } from '../../store/store.ts'
import { contentOf, destinationOf, OPTIONS, reasonOf, send, startReceiver } from '../fixtures/sent-work.ts'
import type { Outcome } from '../link/outcome.ts'
import type { ThreadOptions } from '../link/thread-channel.ts'
import { openInlineSender, openSenderThreads } from '../open-senders.ts'
import type { Senders } from './senders.ts'

for (const [where, open] of [
  ['a sender thread', (guard: ThreadOptions['guard']) => openSenderThreads(1, { ...OPTIONS, guard })],
  ['a sender in this thread', (guard: ThreadOptions['guard']) => openInlineSender({ ...OPTIONS, guard })],
] as const) {
  test(`${where} dials only allowed addresses, follows no redirect, and limits the time and the size of an answer`, async (t) => {
    const elsewhere = await startReceiver(t)
    const { received, url } = await startReceiver(t, ({ url: path }, response) => {
      if (path === '/redirect') response.writeHead(307, { location: elsewhere.url }).end()
      else if (path === '/slow') response.writeHead(200).write('a')
      else if (path === '/endless') {
        const more = (): void => {
          while (response.write('a'.repeat(65_536)));
        }
        response.on('drain', more)
        more()
      } else response.end()
    })
    const { port } = new URL(url)
    const guarded = open({ allowPrivate: false, allow: [] })
    const allowed = open({ allowPrivate: false, allow: ['127.0.0.1/32'] })
    t.after(() => Promise.all([guarded.close(), allowed.close()]))
    const to = (senders: Senders, target: string, given: Partial<WebhookDestination> = {}) =>
      reasonOf(send(senders, destinationOf([target], given), contentOf(1), [0], { keepAnswer: true }))
    for (const target of [url, `http://localhost:${port}`, `http://[::ffff:127.0.0.1]:${port}`, `http://0x7f.1:${port}`])
      assert.equal(await to(guarded, target), 'address_refused', target)
    assert.equal(received.length, 0)
    assert.equal(await to(allowed, url), null)
    assert.equal(await to(allowed, `http://[::1]:${port}`), 'address_refused')
    assert.equal(await to(allowed, `${url}/redirect`), 'http_307')
    assert.equal(elsewhere.received.length, 0)
    assert.equal(await to(allowed, `${url}/slow`, { timeoutMs: 200 }), 'timeout')
    assert.equal(await to(allowed, `${url}/endless`), null)
  })

  test(`${where} reports no secret when a request cannot be created or sent`, async (t) => {
    const senders = open(OPTIONS.guard)
    t.after(() => senders.close())
    const reports: string[] = []
    const bug = (message: string): void => void reports.push(message)
    const broken: [string[], Partial<WebhookDestination>][] = [
      [['http://127.0.0.1:9/'], { signingSecrets: ['whsec_hidden!'] }],
      [['http://127.0.0.1:9/'], { headers: { 'X-Key': 'hidden\r\nX-Other: 1' } }],
      [['http://127.0.0.1:9/'], { headers: { 'hidden key': 'a' } }],
      [['http://user:hidden@127.0.0.1:9/?hidden'], {}],
      [['http://user:hidden@127.0.0.1:99999/'], {}],
      [['ftp://user:hidden@127.0.0.1/'], {}],
    ]
    for (const [urls, given] of broken) {
      const outcomes = await send(senders, destinationOf(urls, given), contentOf(1), [0], { bug })
      assert.notEqual((outcomes as Outcome[])[0]?.verdict, 'success')
      reports.push(JSON.stringify(outcomes))
    }
    assert.ok(reports.length > broken.length)
    assert.deepEqual(
      reports.filter((report) => report.includes('hidden')),
      [],
    )
  })
}

test('a hostile message neither ends a sender thread nor changes the request of another one', async (t) => {
  const { received, url } = await startReceiver(t)
  const lost: Error[] = []
  const senders = openSenderThreads(1, OPTIONS, { onLost: (error) => void lost.push(error) })
  t.after(() => senders.close())
  const destination = destinationOf([url])
  const { about } = contentOf(1).body
  const deep = '['.repeat(200_000) + ']'.repeat(200_000)
  const bodies = [
    `{"batch":[{"type":"track","event":"e","properties":${deep}}]}`,
    '{"batch":[{"type":"hostile"}]}',
    '{"batch":[7]}',
    '{"batch":{"0":{"type":"track"},"length":1}}',
    '{"__proto__":{"batch":[{"type":"track"}]}}',
    '{"batch":[{"type":"track","event":"e","__proto__":{"userId":"other"},"properties":{"__proto__":{"a":1},"toJSON":1}}],"context":{"__proto__":{"ip":"a"}}}',
  ]
  const reasons: unknown[] = []
  for (const body of bodies) {
    const content = { ...contentOf(1), body: new SegmentBody(Buffer.from(body), about) }
    reasons.push(await reasonOf(send(senders, destination, content, [0])))
  }
  assert.deepEqual(reasons, ['internal_error', 'internal_error', 'internal_error', 'unreadable', 'unreadable', null])
  assert.equal(await reasonOf(send(senders, destination, contentOf(1), [0])), null)
  assert.deepEqual([received.length, lost], [2, []])
  const { userId, properties } = JSON.parse(received[0]?.body ?? '') as { userId?: string; properties: object }
  assert.deepEqual([userId, Object.keys(properties)], [undefined, ['__proto__', 'toJSON']])
  assert.equal((JSON.parse(received[1]?.body ?? '') as { userId: string }).userId, 'ü')
})
