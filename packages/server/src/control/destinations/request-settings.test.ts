// The setting `request` of a destination, through the control API: what is accepted, what is refused and where, and what is hidden.
// oxlint-disable unicorn/no-thenable -- `then` is an option of @if

import assert from 'node:assert/strict'
import test from 'node:test'
import { startControl } from '../fixtures/start-control.ts'

const HOOK = { name: 'Hook', urls: ['https://example.com/hook'] }
const DEFAULTS = { method: 'POST', path: '', headers: {}, body: null, format: 'json' }

test('a request is set with defaults, replaced as a whole, kept by other changes, and removed', async (t) => {
  const { call } = await startControl(t)
  const request = { path: '/users/{{userId}}', body: { id: { '@path': '$.userId' } } }
  const { body } = await call('POST', '/api/destinations', { ...HOOK, request })
  assert.deepEqual(body.request, { ...DEFAULTS, ...request })
  const path = `/api/destinations/${body.id}`
  assert.deepEqual((await call('PATCH', path, { name: 'Renamed' })).body.request, body.request)
  assert.deepEqual((await call('PATCH', path, { request: { format: { wrap: 'events' } } })).body.request, {
    ...DEFAULTS,
    format: { wrap: 'events' },
  })
  assert.equal((await call('PATCH', path, { request: null })).body.request, null)
  assert.equal((await call('GET', path)).body.request, null)
})

const taken: [title: string, request: object][] = [
  ['nothing', {}],
  ['every method', { method: 'DELETE' }],
  ['a path with several placeholders', { path: "/v1/{{a.b}}/x-{{ c[0] }}/~user!$&'()*+,;=:@%20" }],
  ['an array as the mapping', { body: [{ create: {} }, { '@path': '$.' }], format: 'ndjson' }],
  ['a literal', { body: { '@literal': 'x' } }],
  ['a template with three braces', { body: { text: { '@template': '{{{event}}}' } } }],
  ['what Segment’s editor adds', { body: { a: { '@path': '$.a', _metadata: { label: 'A' } } } }],
  ['an @if with blank', { body: { a: { '@if': { blank: { '@path': '$.a' }, then: 1 } } } }],
  ['a second pattern', { body: { a: { '@replace': { pattern: 'a', replacement: 'b', pattern2: 'c', value: { '@path': '$.a' } } } } }],
]

test('accepts', async (t) => {
  const { call } = await startControl(t)
  for (const [title, request] of taken) {
    await t.test(title, async () => {
      const { status, text } = await call('POST', '/api/destinations', { ...HOOK, request })
      assert.equal(status, 201, text)
    })
  }
})

const nested = (levels: number): object => (levels === 0 ? {} : { a: nested(levels - 1) })
const path = (text: string): object => ({ path: text })
const header = (value: unknown): object => ({ headers: { 'X-A': value } })
const body = (mapping: unknown): object => ({ body: mapping })
const encodings = (levels: number): object =>
  levels === 0 ? { '@path': '$.a' } : { '@json': { mode: 'encode', value: encodings(levels - 1) } }

const refused: [title: string, request: unknown, field: string, code?: string][] = [
  ['a list', [], 'request'],
  ['a text', 'x', 'request'],
  ['an unknown field', { url: 'x' }, 'request.url', 'unknown_field'],
  ['GET', { method: 'GET' }, 'request.method'],
  ['a path without a slash', path('users'), 'request.path'],
  ['a path with a query', path('/a?b={{c}}'), 'request.path'],
  ['a path with a fragment', path('/a#b'), 'request.path'],
  ['a path with a space', path('/a b'), 'request.path'],
  ['a path with a line break', path('/a\r\nb'), 'request.path'],
  ['a path beyond ASCII', path('/é'), 'request.path'],
  ['a path with a lone %', path('/a%zz'), 'request.path'],
  ['a path with a backslash', path('/a\\b'), 'request.path'],
  ['a path with a dot segment', path('/a/../b'), 'request.path'],
  ['a path with an encoded dot segment', path('/a/.%2E/b'), 'request.path'],
  ['a path with a dot segment after an encoded slash', path('/a%2F../b'), 'request.path'],
  ['a path with a dot segment that is encoded twice', path('/a/%252e%252E/b'), 'request.path'],
  ['a path whose dot segment a value completes', path('/a/.{{b}}/c'), 'request.path'],
  ['an unclosed placeholder', path('/{{a'), 'request.path'],
  ['an empty placeholder', path('/{{ }}'), 'request.path'],
  ['three braces in a path', path('/{{{a}}}'), 'request.path'],
  ['a path over 2,048 characters', path(`/${'a'.repeat(2_048)}`), 'request.path'],
  ['a reserved header', { headers: { 'Content-Type': 'text/xml' } }, 'request.headers.Content-Type'],
  ['a header with a line break', header('a\r\nX-B: c'), 'request.headers.X-A'],
  ['a header with NUL', header('a\0'), 'request.headers.X-A'],
  ['a header beyond ASCII', header('é'), 'request.headers.X-A'],
  ['a header with an unclosed placeholder', header('{{a'), 'request.headers.X-A'],
  ['the placeholder for a hidden value', header('(hidden)'), 'request.headers.X-A'],
  ['a header that is no text', header(1), 'request.headers.X-A'],
  ['a header twice', { headers: { 'X-A': 'a', 'x-a': 'b' } }, 'request.headers'],
  ['a prototype as a header', JSON.parse('{"headers":{"__proto__":"a"}}'), 'request.headers.__proto__', 'unknown_field'],
  ['an unknown format', { format: 'xml' }, 'request.format'],
  ['no format', { format: null }, 'request.format'],
  ['a wrap without a key', { format: { wrap: '' } }, 'request.format.wrap'],
  ['another key beside wrap', { format: { wrap: 'a', x: 1 } }, 'request.format.x', 'unknown_field'],
  ['a mapping that is a text', body('$.userId'), 'request.body'],
  ['an unknown directive', body({ a: { '@foo': 1 } }), 'request.body.a.@foo'],
  ['@liquid', body({ a: { '@liquid': '{{ a }}' } }), 'request.body.a.@liquid'],
  ['@transform', body({ a: { '@transform': {} } }), 'request.body.a.@transform'],
  ['a directive of a prototype', JSON.parse('{"body":{"a":{"@constructor":1}}}'), 'request.body.a.@constructor'],
  ['two directives', body({ a: { '@path': '$.a', '@template': 'b' } }), 'request.body.a.@template'],
  ['a key beside a directive', body({ a: { '@path': '$.a', b: 1 } }), 'request.body.a.b'],
  ['a wrong directive in a list', body({ a: [{}, { '@nope': 1 }] }), 'request.body.a[1].@nope'],
  ['a wrong directive in a literal', body({ a: { '@literal': { b: { '@nope': 1 } } } }), 'request.body.a.@literal.b.@nope'],
  ['a path that the message chooses', body({ a: { '@path': { '@path': '$.b' } } }), 'request.body.a.@path'],
  ['a path that is $', body({ a: { '@path': '$' } }), 'request.body.a.@path'],
  ['a template that the message chooses', body({ a: { '@template': { '@path': '$.b' } } }), 'request.body.a.@template'],
  ['an unclosed template', body({ a: { '@template': '{{b' } }), 'request.body.a.@template'],
  ['four braces', body({ a: { '@template': '{{{{b}}}}' } }), 'request.body.a.@template'],
  ['an @if without a condition', body({ a: { '@if': { then: 1 } } }), 'request.body.a.@if'],
  ['an unknown option', body({ a: { '@if': { exists: 'a', when: 1 } } }), 'request.body.a.@if.when'],
  ['a wrong directive in @if', body({ a: { '@if': { blank: { '@nope': 1 } } } }), 'request.body.a.@if.blank.@nope'],
  ['an unknown case', body({ a: { '@case': { operator: 'title', value: 'a' } } }), 'request.body.a.@case.operator'],
  ['a case of a number', body({ a: { '@case': { operator: 'upper', value: 1 } } }), 'request.body.a.@case.value'],
  ['a long pattern', body({ a: { '@replace': { pattern: 'a'.repeat(11), value: 'b' } } }), 'request.body.a.@replace.pattern'],
  [
    'a long second pattern',
    body({ a: { '@replace': { pattern: 'a', pattern2: 'a'.repeat(11), value: 'b' } } }),
    'request.body.a.@replace.pattern2',
  ],
  [
    'a replacement that squares the value',
    body({ a: { '@replace': { pattern: 'a', replacement: "$'", value: 'b' } } }),
    'request.body.a.@replace.replacement',
  ],
  [
    'replacements that multiply',
    body({ a: { '@replace': { pattern: 'a', replacement: '0123456789', pattern2: '0', replacement2: '0123456789', value: 'b' } } }),
    'request.body.a.@replace',
  ],
  ['encodings that multiply', body(encodings(6)), 'request.body.@json.value.@json'],
  ['an @arrayPath that is no list', body({ a: { '@arrayPath': '$.a' } }), 'request.body.a.@arrayPath'],
  [
    'an @arrayPath of decoded JSON',
    body({ a: { '@arrayPath': [{ '@json': { mode: 'decode', value: 'a' } }, {}] } }),
    'request.body.a.@arrayPath[0]',
  ],
  ['a wrong shape', body({ a: { '@arrayPath': ['$.a', { b: { '@nope': 1 } }] } }), 'request.body.a.@arrayPath[1].b.@nope'],
  ['@json without a mode', body({ a: { '@json': { value: 'a' } } }), 'request.body.a.@json.mode'],
  ['@flatten without a separator', body({ a: { '@flatten': { value: {} } } }), 'request.body.a.@flatten.separator'],
  ['@merge of texts', body({ a: { '@merge': { direction: 'left', objects: ['a'] } } }), 'request.body.a.@merge.objects[0]'],
  ['@merge without a direction', body({ a: { '@merge': { objects: [] } } }), 'request.body.a.@merge.direction'],
  ['a prototype as a key', JSON.parse('{"body":{"a":{"__proto__":{"b":1}}}}'), 'request.body.a.__proto__'],
  ['an unpaired surrogate', body({ a: '\ud800' }), 'request.body.a'],
  ['a mapping over 64 KB', body({ a: 'x'.repeat(65_536) }), 'request.body'],
]

test('refuses, with the field', async (t) => {
  const { call } = await startControl(t)
  for (const [title, request, field, code = 'invalid_field'] of refused) {
    await t.test(title, async () => {
      const { status, body, text } = await call('POST', '/api/destinations', { ...HOOK, request })
      assert.deepEqual([status, body.code, body.field], [400, code, field], text)
      assert.ok(body.message.startsWith(field), body.message)
    })
  }
  const { body } = await call('POST', '/api/destinations', { ...HOOK, request: { body: nested(40) } })
  assert.match(body.message, /^request\.body(\.a)+ is nested too deeply; the limit is 32 levels\.$/)
})

test('a batch has one path and one set of headers', async (t) => {
  const { call } = await startControl(t)
  const batch = { size: 10 }
  for (const [request, field] of [
    [{ path: '/{{userId}}' }, 'request.path'],
    [{ headers: { 'X-A': 'a', 'X-B': 'b {{c}}' } }, 'request.headers.X-B'],
    [{ format: 'form' }, 'request.format'],
  ] as const) {
    const created = await call('POST', '/api/destinations', { ...HOOK, batch, request })
    assert.deepEqual([created.status, created.body.field], [400, field])
    for (const [first, second] of [
      [{ batch }, { request }],
      [{ request }, { batch }],
    ]) {
      const { body } = await call('POST', '/api/destinations', { ...HOOK, ...first })
      const changed = await call('PATCH', `/api/destinations/${body.id}`, second)
      assert.deepEqual([changed.status, changed.body.field], [400, field])
      assert.equal((await call('PATCH', `/api/destinations/${body.id}`, { batch: { size: 1 }, request })).status, 200)
    }
    const checked = await call('POST', '/api/configuration/check', { destinations: [{ settings: { ...HOOK, batch, request } }] })
    assert.equal(checked.body.problems[0].field, field)
  }
  const constant = { path: '/bulk', headers: { 'X-A': 'a' }, format: 'ndjson' }
  assert.equal((await call('POST', '/api/destinations', { ...HOOK, batch, request: constant })).status, 201)
})

test('header values of a request are hidden from viewers and the audit log, which tells that they changed', async (t) => {
  const { call } = await startControl(t)
  const request = { headers: { 'X-Api-Key': 'SECRET-1', 'X-User': 'SECRET-2 {{userId}}' } }
  const { body } = await call('POST', '/api/destinations', { ...HOOK, request })
  assert.deepEqual(body.request.headers, request.headers)
  const { token } = (await call('POST', '/api/tokens', { name: 'viewer', role: 'viewer' })).body
  const seen = await call('GET', `/api/destinations/${body.id}`, undefined, { token })
  assert.deepEqual(seen.body.request, { ...DEFAULTS, headers: { 'X-Api-Key': '(hidden)', 'X-User': '(hidden)' } })
  await call('PATCH', `/api/destinations/${body.id}`, { request: { headers: { ...request.headers, 'X-Api-Key': 'SECRET-3' } } })
  const audit = await call('GET', '/api/audit')
  assert.doesNotMatch(audit.text, /SECRET/)
  assert.deepEqual(audit.body.data[0].after.changedSecrets, ['request.headers.X-Api-Key'])
})
