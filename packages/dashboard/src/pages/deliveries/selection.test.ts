import assert from 'node:assert/strict'
import test from 'node:test'
import { MAX_SELECTED, selectionOf, selectionText, toggled } from './selection.ts'

test('deliveries are selected and deselected, up to the limit of a replay', () => {
  assert.deepEqual([...toggled(toggled(new Set(), ['1-0', '1-1'], true), ['1-0'], false)], ['1-1'])
  const many = Array.from({ length: 1_500 }, (_, at) => `${at}-0`)
  assert.equal(toggled(new Set(), many, true).size, MAX_SELECTED)
})

test('a small selection is in the URL, without invalid ids', () => {
  assert.equal(selectionText(new Set(['1-0', '2-3'])), '1-0,2-3')
  assert.deepEqual([...selectionOf('1-0,2-3,<script>,')], ['1-0', '2-3'])
  assert.equal(selectionText(new Set()), null)
  assert.equal(
    selectionText(
      toggled(
        new Set(),
        Array.from({ length: 41 }, (_, at) => `${at}-0`),
        true,
      ),
    ),
    null,
  )
})
