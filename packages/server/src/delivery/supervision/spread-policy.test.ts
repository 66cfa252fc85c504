import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { SPREAD_SETTINGS, SpreadPolicy } from './spread-policy.ts'

interface Destination {
  name: string
  senders: string[]
  units: number
  widest: number
}

const destinationOf = (name: string, senders: string[], given: Partial<Destination> = {}): Destination => ({
  name,
  senders,
  units: 1_000,
  widest: 10,
  ...given,
})

/** Samples the same utilization several times, and carries out the changes. Returns them, each with the number of the sample. */
function sampled(
  policy: SpreadPolicy<string, Destination>,
  used: Record<string, number>,
  destinations: Destination[],
  times: number,
): string[] {
  const changes: string[] = []
  for (let nth = 1; nth <= times; nth++) {
    for (const change of policy.sample(new Map(Object.entries(used)), destinations)) {
      const { destination } = change
      if ('add' in change) destination.senders.push(change.add)
      else destination.senders.splice(destination.senders.indexOf(change.remove), 1)
      changes.push(`${nth}: ${destination.name} ${'add' in change ? `+${change.add}` : `-${change.remove}`}`)
    }
  }
  return changes
}

test('a destination is spread when its sender is busy for four samples in a row and another one has room', () => {
  const policy = new SpreadPolicy<string, Destination>()
  const hot = destinationOf('hot', ['A'])
  const used = { A: 0.9, B: 0.4, C: 0.1 }
  assert.deepEqual(sampled(policy, used, [hot], 3), [])
  assert.deepEqual(sampled(policy, { ...used, A: 0.84 }, [hot], 1), [])
  assert.deepEqual(sampled(policy, used, [hot], 4), ['4: hot +C'])
  // The next one only if both are busy.
  assert.deepEqual(sampled(policy, { ...used, C: 0.7 }, [hot], 10), [])
  assert.deepEqual(sampled(policy, { ...used, C: 0.9 }, [hot], 4), ['4: hot +B'])
})

test('the destination that has the most work in a busy sender is spread, one for each sender', () => {
  const policy = new SpreadPolicy<string, Destination>()
  const some = [
    destinationOf('small', ['A'], { units: 100 }),
    destinationOf('batched', ['A'], { units: 5_000, widest: 1 }),
    destinationOf('large', ['A'], { units: 3_000 }),
    destinationOf('elsewhere', ['C'], { units: 9_000 }),
  ]
  assert.deepEqual(sampled(policy, { A: 1, B: 0, C: 0.6 }, some, 5), ['4: large +B'])
})

test('two busy senders do not choose the same one', () => {
  const policy = new SpreadPolicy<string, Destination>()
  const both = [destinationOf('one', ['A']), destinationOf('two', ['B'], { units: 900 })]
  assert.deepEqual(sampled(policy, { A: 1, B: 1, C: 0 }, both, 4), ['4: one +C'])
})

test('a destination is not spread beyond its limit, without room elsewhere, or for the few units of a thread that starts', () => {
  for (const [given, used] of [
    [{ widest: 1 }, 0],
    [{}, 0.51],
    [{ units: 15 }, 0],
  ] as const) {
    assert.deepEqual(sampled(new SpreadPolicy<string, Destination>(), { A: 1, B: used }, [destinationOf('one', ['A'], given)], 20), [])
  }
})

test('a destination gets fewer senders when fewer could have handled its load easily for some time', () => {
  const policy = new SpreadPolicy<string, Destination>()
  const wide = destinationOf('wide', ['A', 'B', 'C'])
  assert.deepEqual(sampled(policy, { A: 0.5, B: 0.5, C: 0.3 }, [wide], 100), [])
  assert.deepEqual(sampled(policy, { A: 0.4, B: 0.4, C: 0.3 }, [wide], 19), [])
  assert.deepEqual(sampled(policy, { A: 0.5, B: 0.5, C: 0.3 }, [wide], 1), [])
  assert.deepEqual(sampled(policy, { A: 0.4, B: 0.4, C: 0.3 }, [wide], 20), ['20: wide -C'])
  assert.deepEqual(sampled(policy, { A: 0.35, B: 0.35, C: 0 }, [wide], 30), [])
  assert.deepEqual(sampled(policy, { A: 0.3, B: 0.3, C: 0 }, [wide], 40), ['20: wide -B'])
  // Settings that no longer allow it end it at once.
  assert.deepEqual(sampled(policy, { A: 0.9, B: 0.9 }, [destinationOf('limited', ['A', 'B'], { widest: 1 })], 1), ['1: limited -B'])
})

test('with any steady load, a destination is spread and reduced again at most once', () => {
  const names = ['A', 'B', 'C', 'D', 'E']
  fc.assert(
    fc.property(fc.double({ min: 0, max: 5, noNaN: true }), fc.integer({ min: 1, max: 5 }), (load, width) => {
      const policy = new SpreadPolicy<string, Destination>()
      const destination = destinationOf('one', names.slice(0, width))
      const changes: string[] = []
      for (let nth = 0; nth < 300; nth++) {
        // The load is spread evenly, and what exceeds a thread waits.
        const each = Math.min(1, load / destination.senders.length)
        const used = Object.fromEntries(names.map((name) => [name, destination.senders.includes(name) ? each : 0]))
        changes.push(...sampled(policy, used, [destination], 1))
      }
      const [added, removed] = ['+', '-'].map((sign) => changes.filter((change) => change.includes(sign)).length) as [number, number]
      assert.ok(added === 0 || removed === 0, changes.join(', '))
      // No more threads than the load needs, and as many as it needs, while there are some.
      const { length } = destination.senders
      assert.ok(length === names.length || load / length < SPREAD_SETTINGS.busyFrom)
      assert.ok(length === 1 || load > SPREAD_SETTINGS.calmUpTo * (length - 1))
    }),
  )
})
