import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rowIdAt } from '../schema/ids.ts'
import { ScanPositions } from './scan-positions.ts'

const SERVER_MS = 1_800_000_000_000

function rig(): { places: ScanPositions; later: (ms: number) => void } {
  let now = 1_000
  return {
    places: new ScanPositions(
      () => SERVER_MS,
      () => now,
    ),
    later: (ms) => {
      now += ms
    },
  }
}

test('a look begins where the last one ended, and after two seconds at the front', () => {
  const { places, later } = rig()
  assert.equal(places.from('a'), '0')
  places.scanned('a', '0', '500', 1)
  assert.equal(places.from('a'), '500')
  later(1_000)
  places.scanned('a', '500', '700', 1)
  assert.equal(places.from('a'), '700')
  later(1_001)
  assert.equal(places.from('a'), '0', 'counted from the last look at the front')
  assert.equal(places.from('b'), '0')
})

test('where nothing was found, only what comes from now on is looked for', () => {
  const { places } = rig()
  places.scanned('a', '0', null, 1)
  assert.ok(places.from('a') > rowIdAt(SERVER_MS - 120_000) && places.from('a') < rowIdAt(SERVER_MS))
  places.scanned('a', '900', null, 1)
  assert.equal(places.from('a'), '900')
})

test('the longer a look from the front took, the later the next', () => {
  const { places, later } = rig()
  places.scanned('a', '0', '500', 400)
  later(19_000)
  assert.equal(places.from('a'), '500')
  later(1_001)
  assert.equal(places.from('a'), '0')
})

test('a server that was slow once does not put off the next look from the front for minutes', () => {
  const { places, later } = rig()
  places.scanned('a', '0', '500', 10_000)
  later(30_001)
  assert.equal(places.from('a'), '0')
})

test('after something was given back, the next look begins at the front', () => {
  const { places } = rig()
  places.scanned('a', '0', '500', 1)
  places.forget('a')
  assert.equal(places.from('a'), '0')
  places.scanned('a', '500', null, 1)
  assert.equal(places.from('a'), '0', 'also if a look that began before forget() ends after it')
})
