import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { escapeReferences, onlyReference, resolve, VariableNames } from './environment-references.ts'

test('a reference is replaced with the value of its variable, and an empty variable counts as not set', () => {
  assert.deepEqual(resolve('Bearer ${TOKEN}', { TOKEN: 't' }), { ok: true, text: 'Bearer t' })
  assert.deepEqual(resolve('${A}${B}', { A: 'a', B: '' }), { ok: false, missing: ['B'] })
  assert.deepEqual(resolve('${A}', { A: '${B}', B: 'b' }), { ok: true, text: '${B}' }, 'references in values are not resolved')
  assert.equal(onlyReference('${NAME}'), 'NAME')
  for (const text of ['NAME', ' ${NAME}', '${NA ME}', '${}', '$${NAME}', 1, null]) assert.equal(onlyReference(text), undefined)
})

test('if a variable is not set, a stored value that matches the text is kept', () => {
  const stored = ['https://a.example/hook?token=abc&x=1']
  assert.deepEqual(resolve('https://a.example/hook?token=${T}&x=1', {}, stored), { ok: true, text: stored[0] })
  assert.deepEqual(resolve('https://b.example/hook?token=${T}&x=1', {}, stored), { ok: false, missing: ['T'] })
  assert.deepEqual(resolve('https://aXexample/hook?token=${T}&x=1', {}, stored), { ok: false, missing: ['T'] }, 'a dot matches only a dot')
  assert.deepEqual(resolve('https://a.example/hook?token=${T}&x=${X}', { X: '2' }, stored), { ok: false, missing: ['T'] })
})

test('any text is unchanged after escaping and resolving', () => {
  const text = fc.array(fc.constantFrom('$', '{', '}', '${', '$${', 'A', '${A}', ' '), { maxLength: 12 }).map((parts) => parts.join(''))
  fc.assert(
    fc.property(text, (original) => assert.deepEqual(resolve(escapeReferences(original), { A: 'never' }), { ok: true, text: original })),
  )
})

test('generated names are valid variable names, and none is generated twice', () => {
  const names = new VariableNames()
  assert.equal(names.name('Warehouse (EU)', 'shared secret'), 'WAREHOUSE_EU_SHARED_SECRET')
  assert.equal(names.name('warehouse-eu', 'shared secret'), 'WAREHOUSE_EU_SHARED_SECRET_2')
  assert.equal(names.name('数据', 'shared secret'), 'DESTINATION_SHARED_SECRET')
  assert.equal(names.name('1st', 'x'), '_1ST_X')
  assert.equal(names.name('Café', 'x'), 'CAFE_X')
})
