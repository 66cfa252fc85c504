import assert from 'node:assert/strict'
import test from 'node:test'
import { AttemptLimit } from './attempt-limit.ts'

function limitAt(maxAddresses?: number) {
  const clock = { ms: 1_000_000 }
  let guesses = 0
  const limit = new AttemptLimit({ nowMs: () => clock.ms, ...(maxAddresses === undefined ? {} : { maxAddresses }) })
  const fail = (address: string, times = 1): void => {
    for (let at = 0; at < times; at++) limit.failed(address, `guess ${++guesses}`)
  }
  return { clock, limit, fail }
}

test('nine wrong tokens are free, then the address has to wait; one more is free every ten seconds', () => {
  const { clock, limit, fail } = limitAt()
  fail('192.0.2.1', 9)
  assert.equal(limit.waitMs('192.0.2.1'), 0)
  fail('192.0.2.1')
  const waitMs = limit.waitMs('192.0.2.1')
  assert.ok(waitMs > 0 && waitMs <= 10_000, String(waitMs))
  clock.ms += waitMs
  assert.equal(limit.waitMs('192.0.2.1'), 0)
  fail('192.0.2.1')
  assert.equal(limit.waitMs('192.0.2.1'), 10_000)
  clock.ms += 200_000
  fail('192.0.2.1', 9)
  assert.equal(limit.waitMs('192.0.2.1'), 0, 'old failures are forgotten')
})

test('repeating the same wrong token costs nothing, so a program with an outdated token locks nobody out', () => {
  const { limit, fail } = limitAt()
  assert.equal(limit.failed('192.0.2.1', 'stale'), true)
  for (let at = 0; at < 1_000; at++) assert.equal(limit.failed('192.0.2.1', 'stale'), false)
  assert.equal(limit.waitMs('192.0.2.1'), 0)
  assert.equal(limit.failed('192.0.2.2', 'stale'), true, 'from another address it counts as a guess')
  fail('192.0.2.1', 8)
  assert.equal(limit.failed('192.0.2.1', 'stale'), true, 'only the last few are remembered')
  assert.ok(limit.waitMs('192.0.2.1') > 0)
})

test('a network without failures never waits, however many others fail', () => {
  const { limit, fail } = limitAt()
  for (let at = 0; at < 5_000; at++) fail(`198.51.${at >> 8}.${at & 255}`)
  assert.equal(limit.waitMs('192.0.2.1'), 0)
})

test('when many addresses fail, each has only one free failure, until failures become rare again', () => {
  const { clock, limit, fail } = limitAt()
  for (let at = 0; at < 200; at++) fail(`198.51.100.${at}`)
  fail('192.0.2.1')
  assert.equal(limit.waitMs('192.0.2.1'), 60_000)
  clock.ms += 60_000
  assert.equal(limit.waitMs('192.0.2.1'), 0)
  clock.ms += 200_000
  fail('192.0.2.1', 9)
  assert.equal(limit.waitMs('192.0.2.1'), 0)
})

test('memory is bounded, and the oldest failures are forgotten first', () => {
  const { limit, fail } = limitAt(100)
  fail('192.0.2.1', 10)
  for (let at = 0; at < 99; at++) fail(`198.51.100.${at}`)
  fail('192.0.2.1')
  fail('203.0.113.1')
  assert.equal(limit.size, 100)
  assert.ok(limit.waitMs('192.0.2.1') > 0)
  for (let at = 0; at < 100_000; at++) fail(`2001:db8:${(at >> 8).toString(16)}:${(at & 255).toString(16)}::1`)
  assert.equal(limit.size, 100)
})

test('an IPv6 /64 counts as one network in any notation; IPv4-mapped addresses count separately', () => {
  const { limit, fail } = limitAt()
  fail('2001:db8::1', 10)
  for (const same of ['2001:db8:0:0:ffff::2', '2001:0db8:0000:0000:1:2:3:4', '2001:db8::', '2001:DB8::a%eth0']) {
    assert.ok(limit.waitMs(same) > 0, same)
  }
  for (const other of ['2001:db8:0:1::1', '2001:db8:0:100::1', '2001:db9::1', '::1', '::']) assert.equal(limit.waitMs(other), 0, other)
  fail('::ffff:192.0.2.1', 10)
  assert.ok(limit.waitMs('::ffff:192.0.2.1') > 0)
  assert.equal(limit.waitMs('::ffff:192.0.2.2'), 0)
})

test('guessing from many /64s of one /56 or /48 is rate limited like guessing from one address', () => {
  for (const [name, addressAt] of [
    ['/56', (at: number) => `2001:db8:0:${(at % 256).toString(16)}::1`],
    ['/48', (at: number) => `2001:db8:0:${at.toString(16)}::1`],
  ] as const) {
    const { clock, limit, fail } = limitAt()
    let checked = 0
    for (let at = 0; at < 20_002; at++) {
      if (limit.waitMs(addressAt(at)) === 0) {
        fail(addressAt(at))
        checked += 1
      }
      clock.ms += 10
    }
    // In 200 seconds. Counted by /64 alone, all 20,002 were checked.
    assert.ok(checked < 600, `${name}: ${checked} guesses were checked`)
    assert.equal(limit.waitMs('2001:db8:1::1'), 0, 'the neighbour network does not wait')
  }
})
