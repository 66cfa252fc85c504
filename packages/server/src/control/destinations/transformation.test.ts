import assert from 'node:assert/strict'
import test from 'node:test'
import { ThreadTransformer } from '../../delivery/sender/transforming/thread-transformer.ts'
import { startControl } from '../fixtures/start-control.ts'

const CODE = 'export default (message) => message'
const NEW = { name: 'one', urls: ['https://example.com/'] }

async function start(t: test.TestContext) {
  const transformer = new ThreadTransformer()
  t.after(() => transformer.close())
  return startControl(t, { checkCode: (code) => transformer.check(code) })
}

test('a transformation is stored with its limits, shown, replaced as a whole, and removed by null', async (t) => {
  const { call } = await start(t)
  const created = await call('POST', '/api/destinations', { ...NEW, transformation: { code: CODE, timeoutMs: 200 } })
  assert.deepEqual([created.status, created.body.transformation], [201, { code: CODE, timeoutMs: 200, memoryMb: 8 }])
  const path = `/api/destinations/${created.body.id}`
  const { yaml } = (await call('GET', '/api/configuration')).body
  assert.match(yaml, /transformation:\n +code: export default \(message\) => message\n +timeoutMs: 200\n +memoryMb: 8\n/)
  assert.deepEqual((await call('PATCH', path, { transformation: { code: CODE } })).body.transformation, {
    code: CODE,
    timeoutMs: 50,
    memoryMb: 8,
  })
  assert.deepEqual((await call('PATCH', path, { name: 'renamed' })).body.transformation.code, CODE)
  assert.equal((await call('PATCH', path, { transformation: null })).body.transformation, null)
  assert.equal((await call('POST', '/api/destinations', { ...NEW, name: 'two' })).body.transformation, null)
})

test('code that cannot be loaded is refused with its place, and nothing is changed', async (t) => {
  const { call } = await start(t)
  const { body: created } = await call('POST', '/api/destinations', { ...NEW, transformation: { code: CODE } })
  const cases: [code: string, message: string][] = [
    [
      'export default function (message) {\n  return message +\n}',
      "transformation.code has an error in line 3, column 1: SyntaxError: unexpected token in expression: '}'.",
    ],
    ['export const f = 1', 'transformation.code must export a function as its default: export default function (message) { … }.'],
    ['for (;;) {}', 'transformation.code has an error in line 1, column 1: ran for more than 50 ms.'],
    ['\nthrow new Error("no")', 'transformation.code has an error in line 2, column 16: Error: no.'],
  ]
  for (const [code, message] of cases) {
    for (const [method, path, body] of [
      ['POST', '/api/destinations', { ...NEW, name: 'other' }],
      ['PATCH', `/api/destinations/${created.id}`, {}],
    ] as const) {
      const answer = await call(method, path, { ...body, transformation: { code } })
      assert.deepEqual([answer.status, answer.body.field, answer.body.message], [400, 'transformation.code', message])
    }
    const checked = await call('POST', '/api/configuration/check', { destinations: [{ settings: { ...NEW, transformation: { code } } }] })
    assert.deepEqual(checked.body.problems, [
      { kind: 'destinations', index: 0, field: 'transformation.code', code: 'invalid_field', message },
    ])
  }
  assert.equal((await call('GET', `/api/destinations/${created.id}`)).body.transformation.code, CODE)
  assert.equal((await call('GET', '/api/destinations')).body.data.length, 1)
})

test('limits outside of their range, and code of more than 64 KB, are refused', async (t) => {
  const { call } = await start(t)
  const cases: [transformation: object, field: string][] = [
    [{ code: CODE, timeoutMs: 0 }, 'transformation.timeoutMs'],
    [{ code: CODE, timeoutMs: 1001 }, 'transformation.timeoutMs'],
    [{ code: CODE, memoryMb: 65 }, 'transformation.memoryMb'],
    [{ code: '' }, 'transformation.code'],
    [{ code: `${CODE}//${'é'.repeat(40_000)}` }, 'transformation.code'],
    [{ code: `${CODE}\0` }, 'transformation.code'],
    [{ code: CODE, language: 'js' }, 'transformation.language'],
    [{}, 'transformation.code'],
  ]
  for (const [transformation, field] of cases) {
    const answer = await call('POST', '/api/destinations', { ...NEW, transformation })
    assert.deepEqual([answer.status, answer.body.field], [400, field])
  }
})
