import assert from 'node:assert/strict'
import test from 'node:test'
import { ManualClock } from '../../fixtures/manual-clock.ts'
import { createNameLookup, FRESH_MS, type Lookup, MAX_SLOW, MAX_UNPROVEN, SLOW_MS, STALE_MS, STALE_WAIT_MS } from './name-lookup.ts'

interface Asked {
  hostname: string
  answer: (addresses: string[]) => Promise<void>
  fail: (code: string) => Promise<void>
}

/** A resolver whose threads answer when the test tells them to. */
function resolver(): { clock: ManualClock; lookup: Lookup; asked: Asked[]; settled: () => Promise<void> } {
  const clock = new ManualClock()
  const asked: Asked[] = []
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
  const ask: Lookup = (hostname) =>
    new Promise((resolve, reject) => {
      asked.push({
        hostname,
        answer: (addresses) => {
          resolve(addresses)
          return settled()
        },
        fail: (code) => {
          reject(Object.assign(new Error(code), { code }))
          return settled()
        },
      })
    })
  return { clock, asked, settled, lookup: createNameLookup({ ask, now: clock.scheduleMs, setTimer: clock.setTimer }) }
}

async function proven({ lookup, asked, settled }: ReturnType<typeof resolver>, hostname: string, addresses: string[]): Promise<void> {
  const found = lookup(hostname)
  await settled()
  await asked.at(-1)?.answer(addresses)
  assert.deepEqual(await found, addresses)
}

test('an answer is cached for a few seconds, and then looked up again', async () => {
  const one = resolver()
  await proven(one, 'a.test', ['192.0.2.1'])
  one.clock.advance(FRESH_MS - 1)
  assert.deepEqual(await one.lookup('a.test'), ['192.0.2.1'])
  assert.equal(one.asked.length, 1)
  one.clock.advance(1)
  const newer = one.lookup('a.test')
  await one.asked[1]?.answer(['192.0.2.2'])
  assert.deepEqual(await newer, ['192.0.2.2'])
  assert.deepEqual([one.asked.length, one.clock.timers], [2, 0])
})

test('concurrent lookups of one name are made once', async () => {
  const one = resolver()
  const all = [one.lookup('a.test'), one.lookup('a.test'), one.lookup('a.test')]
  await one.settled()
  assert.equal(one.asked.length, 1)
  await one.asked[0]?.answer(['192.0.2.1'])
  assert.deepEqual(
    await Promise.all(all),
    Array.from({ length: 3 }, () => ['192.0.2.1']),
  )
})

test('while the resolver hangs or fails, the last answer is used for some minutes', async () => {
  const one = resolver()
  await proven(one, 'a.test', ['192.0.2.1'])
  one.clock.advance(FRESH_MS)
  const hanging = one.lookup('a.test')
  one.clock.advance(STALE_WAIT_MS)
  assert.deepEqual(await hanging, ['192.0.2.1'])
  const failing = one.lookup('a.test')
  await one.asked[1]?.fail('EAI_AGAIN')
  assert.deepEqual(await failing, ['192.0.2.1'])
  one.clock.advance(STALE_MS)
  const tooOld = one.lookup('a.test')
  const rejected = assert.rejects(tooOld, { code: 'EAI_AGAIN' })
  await one.asked[2]?.fail('EAI_AGAIN')
  await rejected
})

test('an answer that a name does not exist takes effect immediately', async () => {
  const one = resolver()
  await proven(one, 'a.test', ['192.0.2.1'])
  one.clock.advance(FRESH_MS)
  for (let nth = 1; nth <= 2; nth++) {
    const rejected = assert.rejects(one.lookup('a.test'), { code: 'ENOTFOUND' })
    await one.asked[nth]?.fail('ENOTFOUND')
    await rejected
  }
})

test('names that do not answer never use all threads, and slow names share one', async () => {
  const one = resolver()
  await proven(one, 'quick.test', ['192.0.2.1'])
  one.clock.advance(FRESH_MS)
  const dead = Array.from({ length: 10 }, (_, at) => `dead-${at}.test`)
  const first = dead.map((hostname) => assert.rejects(one.lookup(hostname)))
  await one.settled()
  assert.equal(one.asked.length - 1, MAX_UNPROVEN)
  // A name that is known to be fast does not wait behind them.
  const quick = one.lookup('quick.test')
  assert.equal(one.asked.at(-1)?.hostname, 'quick.test')
  await one.asked.at(-1)?.answer(['192.0.2.2'])
  assert.deepEqual(await quick, ['192.0.2.2'])

  one.clock.advance(SLOW_MS + 1)
  for (const hostname of dead) await one.asked.find((each) => each.hostname === hostname)?.fail('EAI_AGAIN')
  // The names that had to wait for a thread are fast once they have one.
  await Promise.all(first)
  const before = one.asked.length
  const again = dead.map((hostname) => assert.rejects(one.lookup(hostname)))
  await one.settled()
  const slow = new Set(dead.slice(0, MAX_UNPROVEN))
  assert.equal(one.asked.slice(before).filter(({ hostname }) => slow.has(hostname)).length, MAX_SLOW)
  for (let at = before; at < one.asked.length; at++) await one.asked[at]?.fail('EAI_AGAIN')
  await Promise.all(again)
  assert.equal(one.asked.length - before, dead.length)
})

test('a slow name that answers quickly again is treated like any other', async () => {
  const one = resolver()
  const slow = one.lookup('a.test')
  await one.settled()
  one.clock.advance(SLOW_MS + 1)
  await one.asked[0]?.answer(['192.0.2.1'])
  await slow
  one.clock.advance(FRESH_MS)
  const quick = one.lookup('a.test')
  await one.settled()
  await one.asked[1]?.answer(['192.0.2.2'])
  assert.deepEqual(await quick, ['192.0.2.2'])
  one.clock.advance(FRESH_MS)
  const others = ['b.test', 'c.test', 'd.test', 'e.test'].map((hostname) => one.lookup(hostname))
  void one.lookup('a.test')
  await one.settled()
  assert.deepEqual([others.length, one.asked.length - 2], [MAX_UNPROVEN + 1, MAX_UNPROVEN + 1])
  assert.ok(one.asked.slice(2).some(({ hostname }) => hostname === 'a.test'))
})

test('the system’s resolver is asked, hosts file included', async () => {
  const addresses = await createNameLookup()('localhost')
  assert.ok(addresses.some((address) => address === '127.0.0.1' || address === '::1'))
})
