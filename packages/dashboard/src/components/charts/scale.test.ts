import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labelled, linePath, niceMaximum, placeOf, ticksOf } from './scale.ts'

test('the maximum is round and not much larger than the value', () => {
  assert.equal(niceMaximum(0), 0)
  for (let value = 0.01; value < 1e9; value *= 1.37) {
    const maximum = niceMaximum(value)
    assert.ok(maximum >= value * (1 - 1e-9) && maximum <= value * 2, `${value}: ${maximum}`)
  }
})

test('ticks of counts are whole numbers from zero to the maximum', () => {
  for (const value of [1, 2, 3, 4, 7, 12, 15, 99, 1_234, 5_000_000]) {
    const ticks = ticksOf(niceMaximum(value), true)
    assert.ok(ticks.every(Number.isInteger) || niceMaximum(value) === 1.5, `${value}: ${ticks.join()}`)
    assert.equal(ticks[0], 0)
    assert.equal(ticks.at(-1), niceMaximum(value))
    assert.ok(ticks.length <= 6)
  }
  assert.deepEqual(ticksOf(0, true), [0])
})

test('labels have room', () => {
  assert.deepEqual(labelled(60, 600, 60), [0, 6, 12, 18, 24, 30, 36, 42, 48, 54])
  assert.deepEqual(labelled(3, 600, 60), [0, 1, 2])
  assert.deepEqual(labelled(0, 600, 60), [])
})

test('every place belongs to a bar', () => {
  assert.deepEqual(
    [-5, 0, 9.9, 10, 99, 150].map((x) => placeOf(x, 100, 10)),
    [0, 0, 0, 1, 9, 9],
  )
})

test('a line is interrupted where there is no value', () => {
  const path = linePath(
    [1, 2, null, 3, null],
    (at) => at * 10,
    (value) => value,
    4,
  )
  assert.equal(path, 'M0,1L10,2M28,3H32')
})
