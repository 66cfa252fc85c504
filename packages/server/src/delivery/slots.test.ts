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

  constructor(slots: Slots, log: User[], waiting: number) {
    this.#slots = slots
    this.#log = log
    this.waiting = waiting
  }

  useSlot(): void {
    while (this.waiting > 0 && this.#slots.take(this)) {
      this.waiting--
      this.inFlight++
      this.#log.push(this)
    }
  }

  end(): void {
    this.inFlight--
    this.#slots.give()
    this.useSlot()
  }
}

test('one with much to send does not starve one with little', () => {
  const slots = new Slots(10)
  const log: User[] = []
  const much = new User(slots, log, 1_000)
  const little = new User(slots, log, 3)
  much.useSlot()
  assert.deepEqual([much.inFlight, slots.free], [10, 0])
  little.useSlot()
  for (let nth = 0; nth < 3; nth++) {
    much.end()
    much.end()
  }
  // In turns, as soon as slots come free.
  assert.equal(little.waiting, 0)
  assert.deepEqual(
    log.slice(10, 16).map((user) => (user === little ? 'little' : 'much')),
    ['much', 'little', 'much', 'little', 'much', 'little'],
  )
})

test('many that wait get one slot each before any gets a second', () => {
  const slots = new Slots(4)
  const log: User[] = []
  const hog = new User(slots, log, 4)
  hog.useSlot()
  const others = Array.from({ length: 4 }, () => new User(slots, log, 10))
  for (const user of others) user.useSlot()
  for (let nth = 0; nth < 4; nth++) hog.end()
  assert.deepEqual(
    others.map(({ inFlight }) => inFlight),
    [1, 1, 1, 1],
  )
})

test('one that waits and has nothing left to send passes its turn on; one that left gets none', () => {
  const slots = new Slots(1)
  const log: User[] = []
  const [first, done, left, last] = [1, 1, 1, 1].map((waiting) => new User(slots, log, waiting)) as [User, User, User, User]
  for (const user of [first, done, left, last]) user.useSlot()
  done.waiting = 0
  slots.leave(left)
  first.end()
  assert.deepEqual([last.inFlight, left.inFlight, slots.free], [1, 0, 0])
})

test('nobody waits while a slot is free, none is lost, and none is used twice', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5 }),
      fc.array(fc.nat({ max: 20 }), { minLength: 1, maxLength: 6 }),
      fc.array(fc.record({ user: fc.nat(), act: fc.constantFrom('use', 'end', 'more', 'leave') }), { maxLength: 200 }),
      (count, amounts, steps) => {
        const slots = new Slots(count)
        const users = amounts.map((amount) => new User(slots, [], amount))
        const left = new Set<User>()
        for (const { user: which, act } of steps) {
          const user = users[which % users.length] as User
          if (act === 'end') {
            if (user.inFlight > 0) user.end()
          } else if (act === 'leave') {
            left.add(user)
            user.waiting = 0
            slots.leave(user)
          } else {
            if (act === 'more' && !left.has(user)) user.waiting++
            user.useSlot()
          }
          assert.equal(slots.free + users.reduce((sum, { inFlight }) => sum + inFlight, 0), count)
        }
        for (const user of users) user.useSlot()
        if (users.some(({ waiting }) => waiting > 0)) assert.equal(slots.free, 0)
        for (let user; (user = users.find(({ inFlight }) => inFlight > 0)) !== undefined; ) user.end()
        assert.deepEqual([slots.free, users.reduce((sum, { waiting }) => sum + waiting, 0)], [count, 0])
      },
    ),
  )
})
