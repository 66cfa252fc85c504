import assert from 'node:assert/strict'
import { test } from 'node:test'
import { choiceConstant, choiceText, matchingChoices, withMore, withProperty } from './choices.ts'

const CHOICES = [
  { value: 'l-1', label: 'Customers', description: 'All' },
  { value: 'l-2', label: 'Leads' },
  { value: 3, label: '3' },
]

test('choices match by label and value, and a value that was chosen hides no others', () => {
  const values = (typed: string) => matchingChoices(CHOICES, typed).map(({ value }) => value)
  assert.deepEqual(
    [values(''), values('CUST'), values('l-'), values('l-1'), values('x')],
    [['l-1', 'l-2', 3], ['l-1'], ['l-1', 'l-2'], ['l-1', 'l-2', 3], []],
  )
})

test('a page that repeats choices adds only those that are new', () => {
  assert.deepEqual(
    withMore(CHOICES, [
      { value: 'l-2', label: 'Leads' },
      { value: 'l-4', label: 'New' },
    ]).map(({ value }) => value),
    ['l-1', 'l-2', 3, 'l-4'],
  )
})

test('a constant is a number only if the field takes numbers and the text is exactly that number', () => {
  const number = { type: 'number' }
  assert.deepEqual(
    ['3', '12', '9007199254740993', '1e3', '', 'x'].map((typed) => choiceConstant(typed, CHOICES, number)),
    [3, 12, '9007199254740993', '1e3', '', 'x'],
  )
  assert.deepEqual([choiceConstant('3', CHOICES, { type: 'string' }), choiceConstant('12', CHOICES, { type: 'string' })], [3, '12'])
})

test('the text below a value does not repeat the value', () => {
  assert.deepEqual(CHOICES.map(choiceText), ['Customers · All', 'Leads', ''])
})

test('a property is added to an object once, and never to anything else', () => {
  const added = withProperty('{"a":1}', 'plan')
  assert.deepEqual(JSON.parse(added ?? ''), { a: 1, plan: '' })
  assert.deepEqual(JSON.parse(withProperty('{"plan":{"@path":"$.x"}}', 'plan') ?? ''), { plan: { '@path': '$.x' } })
  assert.deepEqual(JSON.parse(withProperty('null', 'plan') ?? ''), { plan: '' })
  for (const text of ['{"@path":"$.traits"}', '[]', '"text"', '{', '']) assert.equal(withProperty(text, 'plan'), null)
})
