// oxlint-disable unicorn/no-thenable -- `then` is an option of @if

import assert from 'node:assert/strict'
import test from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import { signMessage, standardWebhookSigner } from '@switchyard/webhook'
import fc from 'fast-check'
import type { RequestSettings, WebhookDestination } from '../../../store/store.ts'
import { webhookOf } from '../../fixtures/webhook.ts'
import { MappingFailed, type Prepared, type RequestAbout } from '../../port/kind.ts'
import { webhookRequest } from '../request.ts'
import { mappingProblem } from './mapping.ts'
import { shaperOf } from './shaper.ts'

const about: RequestAbout = { id: '17-0', attempt: 1, replay: false, atMs: Date.UTC(2026, 10, 14, 9), trace: null }

function destination(request: Partial<RequestSettings> | null, given: Partial<WebhookDestination> = {}): WebhookDestination {
  const whole =
    request === null ? null : { method: 'POST' as const, path: '', headers: {}, body: null, format: 'json' as const, ...request }
  return webhookOf({ request: whole, ...given })
}

function shape(request: Partial<RequestSettings>, message: JsonObject): Prepared {
  assert.equal(request.body == null ? null : mappingProblem(request.body), null)
  return (shaperOf(destination(request)) ?? assert.fail())(message)
}

function failure(request: Partial<RequestSettings>, message: JsonObject): string {
  try {
    shape(request, message)
  } catch (error) {
    assert.ok(error instanceof MappingFailed, String(error))
    return error.message
  }
  return assert.fail('was sent')
}

const ORDER: JsonObject = {
  type: 'track',
  userId: 'u 1',
  event: 'Order Completed',
  properties: {
    total: 12.5,
    products: [
      { sku: 'a', price: 1 },
      { sku: 'b', price: 2 },
    ],
    empty: '',
    nothing: null,
  },
}

test('the example of the documentation', () => {
  const request: Partial<RequestSettings> = {
    path: '/users/{{userId}}',
    headers: { 'X-Tenant': '{{context.tenant}}' },
    body: { id: { '@path': '$.userId' }, text: { '@template': '{{event}} for {{properties.total}}' } },
  }
  const message = { ...ORDER, context: { tenant: 'acme' } }
  const expected = { text: '{"id":"u 1","text":"Order Completed for 12.5"}', path: '/users/u%201', headers: ['X-Tenant', 'acme'] }
  assert.deepEqual(shape(request, message), expected)
  const { method, path, headers, body } = webhookRequest(destination(request), [shape(request, message)], false, about)
  assert.deepEqual([method, path, body], ['POST', expected.path, expected.text])
  assert.deepEqual(headers.slice(2), ['Content-Type', 'application/json', 'X-Tenant', 'acme', 'X-Attempt', '1'])
})

test('a request with the default settings sends what the classic webhook sends', () => {
  const secrets = { sharedSecret: 's', signingSecrets: ['whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX'], headers: { 'X-A': '1' } }
  const text = JSON.stringify(ORDER)
  for (const batch of [false, true]) {
    const count = batch ? 2 : 1
    const classic = webhookRequest(
      destination(null, secrets),
      Array.from({ length: count }, () => text),
      batch,
      about,
    )
    const shaped = Array.from({ length: count }, () => shape({}, ORDER))
    assert.deepEqual(webhookRequest(destination({}, secrets), shaped, batch, about), classic)
  }
  assert.equal(shaperOf(destination(null)), null)
})

test('directives of the mapping kit', () => {
  const body = {
    skus: { '@arrayPath': ['$.properties.products', { id: { '@path': '$.sku' } }] },
    known: { '@if': { exists: { '@path': '$.userId' }, then: 'yes', else: 'no' } },
    blank: { '@if': { blank: { '@path': '$.properties.empty' }, then: 'yes', else: 'no' } },
    upper: { '@case': { operator: 'upper', value: { '@path': '$.event' } } },
    replaced: { '@replace': { pattern: ' ', replacement: '_', value: { '@path': '$.event' } } },
    json: { '@json': { mode: 'encode', value: { '@path': '$.properties.total' } } },
    decoded: { '@json': { mode: 'decode', value: '{"a":1}' } },
    flat: { '@flatten': { separator: '.', value: { '@path': '$.properties' } } },
    merged: { '@merge': { direction: 'right', objects: [{ a: 1 }, { a: { '@path': '$.type' } }] } },
    literal: { '@literal': ['x', { '@path': '$.type' }] },
    missing: { '@path': '$.nope.at.all' },
    second: { '@path': '$.properties.products[1].sku' },
    count: { '@path': '$.properties.products.length' },
  }
  assert.deepEqual(JSON.parse(shape({ body }, ORDER).text), {
    skus: [{ id: 'a' }, { id: 'b' }],
    known: 'yes',
    blank: 'no',
    upper: 'ORDER COMPLETED',
    replaced: 'Order_Completed',
    json: '12.5',
    decoded: { a: 1 },
    flat: {
      total: 12.5,
      'products.0.sku': 'a',
      'products.0.price': 1,
      'products.1.sku': 'b',
      'products.1.price': 2,
      empty: '',
      nothing: null,
    },
    merged: { a: 'track' },
    literal: ['x', 'track'],
    second: 'b',
    count: 2,
  })
})

test('each format has its body and content type', () => {
  const two = (request: Partial<RequestSettings>, batch: boolean): [string, string | undefined] => {
    const prepared = (batch ? [1, 2] : [1]).map((n) => shape(request, { type: 'track', n, of: { a: [1, 'x y'] } }))
    const { headers, body } = webhookRequest(destination(request), prepared, batch, about)
    return [body, headers[headers.indexOf('Content-Type') + 1]]
  }
  const body = { n: { '@path': '$.n' } }
  assert.deepEqual(two({ body, format: 'json' }, true), ['[{"n":1},{"n":2}]', 'application/json'])
  assert.deepEqual(two({ body, format: { wrap: 'ba"tch' } }, true), ['{"ba\\"tch":[{"n":1},{"n":2}]}', 'application/json'])
  assert.deepEqual(two({ body, format: { wrap: 'batch' } }, false), ['{"batch":[{"n":1}]}', 'application/json'])
  assert.deepEqual(two({ body, format: 'ndjson' }, true), ['{"n":1}\n{"n":2}\n', 'application/x-ndjson'])
  assert.deepEqual(two({ body, format: 'ndjson' }, false), ['{"n":1}\n', 'application/x-ndjson'])
  assert.deepEqual(two({ body: [{ index: {} }, body], format: 'ndjson' }, true)[0], '{"index":{}}\n{"n":1}\n{"index":{}}\n{"n":2}\n')
  assert.deepEqual(two({ body: { '@template': 'n is {{n}}' }, format: 'text' }, true), ['n is 1\nn is 2', 'text/plain; charset=utf-8'])
  assert.deepEqual(two({ body, format: 'text' }, false)[0], '{"n":1}')
  assert.deepEqual(two({ format: 'form' }, false), ['type=track&n=1&of[a][]=1&of[a][]=x+y', 'application/x-www-form-urlencoded'])
})

test('a form writes keys and values so that they cannot be mistaken for others', () => {
  const message = { 'a&b=c': 'd&e=f%', list: [{ x: 1 }, [2]], no: null, yes: true, lone: '\ud800' }
  const { text } = shape({ format: 'form' }, message)
  assert.equal(text, 'a%26b%3Dc=d%26e%3Df%25&list[][x]=1&list[][]=2&no=&yes=true&lone=%EF%BF%BD')
})

test('signatures cover the body that is sent', () => {
  const sharedSecret = 'secret'
  const signingSecrets = ['whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX']
  const { id, atMs } = about
  for (const format of ['text', 'ndjson', 'form', { wrap: 'batch' }] as const) {
    const prepared = [shape({ format }, ORDER), shape({ format }, ORDER)]
    const { headers, body } = webhookRequest(destination({ format }, { sharedSecret, signingSecrets }), prepared, true, about)
    const standard = standardWebhookSigner(signingSecrets)({ id, timestampSeconds: atMs / 1_000, body })
    const expected = ['X-Signature', signMessage(body, sharedSecret), ...Object.entries(standard).flat()]
    assert.deepEqual(headers.slice(-expected.length), expected, JSON.stringify(format))
  }
})

test('a header of `request` replaces the configured one, and is left out if its value is missing', () => {
  const request = { headers: { 'x-tenant': 'of {{context.tenant}}', 'X-Fixed': 'yes' } }
  const send = (context: JsonObject): string[] => {
    const to = destination(request, { headers: { 'X-Tenant': 'default', 'X-Other': 'o' } })
    return webhookRequest(to, [shape(request, { ...ORDER, context })], false, about).headers.slice(4)
  }
  assert.deepEqual(send({ tenant: 'a' }), ['X-Other', 'o', 'x-tenant', 'of a', 'X-Fixed', 'yes', 'X-Attempt', '1'])
  assert.deepEqual(send({}), ['X-Tenant', 'default', 'X-Other', 'o', 'X-Fixed', 'yes', 'X-Attempt', '1'])
  assert.deepEqual(send({ tenant: null }), send({}))
  assert.equal(send({ tenant: false })[3], 'of false')
})

test('a header value that is not allowed fails, whatever it is', () => {
  const request = { headers: { 'X-Tenant': '{{context.tenant}}' } }
  for (const tenant of ['a\r\nX-Evil: 1', 'a\nb', 'a\0b', 'é', '\u{1f600}', '\ud800', 'a\x7f', 'x'.repeat(4_097)]) {
    assert.match(failure(request, { context: { tenant } }), /^request\.headers\.X-Tenant /, JSON.stringify(tenant))
  }
  for (const tenant of [{}, [], { toString: 1 }])
    assert.match(failure(request, { context: { tenant } }), /^request\.headers\.X-Tenant needs /)
  const many = { headers: Object.fromEntries(Array.from({ length: 4 }, (_, at) => [`X-${at}`, '{{a}}'])) }
  assert.match(failure(many, { a: 'x'.repeat(4_000) }), /^request\.headers have more than 12288 bytes/)
})

test('a path value is one segment, and must be a non-empty string, number or boolean', () => {
  const path = '/users/{{userId}}/x'
  const cases: [unknown, string][] = [
    ['a/b?x=1#y', 'a%2Fb%3Fx%3D1%23y'],
    ['...', '...'],
    ['a..', 'a..'],
    ['1.0', '1.0'],
    ['%41%', '%2541%25'],
    ['a\r\nb', 'a%0D%0Ab'],
    ['é\u{1f600}', '%C3%A9%F0%9F%98%80'],
    ['{{event}}', '%7B%7Bevent%7D%7D'],
    ['a.b', 'a.b'],
    [0, '0'],
    [false, 'false'],
  ]
  for (const [userId, written] of cases) assert.equal(shape({ path }, { userId, event: 'secret' }).path, `/users/${written}/x`)
  for (const userId of [undefined, null, '']) {
    assert.equal(failure({ path }, { userId }), 'request.path has no value for {{userId}} in this message.')
  }
  for (const userId of [{}, [1], '\ud800']) assert.match(failure({ path }, { userId }), /^request\.path needs /)
  assert.match(failure({ path }, { userId: 'x'.repeat(5_000) }), /^request\.path is longer/)
  assert.equal(shape({ path: '/{{Previous ID}}/{{a.0.b}}/{{ a[0].b }}' }, { 'Previous ID': 'p', a: [{ b: 1 }] }).path, '/p/1/1')
})

test('values that would give a segment . or .. fail, in every encoding and composition', () => {
  const expected = 'request.path has . or .. as a segment for this message, which would lead to another path.'
  const values = [
    '.',
    '..',
    '..?',
    '..#x',
    '..%3F',
    '%2e',
    '%2E%2e',
    '.%2e',
    '%252e%252e',
    '%25%32%65.',
    '%%32e',
    '%2%65',
    '../admin',
    'a/../../admin',
    '..\\admin',
    '%2e%2e%2fadmin',
  ]
  const ignored = ['.\t.', '\r\n..', '..\0', ' ..', '..;a=b', '%09..', '..%00', '..%3Bx', 'a%5c..', './a']
  for (const userId of [...values, ...ignored]) {
    assert.equal(failure({ path: '/users/{{userId}}/x' }, { userId }), expected, JSON.stringify(userId))
  }
  const composed = { a: '.', b: '%2e', c: '..' }
  for (const path of ['/{{a}}{{a}}', '/x/{{a}}{{b}}', '/{{b}}{{b}}/x', '/{{c}};v=1', '/x%2F{{c}}', '/{{a}}%09', '/x%5C{{c}}'])
    assert.equal(failure({ path }, composed), expected, path)
})

test('for all values and templates, a URL parser finds the segments of the template', () => {
  const piece = fc.constantFrom(
    '.',
    '..',
    '%2e',
    '%2E',
    '%25',
    '/',
    '\\',
    '%2f',
    '%5c',
    '\t',
    '\n',
    ';',
    ' ',
    'a',
    '@evil',
    '//evil',
    ':80',
    '?',
    '#',
  )
  const value = fc.oneof(
    fc.string({ minLength: 1, unit: 'binary' }),
    fc.array(piece, { minLength: 1, maxLength: 5 }).map((parts) => parts.join('')),
  )
  const segment = fc.constantFrom('{{a}}', '{{a}}{{b}}', 'x{{a}}', '{{a}}.x', '{{b}}-{{a}}', 'users', '{{a}};{{b}}')
  const target = fc.constantFrom('https://host.example', 'https://host.example/', 'https://host.example/base?key=1')
  fc.assert(
    fc.property(fc.array(segment, { minLength: 1, maxLength: 4 }), value, value, target, (segments, a, b, url) => {
      const template = `/${segments.join('/')}`
      let path: string
      try {
        path = shape({ path: template }, { a, b }).path
      } catch (error) {
        assert.ok(error instanceof MappingFailed, String(error))
        return
      }
      const { origin, pathname, search } = new URL(url)
      const base = pathname.replace(/\/$/, '')
      const parsed = new URL(origin + base + path + search)
      assert.equal(parsed.origin, origin)
      assert.equal(parsed.search, search)
      assert.equal(parsed.pathname.split('/').length, (base + template).split('/').length)
      assert.ok(!decodeURIComponent(path).split(/[/\\]/).includes('..'))
    }),
    { numRuns: 500 },
  )
})

test('a value is never read as a template', () => {
  const message = { a: '{{b}}', b: 'secret', c: '{{{b}}}', d: '$& $1' }
  for (const template of ['{{a}}', '{{{a}}}', '{{ a }}', '{{{ a }}}']) {
    assert.equal(shape({ body: { '@template': template }, format: 'text' }, message).text, '{{b}}')
  }
  assert.equal(shape({ body: { '@template': '{{c}}{{d}}' }, format: 'text' }, message).text, '{{{b}}}$& $1')
  assert.deepEqual(shape({ headers: { 'X-A': '{{a}}{{c}}' } }, message).headers, ['X-A', '{{b}}{{{b}}}'])
})

test('no path reaches a prototype', () => {
  const paths = [
    '__proto__',
    'constructor',
    'constructor.prototype',
    'toString',
    'a.constructor.constructor',
    'a.trim',
    'list.map',
    'n.toFixed',
  ]
  const message = { a: 'text', n: 1, list: [1], nested: {} }
  for (const path of paths) {
    const body = { read: { '@path': `$.${path}` }, text: { '@template': `[{{${path}}}]` }, all: { '@arrayPath': [`$.${path}`, { x: 1 }] } }
    assert.equal(shape({ body }, message).text, '{"text":"[]"}', path)
    assert.match(failure({ path: `/{{${path}}}` }, message), /has no value/)
    assert.deepEqual(shape({ headers: { 'X-A': `{{${path}}}` } }, message).headers, [])
  }
})

test('keys of a message that name a prototype change nothing outside of it', () => {
  const message = JSON.parse(
    '{"__proto__":{"polluted":1},"properties":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}',
  )
  const bodies = [
    { '@path': '$.' },
    { '@path': '$.properties' },
    { '@flatten': { separator: '.', value: { '@path': '$.' } } },
    { '@merge': { direction: 'left', objects: [{ '@path': '$.' }, { '@path': '$.properties' }] } },
    { '@json': { mode: 'decode', value: { '@json': { mode: 'encode', value: { '@path': '$.' } } } } },
  ]
  for (const body of bodies) for (const format of ['json', 'form'] as const) shape({ body, format }, message as JsonObject)
  shape({ format: 'form' }, message as JsonObject)
  assert.equal(({} as { polluted?: number }).polluted, undefined)
  assert.equal(shape({ body: { '@path': '$.properties.constructor.prototype.polluted' } }, message as JsonObject).text, '1')
})

test('a mapping cannot make a message arbitrarily large, nor take long', () => {
  const wide = {
    list: Array.from({ length: 15_000 }, () => 1),
    text: 'a'.repeat(30_000),
    keys: Object.fromEntries(Array.from({ length: 4_000 }, (_, at) => [`k${at}`, 1])),
  }
  const shapeOf = (count: number): JsonObject => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, at]))
  const startedAtMs = performance.now()
  assert.match(failure({ body: { '@arrayPath': ['$.list', shapeOf(1_000)] } }, wide), /results in more than 1000000 characters/)
  const copies = Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`k${at}`, { '@path': '$.' }]))
  assert.match(failure({ body: copies }, wide), /results in more than/)
  assert.match(failure({ body: { a: { b: [{ '@path': '$.type' }, copies] } } }, wide), /^request\.body results in more than/)
  const grows = { '@replace': { pattern: 'a', replacement: '0123456789', value: { '@path': '$.text' } } }
  assert.equal(shape({ body: { x: grows, y: grows } }, wide).text.length, 600_015)
  assert.match(failure({ body: { w: grows, x: grows, y: grows, z: grows } }, wide), /^request\.body results in more than/)
  const { text } = shape({ body: { '@flatten': { separator: '.', value: { '@path': '$.keys' } } } }, wide)
  assert.equal(Object.keys(JSON.parse(text) as object).length, 4_000)
  assert.ok(performance.now() - startedAtMs < 20_000)
})

test('deep nesting fails with a sentence', () => {
  let deep: unknown = 1
  for (let level = 0; level < 100_000; level++) deep = [deep]
  for (const body of [null, { '@path': '$.deep' }, { x: { '@flatten': { separator: '.', value: { '@path': '$.deep' } } } }]) {
    assert.match(failure({ body }, { deep }), /^request\.body(\.x)? cannot be evaluated: the value is nested too deeply or too long\.$/)
  }
  const bomb = `${'['.repeat(16_000)}${']'.repeat(16_000)}`
  assert.match(
    failure({ body: { a: { '@json': { mode: 'decode', value: { '@path': '$.bomb' } } } } }, { bomb }),
    /^request\.body\.a cannot be evaluated/,
  )
})

test('a failure names the place', () => {
  assert.equal(failure({ body: { '@path': '$.nope' } }, ORDER), 'request.body has no result for this message.')
  assert.equal(
    failure({ body: { '@path': '$.event' }, format: 'form' }, ORDER),
    'request.body must result in an object for this message, because the format is form.',
  )
  const hostile = { properties: { toString: 1 } }
  assert.match(
    failure({ body: { a: 1, b: [1, { text: { '@template': '{{properties}}' } }] } }, hostile),
    /^request\.body\.b\[1\]\.text cannot be evaluated/,
  )
  assert.match(failure({ body: { '@path': '$.list' }, format: 'ndjson' }, { list: [] }), /^request\.body results in an empty array/)
})

test('a template with many placeholders is not filled to its end if the text gets too long', () => {
  let reads = 0
  const message: JsonObject = {
    type: 'track',
    get userId() {
      reads++
      return 'u'.repeat(30_000)
    },
  }
  const template = '{{userId}}'.repeat(200)
  assert.match(failure({ path: `/${template}` }, message), /^request\.path is longer than 4096 characters/)
  assert.match(failure({ headers: { 'X-User': template } }, message), /^request\.headers\.X-User is longer than 4096 characters/)
  // The body of both, and one value of each template.
  assert.ok(reads <= 4, `${reads} reads`)
})
