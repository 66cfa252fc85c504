import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { Slots, type SlotUser } from './slots.ts'

/** Has so much to send, and says when something is in flight. */
class User implements SlotUser {
  waiting: number
  inFlight = 0
  readonly #slots: Slots
  readonly #log: User[]
  readonly #needed: number

  constructor(slots: Slots, log: User[], waiting: number, needed = 1) {
    this.#slots = slots
    this.#log = log
    this.waiting = waiting
    this.#needed = needed
  }

  get taken(): number {
    return this.inFlight * this.#needed
  }

  pump(): void {
    while (this.waiting > 0 && this.#slots.take(this, this.#needed)) {
      this.waiting--
      this.inFlight++
      this.#log.push(this)
    }
  }

  end(): void {
    this.inFlight--
    this.#slots.release(this.#needed, false)
    this.pump()
  }
}

test('a lane with much to send does not starve one with little', () => {
  const slots = new Slots(10)
  const log: User[] = []
  const much = new User(slots, log, 1_000)
  const little = new User(slots, log, 3)
  much.pump()
  assert.deepEqual([much.inFlight, slots.free], [10, 0])
  little.pump()
  for (let nth = 0; nth < 3; nth++) {
    much.end()
    much.end()
  }
  // The lanes alternate as slots become free.
  assert.equal(little.waiting, 0)
  assert.deepEqual(
    log.slice(10, 16).map((user) => (user === little ? 'little' : 'much')),
    ['much', 'little', 'much', 'little', 'much', 'little'],
  )
})

test('every waiting lane gets one slot before any gets a second', () => {
  const slots = new Slots(4)
  const log: User[] = []
  const hog = new User(slots, log, 4)
  hog.pump()
  const others = Array.from({ length: 4 }, () => new User(slots, log, 10))
  for (const user of others) user.pump()
  for (let nth = 0; nth < 4; nth++) hog.end()
  assert.deepEqual(
    others.map(({ inFlight }) => inFlight),
    [1, 1, 1, 1],
  )
})

test('a waiting lane with nothing left to send passes its turn on, and one that stopped waiting gets no slot', () => {
  const slots = new Slots(1)
  const log: User[] = []
  const [first, done, left, last] = [1, 1, 1, 1].map((waiting) => new User(slots, log, waiting)) as [User, User, User, User]
  for (const user of [first, done, left, last]) user.pump()
  done.waiting = 0
  slots.cancelWait(left)
  first.end()
  assert.deepEqual([last.inFlight, left.inFlight, slots.free], [1, 0, 0])
})

test('a lane that needs several slots gets all or none, and is not overtaken by those that need one', () => {
  const slots = new Slots(5)
  const log: User[] = []
  const [single, several, other] = [new User(slots, log, 5), new User(slots, log, 1, 4), new User(slots, log, 1)]
  single.pump()
  several.pump()
  other.pump()
  for (let nth = 0; nth < 3; nth++) single.end()
  assert.deepEqual([several.inFlight, other.inFlight, single.inFlight, slots.free], [0, 0, 2, 3])
  single.end()
  assert.deepEqual([several.inFlight, other.inFlight, single.inFlight, slots.free], [1, 0, 1, 0])
  single.end()
  assert.deepEqual([other.inFlight, slots.free], [1, 0])
})

test('when a lane stops waiting for several slots, the next one continues immediately', () => {
  const slots = new Slots(4)
  const log: User[] = []
  const [first, several, other] = [new User(slots, log, 2), new User(slots, log, 1, 3), new User(slots, log, 2)]
  first.pump()
  several.pump()
  other.pump()
  assert.deepEqual([several.inFlight, other.inFlight], [0, 0])
  several.waiting = 0
  slots.cancelWait(several)
  assert.deepEqual([other.inFlight, slots.free], [2, 0])
})

test('a delivery that needs more slots than exist runs alone', () => {
  const slots = new Slots(3)
  const log: User[] = []
  const [many, single] = [new User(slots, log, 1, 5), new User(slots, log, 1)]
  many.pump()
  single.pump()
  assert.deepEqual([many.inFlight, single.inFlight, slots.free], [1, 0, -2])
  many.end()
  assert.deepEqual([many.inFlight, single.inFlight, slots.free], [0, 1, 2])
  many.waiting = 1
  many.pump()
  assert.equal(many.inFlight, 0)
  single.end()
  assert.deepEqual([many.inFlight, slots.free], [1, -2])
})

test('at most half of the slots may be trailing, however they end', () => {
  const slots = new Slots(9)
  const user = new User(slots, [], 0)
  assert.ok(slots.take(user, 9))
  assert.deepEqual([slots.trail(4), slots.trail(1)], [true, false])
  slots.release(1, true)
  assert.deepEqual([slots.trail(1), slots.trail(1), slots.free], [true, false, 1])
  slots.release(4, true)
  slots.release(4, false)
  assert.deepEqual([slots.free, slots.trail(4), slots.trail(1)], [9, true, false])
})

test('no lane waits if enough slots are free for the first in line, no slot is lost, and none is used twice', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5 }),
      fc.array(fc.nat({ max: 20 }), { minLength: 1, maxLength: 6 }),
      fc.array(fc.record({ user: fc.nat(), act: fc.constantFrom('use', 'end', 'more', 'leave') }), { maxLength: 200 }),
      (count, amounts, steps) => {
        const slots = new Slots(count)
        const users = amounts.map((amount, at) => new User(slots, [], amount, 1 + (at % 3)))
        const left = new Set<User>()
        for (const { user: which, act } of steps) {
          const user = users[which % users.length] as User
          if (act === 'end') {
            if (user.inFlight > 0) user.end()
          } else if (act === 'leave') {
            left.add(user)
            user.waiting = 0
            slots.cancelWait(user)
          } else {
            if (act === 'more' && !left.has(user)) user.waiting++
            user.pump()
          }
          assert.equal(slots.free + users.reduce((sum, { taken }) => sum + taken, 0), count)
          // The number of slots is exceeded only by a single delivery that needs more than exist.
          if (slots.free < 0)
            assert.equal(
              users.reduce((sum, { inFlight }) => sum + inFlight, 0),
              1,
            )
        }
        for (const user of users) user.pump()
        if (users.some(({ waiting }) => waiting > 0)) assert.ok(slots.free < 3)
        for (let user; (user = users.find(({ inFlight }) => inFlight > 0)) !== undefined; ) user.end()
        assert.deepEqual([slots.free, users.reduce((sum, { waiting }) => sum + waiting, 0)], [count, 0])
      },
    ),
  )
})
