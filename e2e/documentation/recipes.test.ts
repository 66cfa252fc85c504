// Every recipe of docs/guide/recipes is created as its page says, with a stand-in for the real service. The stand-in checks requests and answers
// like the real service, so that a wrong recipe fails here.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { SQLITE_ONLY } from '../../packages/server/src/store/fixtures/test-store.ts'
import { startReceiver } from '../system/receiver.ts'
import { type Service, startService } from '../system/service.ts'
import { blocksOf, Reader, ROOT } from './documentation.ts'
import { AT, CASES, MESSAGES, ORDER, Refusal } from './recipe-cases.ts'

const FOLDER = join(ROOT, 'docs', 'guide', 'recipes')

interface Recipe {
  urls: string[]
  auth?: { tokenUrl?: string }
  [setting: string]: unknown
}

/** The destination of a page, as a reader creates it, but with the stand-in's address instead of every host. */
function recipeOf(name: string, placeholders: Record<string, string>, sourceId: string, origin: string): Recipe {
  const [block, ...others] = blocksOf(readFileSync(join(FOLDER, `${name}.md`), 'utf8')).filter(({ language }) => language === 'json')
  assert.ok(block !== undefined && others.length === 0, 'one JSON block')
  assert.deepEqual(block.words, [`${name}.json`])
  let text = block.text.replace('src_…', sourceId)
  for (const [placeholder, value] of Object.entries(placeholders)) {
    assert.ok(text.includes(placeholder), placeholder)
    text = text.replaceAll(placeholder, value)
  }
  assert.doesNotMatch(text, /…/)
  const recipe = JSON.parse(text) as Recipe
  const local = (url: string): string => url.replace(/^https:\/\/[^/]+/, origin)
  if (recipe.auth?.tokenUrl !== undefined) recipe.auth.tokenUrl = local(recipe.auth.tokenUrl)
  return { ...recipe, urls: recipe.urls.map(local) }
}

suite('recipes', { concurrency: 3 }, () => {
  let service: Service
  before(async () => {
    service = await startService()
  })
  after(() => service[Symbol.asyncDispose]())

  interface Source {
    id: string
    writeKeys: string[]
  }
  /** A new source, so that the recipes do not get each other's messages. */
  const newSource = (name: string): Promise<Source> => service.api('/sources', { method: 'POST', body: { name } })
  async function send({ writeKeys }: Source, batch: readonly object[]): Promise<void> {
    const response = await fetch(`${service.url}/v1/batch`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Basic ${btoa(`${writeKeys[0]}:`)}` },
      body: JSON.stringify({ batch, sentAt: new Date().toISOString() }),
    })
    assert.equal(response.status, 200, await response.text())
  }

  test('every page has a case here', () => {
    const pages = readdirSync(FOLDER).map((file) => file.replace(/\.md$/, ''))
    assert.deepEqual(pages.filter((page) => page !== 'index').sort(), Object.keys(CASES).sort())
  })

  for (const [name, caseOf] of Object.entries(CASES)) {
    test(name, async () => {
      const got: unknown[] = []
      const { placeholders, standIn, expected, batch } = caseOf((value) => got.push(value))
      const refusals: string[] = []
      await using receiver = await startReceiver((arrival) => {
        try {
          return standIn(arrival)
        } catch (error) {
          refusals.push((error as Error).message)
          return { status: error instanceof Refusal ? error.status : 400, body: (error as Error).message }
        }
      })
      const source = await newSource(name)
      const origin = new URL(receiver.url).origin
      const { id } = await service.api<{ id: string }>('/destinations', {
        method: 'POST',
        body: recipeOf(name, placeholders, source.id, origin),
      })
      await send(source, MESSAGES)
      const count = expected.length
      await receiver.until(() => got.length >= count || refusals.length > 0, {
        what: `${count} messages`,
        state: () => JSON.stringify(got),
      })
      assert.deepEqual(refusals, [])
      const byText = (values: unknown[]): string[] => values.map((value) => JSON.stringify(value)).sort()
      // Messages that are not batched arrive in any order, and times are corrected by the sender's clock.
      const times = (texts: string[]): string[] => texts.map((text) => text.replaceAll(/"2026-11-14T09:00:00\.\d{3}Z"/g, `"${AT}"`))
      assert.deepEqual(times(byText(got)), byText(expected))
      if (batch) assert.equal(receiver.arrivals.length, 1, 'one request')
      const { data } = await service.api<{ data: { state: string }[] }>(`/deliveries?destinationId=${id}&state=failed`)
      assert.deepEqual(data, [])
    })
  }

  test('the example of the guide arrives as the guide says', async () => {
    const [example, shown] = blocksOf(readFileSync(join(ROOT, 'docs', 'guide', 'requests.md'), 'utf8'))
    await using receiver = await startReceiver()
    const source = await newSource('guide')
    const text = (example?.text ?? '').replace('src_…', source.id).replace('https://api.example.com', new URL(receiver.url).origin)
    await service.api('/destinations', { method: 'POST', body: JSON.parse(text) })
    const traits = { name: 'Ann', email: 'ann@example.com' }
    await send(source, [{ type: 'identify', userId: 'u 1', traits, context: { tenant: 'acme' } }])
    await receiver.until(() => receiver.arrivals.length === 1)
    const { method, path, headers, bytes } = receiver.arrivals[0] ?? assert.fail()
    const named = ['Content-Type', 'X-Tenant'].map((name) => `${name}: ${headers[name.toLowerCase()]}`)
    assert.equal(shown?.text, `${[`${method} ${path}`, ...named, '', bytes.toString()].join('\n')}\n`)
  })

  test('a message of the README’s recipe arrives in the right shape at a receiver that stands for Slack', {
    skip: SQLITE_ONLY,
  }, async () => {
    const [, section = ''] = /^### Paste a recipe\n([\s\S]*?)^##/m.exec(readFileSync(join(ROOT, 'README.md'), 'utf8')) ?? []
    assert.match(section, /curl/)
    await using own = await startService({ token: null })
    await using reader = await Reader.withService(own)
    await reader.read(section, 'README.md')
  })

  test('a message that does not fit the recipe fails with the field that is wrong, and no other message fails', async () => {
    await using receiver = await startReceiver()
    const source = await newSource('unfit')
    const request = { path: '/users/{{userId}}', body: { text: { '@template': '{{properties}}' } } }
    const { id } = await service.api<{ id: string }>('/destinations', {
      method: 'POST',
      body: { name: 'unfit', sourceIds: [source.id], urls: [receiver.url], request },
    })
    const messages = [
      { ...ORDER, messageId: 'good' },
      { ...ORDER, messageId: 'no-user', userId: null, anonymousId: 'a' },
      { ...ORDER, messageId: 'hostile', properties: { toString: 1 } },
    ]
    await send(source, messages)
    await receiver.until(() => receiver.arrivals.length === 1)
    const rows = await service.settled(undefined, { what: 'everything has ended' })
    const { delivered, failed } = rows.find((row) => row.destinationId === id) ?? assert.fail()
    assert.deepEqual([delivered, failed], [1, 2])
    const { data } = await service.api<{ data: { id: string; messageId: string; reason: string }[] }>(
      `/deliveries?destinationId=${id}&state=failed`,
    )
    const errors = await Promise.all(
      data.map(async ({ id: delivery, messageId, reason }) => {
        const { attempts } = await service.api<{ attempts: { error: string }[] }>(`/deliveries/${delivery}`)
        return [messageId, reason, attempts.at(-1)?.error]
      }),
    )
    assert.deepEqual(
      errors.sort(([left = ''], [right = '']) => (left < right ? -1 : 1)),
      [
        ['hostile', 'mapping_failed', 'request.body.text cannot be evaluated: an object cannot be written as text.'],
        ['no-user', 'mapping_failed', 'request.path has no value for {{userId}} in this message.'],
      ],
    )
  })

  test('in a batch, a message that does not fit is left out and fails alone', async () => {
    await using receiver = await startReceiver()
    const source = await newSource('batched')
    const request = { body: { '@template': '{{event}} {{properties}}' }, format: 'text' }
    const { id } = await service.api<{ id: string }>('/destinations', {
      method: 'POST',
      body: { name: 'batched', sourceIds: [source.id], urls: [receiver.url], batch: { size: 3, lingerMs: 60_000 }, request },
    })
    const message = (at: number, properties: object): object => ({ ...ORDER, messageId: `b-${at}`, event: `E${at}`, properties })
    const messages = [message(0, { a: 1 }), message(1, { toString: 1 }), message(2, { b: 2 })]
    await send(source, messages)
    await receiver.until(() => receiver.arrivals.length === 1)
    assert.equal(receiver.arrivals[0]?.bytes.toString(), 'E0 [object Object]\nE2 [object Object]')
    const rows = await service.settled(undefined, { what: 'everything has ended' })
    const { delivered, failed, pending } = rows.find((row) => row.destinationId === id) ?? assert.fail()
    assert.deepEqual([delivered, failed, pending, receiver.arrivals.length], [2, 1, 0, 1])
  })

  test('the header values of a request are encrypted at rest', async () => {
    const request = { headers: { 'X-Key': 'SECRET-header-value {{userId}}' } }
    const body = { name: 'secrets', urls: ['http://127.0.0.1:9/'], request }
    const { id } = await service.api<{ id: string }>('/destinations', { method: 'POST', body })
    // The version that this replaces is kept.
    await service.api(`/destinations/${id}`, { method: 'PATCH', body: { request: { ...request, method: 'PUT' } } })
    for (const [place, bytes] of await service.stored()) assert.equal(bytes.includes('SECRET-header-value'), false, place)
  })
})
