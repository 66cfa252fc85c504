import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rowIdAt } from '../tables/ids.ts'
import { ScanPositions } from './scan-positions.ts'

const SERVER_MS = 1_800_000_000_000

function rig(): { positions: ScanPositions; later: (ms: number) => void } {
  let now = 1_000
  return {
    positions: new ScanPositions(
      () => SERVER_MS,
      () => now,
    ),
    later: (ms) => {
      now += ms
    },
  }
}

test('a scan starts where the last one ended, and after two seconds at the front', () => {
  const { positions, later } = rig()
  assert.equal(positions.from('a'), '0')
  positions.scanned('a', '0', '500', 1)
  assert.equal(positions.from('a'), '500')
  later(1_000)
  positions.scanned('a', '500', '700', 1)
  assert.equal(positions.from('a'), '700')
  later(1_001)
  assert.equal(positions.from('a'), '0', 'counted from the last scan from the front')
  assert.equal(positions.from('b'), '0')
})

test('if nothing was found, the next scan covers only new rows', () => {
  const { positions } = rig()
  positions.scanned('a', '0', null, 1)
  assert.ok(positions.from('a') > rowIdAt(SERVER_MS - 120_000) && positions.from('a') < rowIdAt(SERVER_MS))
  positions.scanned('a', '900', null, 1)
  assert.equal(positions.from('a'), '900')
})

test('the longer a scan from the front took, the later the next one', () => {
  const { positions, later } = rig()
  positions.scanned('a', '0', '500', 400)
  later(19_000)
  assert.equal(positions.from('a'), '500')
  later(1_001)
  assert.equal(positions.from('a'), '0')
})

test('one slow answer of the server does not delay the next scan from the front for minutes', () => {
  const { positions, later } = rig()
  positions.scanned('a', '0', '500', 10_000)
  later(30_001)
  assert.equal(positions.from('a'), '0')
})

test('after rows were released, the next scan starts at the front', () => {
  const { positions } = rig()
  positions.scanned('a', '0', '500', 1)
  positions.forget('a')
  assert.equal(positions.from('a'), '0')
  positions.scanned('a', '500', null, 1)
  assert.equal(positions.from('a'), '0', 'also if a scan that began before forget() ends after it')
})
