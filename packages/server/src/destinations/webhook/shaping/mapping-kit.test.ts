import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import test from 'node:test'
import { beginReading, boundedGet, flattenObject } from './bounded-reading.ts'
import { mappingKit } from './mapping-kit.ts'

const require = createRequire(import.meta.url)
const folder = dirname(require.resolve('@segment/actions-core/mapping-kit'))

/** The functions of the mapping kit that are replaced. */
const original = {
  get: (require(join(folder, '..', 'get.js')) as { get: typeof boundedGet }).get,
  flattenObject: (require(join(folder, 'flatten.js')) as { flattenObject: typeof flattenObject }).flattenObject,
}

const MESSAGE = {
  userId: 'u',
  'Previous ID': 'p',
  properties: { total: 0, empty: '', no: null, list: [{ sku: 'a' }, [1, 2], 'text'], 'a b': { 'c-d': true }, deep: { er: { still: {} } } },
}

test('paths are read as the mapping kit reads them', () => {
  beginReading(0)
  const paths = [
    '',
    '.',
    'userId',
    'userId.length',
    'Previous ID',
    'properties',
    'properties.total',
    'properties.total.x',
    'properties.no.x',
  ]
  paths.push('properties.empty.x', 'properties.list[0].sku', 'properties.list.0.sku', "properties['a b'].c-d", 'properties["a b"]["c-d"]')
  paths.push('properties.list[1][1]', 'properties.list[9]', 'properties.list.length', '..userId..', 'nope', 'nope.nope', 'properties.a b')
  for (const path of paths) assert.deepEqual(boundedGet(MESSAGE, path), original.get(MESSAGE, path), path)
})

test('objects are flattened as the mapping kit flattens them', () => {
  beginReading(0)
  const clashing = { 'a.b': 1, a: { b: 2, c: [] }, 'a.c': 3 }
  for (const input of [MESSAGE, clashing, [1, [2]], {}, [], 'text', null, 1]) {
    for (const keepArrays of [false, true]) {
      const expected = original.flattenObject(input, '', '.', keepArrays)
      assert.equal(JSON.stringify(flattenObject(input, '', '.', keepArrays)), JSON.stringify(expected))
    }
  }
})

test('the replacements take effect, and the mapping kit is not loaded before it is needed', () => {
  const program = `
    const { mappingKit } = await import(${JSON.stringify(new URL('mapping-kit.ts', import.meta.url).href)})
    const loaded = () => Object.keys(process.getBuiltinModule('module')._cache).filter((file) => file.includes('mapping-kit/index')).length
    const before = loaded()
    const { transform } = mappingKit()
    const { read } = transform({ read: { '@path': '$.constructor' } }, {})
    let liquid = ''
    try { transform({ a: { '@liquid': 'x' } }, {}) } catch (error) { liquid = error.message }
    console.log(JSON.stringify([before, loaded(), read ?? null, liquid]))`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
  assert.equal(stdout.trim(), '[0,1,null,"@liquid is not supported"]', stderr)
  assert.equal(typeof mappingKit().transform, 'function')
})
