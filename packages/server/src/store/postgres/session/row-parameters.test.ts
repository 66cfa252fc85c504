import assert from 'node:assert/strict'
import { test } from 'node:test'
import { int4s, int8s, texts } from './binary-arrays.ts'
import { Columns, statement } from './row-parameters.ts'

const NAMED = new Columns<{ id: string; name: string | null }>({ id: ['bigint', ({ id }) => id], name: ['text', ({ name }) => name] })
const COUNTS = new Columns<number>({ count: ['integer', (count) => count] })

test('the numbers of parameters in the text match the order of the values', () => {
  const { name, text, values } = statement({
    name: 'both',
    parameters: { holder: 'value', named: NAMED, at: 'value', counts: COUNTS },
    text: ({ holder, named, at, counts }) =>
      `${counts.as('c')} | ${at} | ${named.as('n')} | ${named.names} | ${named.unnest} | ${named.array('name')} | ${holder}`,
  })
  assert.equal(name, 'both')
  assert.equal(
    text,
    'unnest($5::integer[]) AS c (count) | $4 | unnest($2::bigint[], $3::text[]) AS n (id, name) | id, name | unnest($2::bigint[], $3::text[]) | $3::text[] | $1',
  )
  const rows = [
    { id: '7', name: 'a' },
    { id: '8', name: null },
  ]
  assert.deepEqual(values({ counts: [1, 2], at: 5, named: rows, holder: '3' }), [
    '3',
    int8s(['7', '8']),
    texts(['a', null]),
    5,
    int4s([1, 2]),
  ])
  assert.deepEqual(values({ counts: [], at: 5, named: [], holder: '3' }), ['3', int8s([]), texts([]), 5, int4s([])])
})

test('a statement without a name is not prepared, and an unknown column is rejected', () => {
  const unnamed = statement({ parameters: { counts: COUNTS }, text: ({ counts }) => counts.unnest })
  assert.ok(!('name' in unnamed))
  assert.throws(() => statement({ parameters: { counts: COUNTS }, text: ({ counts }) => counts.array('sum') }), /no column sum in count/)
})
