// Bad input for every route, generated from the routes themselves, so new routes are covered automatically. The fixture checks each response
// against the declaration of its route; the tests here check that it is not 500, and that it has the expected status and field.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import type { JsonSchema } from '../api/schema.ts'
import { controlRoutes } from './control.ts'
import { type Answer, type Fixture, startControl } from './fixtures/start-control.ts'
import { EXAMPLES } from './openapi/examples.ts'
import { encodeCursor } from './routes/query.ts'
import type { ControlParts, Route } from './routes/route.ts'

/** Without the steps of a login in a browser, which answer with pages and redirects and have tests of attacks: people/attacks.test.ts. */
const ROUTES = controlRoutes({} as ControlParts).filter(({ path }) => !/^\/login\/(oidc|cli)/.test(path))
const WITH_BODY = ROUTES.filter(({ body }) => body !== undefined)
const LISTS = ROUTES.filter(({ query }) => 'cursor' in propertiesOf(query))
const OF_ONE = ROUTES.filter(({ path }) => path.includes(':id'))
/** Without the rate limit for wrong tokens, which has its own tests. */
const GUESSES = new Set(['/login'])

interface Ground extends Fixture {
  /** One resource of each kind that has an id. */
  ids: Record<string, string>
  bodyOf: (route: Route) => unknown
  pathOf: (route: Route, params?: Record<string, string>) => string
}

async function ground(t: Pick<TestContext, 'after'>): Promise<Ground> {
  const fixture = await startControl(t)
  const made = async (path: string, body: object): Promise<string> => ((await fixture.call('POST', path, body)).body as { id: string }).id
  const source = await made('/api/sources', { name: 'a' })
  const ids = {
    sources: source,
    destinations: await made('/api/destinations', { name: 'b', sourceIds: [source], urls: ['https://example.com/'] }),
    deletions: await made('/api/deletions', { userIds: ['u'] }),
    tokens: await made('/api/tokens', { name: 'c' }),
    'oauth-apps': await made('/api/oauth-apps', { name: 'd' }),
  }
  return {
    ...fixture,
    ids,
    bodyOf: ({ method, path }) =>
      JSON.parse(
        JSON.stringify(EXAMPLES[`${method} ${path}`] ?? {})
          .replaceAll('SOURCE_ID', ids.sources)
          .replaceAll('DESTINATION_ID', ids.destinations),
      ),
    pathOf: ({ path }, params = {}) => `/api${path.replaceAll(/:(\w+)/g, (_, name: string) => params[name] ?? 'x')}`,
  }
}

const ends: (() => Promise<void>)[] = []
let shared: Promise<Ground> | undefined
/** For tests whose requests change nothing. */
const sharedGround = (): Promise<Ground> => (shared ??= ground({ after: (end) => void ends.push(end as () => Promise<void>) }))
after(async () => {
  for (const end of ends) await end()
})

function propertiesOf(schema: { toJsonSchema: () => JsonSchema } | undefined): Record<string, JsonSchema> {
  return (schema?.toJsonSchema()['properties'] ?? {}) as Record<string, JsonSchema>
}

function isRefused({ status, body }: Answer, code: string | RegExp, field: string | RegExp, where: string): void {
  assert.equal(status, 400, `${where}: ${JSON.stringify(body)}`)
  const [gotCode, gotField] = [String(body.code), String(body.field)]
  assert.ok(typeof code === 'string' ? gotCode === code : code.test(gotCode), `${where}: ${gotCode}`)
  assert.ok(typeof field === 'string' ? gotField === field : field.test(gotField), `${where}: ${gotField}`)
}

test('an unknown query parameter is rejected with its name on every route', async () => {
  const { call, pathOf, bodyOf } = await sharedGround()
  for (const route of ROUTES) {
    for (const name of ['surprise', '__proto__', 'constructor', 'limit%5B%5D']) {
      const body = route.body === undefined ? undefined : bodyOf(route)
      const answer = await call(route.method, `${pathOf(route)}?${name}=1`, body)
      isRefused(answer, 'unknown_field', decodeURIComponent(name), `${route.method} ${route.path}`)
    }
  }
})

test('an unknown field of a body is rejected with its name on every route with a body', async () => {
  const { call, pathOf, bodyOf } = await sharedGround()
  for (const route of WITH_BODY) {
    const where = `${route.method} ${route.path}`
    const good = bodyOf(route) as object
    isRefused(await call(route.method, pathOf(route), { ...good, surprise: 1 }), 'unknown_field', 'surprise', where)
    for (const name of ['__proto__', 'constructor', 'toString']) {
      const raw = `{"${name}":{"polluted":true},${JSON.stringify(good).slice(1)}`.replace(',}', '}')
      isRefused(await call(route.method, pathOf(route), undefined, { raw }), 'unknown_field', name, where)
    }
  }
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined)
})

test('a field of the wrong type is rejected with its name, for every field', async () => {
  const { call, pathOf, bodyOf } = await sharedGround()
  const values: [type: string, value: unknown][] = [
    ['string', 'x'],
    ['number', 1.5],
    ['boolean', true],
    ['null', null],
    ['array', [[[]]]],
    ['object', { a: { b: 1 } }],
  ]
  let tried = 0
  for (const route of WITH_BODY) {
    for (const [name, schema] of Object.entries(propertiesOf(route.body))) {
      const alternatives = [schema, ...((schema['oneOf'] ?? []) as JsonSchema[])]
      const types = alternatives.flatMap((each) => each['type'] ?? []) as string[]
      for (const [type, value] of values) {
        if (types.includes(type) || (type === 'number' && types.includes('integer') && Number.isInteger(value))) continue
        const answer = await call(route.method, pathOf(route), { ...(bodyOf(route) as object), [name]: value })
        isRefused(answer, /^(invalid|unknown)_field$/, new RegExp(`^${name}\\b`), `${route.method} ${route.path} ${name}: ${type}`)
        tried += 1
      }
    }
  }
  assert.ok(tried > 100, `only ${tried} were tried`)
})

test('the error for a missing required field contains its name', async () => {
  const { call, pathOf, bodyOf } = await sharedGround()
  for (const route of WITH_BODY) {
    for (const name of (route.body?.toJsonSchema()['required'] ?? []) as string[]) {
      const { [name]: _, ...rest } = bodyOf(route) as Record<string, unknown>
      isRefused(await call(route.method, pathOf(route), rest), 'invalid_field', name, `${route.method} ${route.path}`)
    }
  }
})

test('the id of another kind of resource is not found, and neither are strange ids', async () => {
  const { call, pathOf, bodyOf, ids } = await sharedGround()
  const odd = [
    '__proto__',
    'constructor',
    'toString',
    '%00',
    'a%00b',
    '..',
    '%2e%2e',
    '%2F',
    'a%2Fb',
    "'%20OR%201=1--",
    '%F0%9F%92%A9',
    '-1',
    '0-0',
    // The limits of numbers of 53, 63 and 64 bits.
    '9007199254740991-0',
    '9007199254740993-0',
    '9223372036854775807-0',
    '9223372036854775807-9999',
    '9223372036854775808-0',
    '18446744073709551615-0',
    '1800000000000000000-2147483648',
  ]
  for (const route of OF_ONE) {
    const kind = route.path.split('/')[1] as string
    const others = Object.entries(ids).filter(([name]) => name !== kind)
    for (const id of [...others.map(([, other]) => other), ...odd.filter((each) => each !== '..' && each !== '%2e%2e'), 'x'.repeat(900)]) {
      const body = route.body === undefined ? undefined : bodyOf(route)
      const answer = await call(route.method, pathOf(route, { id }), body)
      const where = `${route.method} ${route.path} ${id.slice(0, 50)}: ${JSON.stringify(answer.body)}`
      // A route whose feature is off in this process may return that error instead.
      assert.ok(answer.status === 404 || answer.body.code === 'backup_unsupported', where)
    }
  }
})

test('a limit that is too large, or not a number, is rejected on every list', async () => {
  const { call, pathOf } = await sharedGround()
  for (const route of LISTS) {
    for (const limit of ['100000', '1001', '0', '-1', '1.5', 'abc', '', '1e3', '%001', '9'.repeat(400)]) {
      isRefused(await call('GET', `${pathOf(route)}?limit=${limit}`), 'invalid_field', 'limit', `${route.path} ${limit}`)
    }
    isRefused(await call('GET', `${pathOf(route)}?limit=1&limit=2`), 'invalid_field', 'limit', route.path)
  }
})

test('a cursor that the list did not return is rejected on every list', async (t) => {
  const { call, pathOf, ids } = await ground(t)
  const { body } = await call('GET', '/api/sources?limit=1')
  assert.equal(body.next, null)
  await call('POST', '/api/sources', { name: 'another' })
  const foreign = ((await call('GET', '/api/sources?limit=1')).body as { next: string }).next
  for (const route of LISTS) {
    const id = ids[route.path.split('/')[1] as string] ?? 'x'
    for (const cursor of [
      '',
      'x',
      'AAAAAAAAAAAA',
      '%00',
      'null',
      '__proto__',
      'A'.repeat(5_000),
      ...(route.path === '/sources' ? [] : [foreign]),
    ]) {
      const answer = await call('GET', `${pathOf(route, { id })}?cursor=${cursor}`)
      isRefused(answer, 'invalid_cursor', 'cursor', `${route.path} ${cursor.slice(0, 20)}`)
    }
  }
})

test('a made-up cursor with a valid checksum is rejected or returns a page', async () => {
  const { call, ids } = await sharedGround()
  const numbers = [0, 1, -1, 1.5, 2 ** 31, 2 ** 53 - 1, 2 ** 53, 1e300, null, true]
  const texts = [
    '',
    'x',
    '0',
    '1',
    "1'",
    'a\0b',
    '\ud800',
    '1000000000000000000',
    '9223372036854775807',
    '9223372036854775808',
    '-1000000000000000000',
  ]
  // Each list, with the content of its cursors: a letter and a number of values.
  const lists: [path: string, list: string, letter: string, values: number][] = [
    ['messages?', 'messages', 'm', 2],
    ['deliveries?state=pending&', 'deliveries', 'p', 5],
    ['deliveries?state=delivered&', 'deliveries', 's', 2],
    ['deliveries?state=failed&', 'deliveries', 'f', 1],
    ['deletions?', 'deletions', 'd', 1],
    [`deletions/${ids['deletions']}/targets?`, `targets of ${ids['deletions']}`, 't', 3],
    ['suppressions?', 'suppressions', 'u', 2],
    ['audit?', 'audit', 'a', 1],
    ['replays?', 'replays', 'r', 1],
  ]
  let pages = 0
  for (const [path, list, letter, count] of lists) {
    const values = fc.array(fc.constantFrom<unknown>(...numbers, ...texts, ['x'.repeat(3_000)]), { minLength: count, maxLength: count })
    await fc.assert(
      fc.asyncProperty(values, async (place) => {
        const { status, body } = await call('GET', `/api/${path}cursor=${encodeCursor(list, JSON.stringify([letter, ...place]))}`)
        assert.ok(status === 200 || body.code === 'invalid_cursor', `${path} ${JSON.stringify(place)}: ${JSON.stringify(body)}`)
        if (status === 200) pages += 1
      }),
      { numRuns: 30 },
    )
  }
  assert.ok(pages > 0, 'some of them are valid positions')
})

test('times outside of the valid range find nothing, or are rejected with the field', async () => {
  const { call, pathOf, ids } = await sharedGround()
  let tried = 0
  for (const route of ROUTES.filter(({ method, stream }) => method === 'GET' && stream === undefined)) {
    for (const [name, schema] of Object.entries(propertiesOf(route.query))) {
      if (schema['format'] !== 'date-time') continue
      for (const time of [
        '0000-01-01',
        '0001-01-01T00:00:00Z',
        '1969-12-31T23:59:59.999Z',
        '2200-01-01T00:00:00Z',
        '9999-12-31T23:59:59.999Z',
      ]) {
        const { status, body } = await call(
          'GET',
          `${pathOf(route, { id: ids[route.path.split('/')[1] as string] ?? 'x' })}?${name}=${time}`,
        )
        assert.ok(status === 200 || (status === 400 && body.field !== undefined), `${route.path}?${name}=${time}: ${JSON.stringify(body)}`)
        tried += 1
      }
    }
  }
  assert.ok(tried > 20, `only ${tried} were tried`)
})

test('a query parameter of the wrong type, or given twice, is rejected with its name', async () => {
  const { call, pathOf, ids } = await sharedGround()
  for (const route of ROUTES) {
    const properties = propertiesOf(route.query)
    const exampleOf = (name: string): string => (properties[name]?.['enum'] as string[] | undefined)?.[0] ?? 'x'
    const required = ((route.query?.toJsonSchema()['required'] ?? []) as string[]).map((name) => `${name}=${exampleOf(name)}`)
    const base = `${pathOf(route, { id: ids[route.path.split('/')[1] as string] ?? 'x' })}?`
    for (const [name, schema] of Object.entries(properties)) {
      const others = required.filter((pair) => !pair.startsWith(`${name}=`))
      const where = `${route.method} ${route.path} ${name}`
      isRefused(await call(route.method, base + [...others, `${name}=a`, `${name}=b`].join('&')), 'invalid_field', name, where)
      const isText = schema['type'] === 'string' && schema['enum'] === undefined && schema['format'] !== 'date-time'
      if (isText) continue
      for (const value of ['banana', '', '%00', '%5B%5D', 'true1', '99999999999999999999'])
        isRefused(await call(route.method, base + [...others, `${name}=${value}`].join('&')), 'invalid_field', name, `${where} ${value}`)
    }
  }
})

test('strings with NUL, unpaired surrogates, markup or great length are accepted or rejected, and never cause a failure', async (t) => {
  const { call, pathOf, bodyOf } = await ground(t)
  const texts = [
    'a\u0000b',
    '\u0000',
    '\ud800',
    'x\udfff',
    '\\u0000',
    '\u202e',
    '<script>',
    "'; DROP TABLE sources; --",
    'x'.repeat(200_000),
    // The maximum length of a message, and incompressible.
    randomBytes(24_000).toString('base64'),
    '\u0000'.repeat(30_000),
    '',
  ]
  for (const route of WITH_BODY.filter(({ path }) => !GUESSES.has(path))) {
    for (const [name, schema] of Object.entries(propertiesOf(route.body))) {
      const alternatives = [schema, ...((schema['oneOf'] ?? []) as JsonSchema[])]
      const types = alternatives.flatMap((each) => each['type'] ?? []) as string[]
      for (const text of texts) {
        const value = types.includes('array')
          ? [text]
          : types.includes('object')
            ? { [text]: text }
            : types.includes('string')
              ? text
              : undefined
        if (value === undefined) continue
        // JSON can carry unpaired surrogates only as escapes.
        const raw = JSON.stringify({ ...(bodyOf(route) as object), [name]: value })
        const { status, body } = await call(route.method, pathOf(route), undefined, { raw })
        assert.ok(status < 500, `${route.method} ${route.path} ${name} ${JSON.stringify(text.slice(0, 20))}: ${JSON.stringify(body)}`)
      }
    }
  }
})

test('no JSON body causes a failure', async (t) => {
  const { call, pathOf, bodyOf } = await ground(t)
  const targets = WITH_BODY.filter(({ path }) => !GUESSES.has(path))
  const hostile = fc.tuple(fc.nat(targets.length - 1), fc.nat(20), fc.jsonValue({ maxDepth: 4 }))
  await fc.assert(
    fc.asyncProperty(hostile, async ([which, field, value]) => {
      const route = targets[which] as Route
      const names = Object.keys(propertiesOf(route.body))
      const name = names[field % Math.max(1, names.length)] ?? 'x'
      const { status, body } = await call(route.method, pathOf(route), { ...(bodyOf(route) as object), [name]: value })
      assert.ok(status < 500, `${route.method} ${route.path}: ${JSON.stringify(body)}`)
    }),
    { numRuns: 150 },
  )
})

test('text filters accept any text and find nothing', async () => {
  const { call, pathOf } = await sharedGround()
  for (const route of ROUTES.filter(({ method, stream }) => method === 'GET' && stream === undefined)) {
    for (const [name, schema] of Object.entries(propertiesOf(route.query))) {
      if (schema['type'] !== 'string' || schema['enum'] !== undefined || schema['format'] !== undefined || name === 'cursor') continue
      for (const value of ['%00', 'a%00b', '%F0%9F%92%A9', '%25', "'", '%ED%A0%80', 'x'.repeat(8_000)]) {
        const { status, body } = await call('GET', `${pathOf(route)}?${name}=${value}`)
        assert.ok(
          status === 200 || status === 400 || status === 404 || body.code === 'not_installed',
          `${route.path}?${name}=${value.slice(0, 20)}: ${JSON.stringify(body)}`,
        )
      }
    }
  }
})

test('a body that is not JSON, or not an object, is rejected on every route with a body', async () => {
  const { call, pathOf } = await sharedGround()
  const deep = `{"name":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
  for (const route of WITH_BODY) {
    const where = `${route.method} ${route.path}`
    for (const raw of ['{', 'name=x', '\u0000', '{"a":1}{', new Uint8Array([0xff, 0xfe])]) {
      const { status, body } = await call(route.method, pathOf(route), undefined, { raw })
      assert.deepEqual([status, body.code], [400, 'invalid_json'], where)
    }
    for (const raw of ['[]', 'null', '"x"', '1', 'true']) {
      const { status, body } = await call(route.method, pathOf(route), undefined, { raw })
      assert.deepEqual([status, body.code], [400, 'invalid_request'], where)
    }
    if (GUESSES.has(route.path)) continue
    const { status, body } = await call(route.method, pathOf(route), undefined, { raw: deep })
    assert.deepEqual([status, body.code], [400, 'invalid_request'], where)
  }
})

test('a body that is too large, or compressed, is rejected on every route that is not a read', async () => {
  const { call, pathOf } = await sharedGround()
  const large = JSON.stringify({ name: 'x'.repeat(1024 * 1024) })
  for (const route of ROUTES.filter(({ method }) => method !== 'GET')) {
    const where = `${route.method} ${route.path}`
    const { status, body } = await call(route.method, pathOf(route), undefined, { raw: large })
    assert.deepEqual([status, body.code], [400, 'body_too_large'], where)
    for (const encoding of ['gzip', 'br', 'zstd', 'nonsense']) {
      const packed = await call(route.method, pathOf(route), undefined, { raw: '{}', headers: { 'content-encoding': encoding } })
      assert.deepEqual([packed.status, packed.body.code], [415, 'unsupported_encoding'], where)
    }
  }
})

function isTakenFor({ path }: Route, asked: string): boolean {
  const pattern = new RegExp(`^/api${path.replaceAll(/:\w+/g, '[^/]+')}$`)
  return pattern.test(asked)
}

test('unsupported methods are 405 with the supported ones in Allow; OPTIONS allows no other origin', async () => {
  const { call, pathOf } = await sharedGround()
  for (const path of new Set(ROUTES.map((route) => pathOf(route)))) {
    // A literal path can also match the id of another route: /destinations/health.
    const matching = ROUTES.filter((route) => pathOf(route) === path || isTakenFor(route, path))
    const takes = [...new Set(matching.map(({ method }): string => method))]
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].filter((each) => !takes.includes(each))) {
      const headers = { origin: 'https://elsewhere.example', 'access-control-request-method': 'POST' }
      const answer = await call(method, path, undefined, { headers })
      assert.deepEqual([answer.status, answer.body.code], [405, 'method_not_allowed'], `${method} ${path}`)
      const expected = [...takes, ...(takes.includes('GET') ? ['HEAD'] : [])]
      assert.equal(answer.headers.get('allow'), expected.join(', '), path)
      assert.deepEqual(
        [...answer.headers.keys()].filter((name) => name.startsWith('access-control-')),
        [],
        path,
      )
    }
  }
})

test('HEAD returns the same as GET, without a body', async () => {
  const { call, pathOf } = await sharedGround()
  for (const route of ROUTES.filter(({ method, stream }) => method === 'GET' && stream === undefined)) {
    const [head, get] = [await call('HEAD', pathOf(route)), await call('GET', pathOf(route))]
    assert.deepEqual([head.status, head.text], [get.status, ''], route.path)
  }
})

test('extra slashes and escaped slashes are not found', async () => {
  const { call } = await sharedGround()
  for (const path of [
    '/api/sources/',
    '/api/sources//',
    '/api//sources',
    '/api/sources/x/',
    '/api/sources/x//write-keys',
    '/api/sources/x/write-keys/',
    '/api/./nothing',
    '/api/%2Fsources',
    '/api/sources%2Fx',
    '/api/openapi.json/',
    '/api/Sources',
    '/api/sources;x=1',
  ]) {
    const { status, body } = await call('GET', path)
    assert.deepEqual([status, body.code], [404, 'not_found'], path)
  }
})
