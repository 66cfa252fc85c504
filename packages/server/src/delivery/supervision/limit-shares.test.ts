import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { LimitShares } from './limit-shares.ts'

interface Unit {
  sender: Model
  epoch: number
  hasBegun: boolean
}

/** A sender in another thread: it gets commands later, in order, and reports are received later, in order. */
class Model {
  readonly commands: (() => void)[] = []
  readonly reports: (() => void)[] = []
  readonly waiting: Unit[] = []
  readonly inFlight: Unit[] = []
  limit = 0

  get units(): number {
    return this.waiting.length + this.inFlight.length
  }

  begin(): void {
    while (this.inFlight.length < this.limit) {
      const unit = this.waiting.shift()
      if (unit === undefined) return
      unit.hasBegun = true
      this.inFlight.push(unit)
    }
  }
}

/** Senders, and what the main thread knows of them. */
function rig(limit: number) {
  const models = Array.from({ length: 4 }, () => new Model())
  const [home] = models as [Model]
  const active = [home]
  const seen = { most: 0, open: 0, ended: 0, given: 0 }
  const report = (unit: Unit): void => {
    unit.sender.reports.push(() => {
      seen.ended++
      shares.ended(unit.sender, unit.epoch, unit.hasBegun)
    })
  }
  const shares = new LimitShares<Model>(limit, {
    tell: (sender, told) => void sender.commands.push(() => void (sender.limit = told)),
    recall: (sender) => void sender.commands.push(() => sender.waiting.splice(0).forEach(report)),
  })
  const carryOut = (sender: Model): void => {
    sender.commands.shift()?.()
    sender.begin()
    seen.open = models.reduce((sum, { inFlight }) => sum + inFlight.length, 0)
    seen.most = Math.max(seen.most, seen.open)
  }
  const give = (sender: Model): void => {
    const unit = { sender, epoch: shares.started(sender), hasBegun: false }
    seen.given++
    sender.commands.push(() => void sender.waiting.push(unit))
  }
  const answer = (sender: Model, which: number): void => {
    const [unit] = sender.inFlight.splice(which % Math.max(1, sender.inFlight.length), 1)
    if (unit === undefined) return
    report(unit)
    carryOut(sender)
  }
  /** Until nothing is left to do. */
  const finish = (): void => {
    for (let idle = 0; idle < 2; ) {
      const before = seen.ended
      for (const sender of models) {
        while (sender.commands.length > 0) carryOut(sender)
        answer(sender, 0)
        for (const received of sender.reports.splice(0)) received()
      }
      idle = before === seen.ended && models.every(({ commands, reports }) => commands.length + reports.length === 0) ? idle + 1 : 0
    }
  }
  return { models, home, active, shares, seen, carryOut, give, answer, finish }
}

const sender = fc.nat(3)
const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('give' as const), holder: fc.option(sender) }) },
  { weight: 10, arbitrary: fc.record({ do: fc.constant('carryOut' as const), sender }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('answer' as const), sender, which: fc.nat(20) }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('receive' as const), sender }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('add' as const), sender }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('leave' as const), sender }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('limit' as const), limit: fc.integer({ min: 1, max: 12 }) }) },
)

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** Carries out the steps, then everything that is left to do. The first sender has `before` units from the time in which it was alone. */
function check(limit: number, before: number, steps: readonly Step[]): void {
  const { models, home, active, shares, seen, carryOut, give, answer, finish } = rig(limit)
  let [current, highest] = [limit, limit]
  home.limit = limit
  for (let nth = 0; nth < before; nth++) home.waiting.push({ sender: home, epoch: -1, hasBegun: false })
  seen.given = before
  home.begin()
  shares.add(home, before)
  for (const each of steps) {
    const chosen = 'sender' in each ? (models[each.sender] as Model) : home
    if (each.do === 'give') {
      const holder = each.holder === null ? undefined : models[each.holder]
      give(holder !== undefined && active.includes(holder) && shares.mayTake(holder) ? holder : (shares.next as Model))
    } else if (each.do === 'carryOut') carryOut(chosen)
    else if (each.do === 'answer') answer(chosen, each.which)
    else if (each.do === 'receive') chosen.reports.shift()?.()
    else if (each.do === 'add') {
      if (active.includes(chosen)) continue
      active.push(chosen)
      shares.add(chosen)
    } else if (each.do === 'leave') {
      if (active.length === 1 || !active.includes(chosen)) continue
      active.splice(active.indexOf(chosen), 1)
      shares.leave(chosen)
    } else {
      current = each.limit
      highest = Math.max(highest, current)
      shares.setLimit(current)
    }
    assert.ok(seen.most <= highest, `${seen.most} in flight with a limit of ${highest}`)
  }
  finish()
  assert.ok(seen.most <= highest)
  assert.equal(seen.ended, seen.given)
  assert.deepEqual(new Set(shares.senders), new Set(active))
  // Everyone has an equal share again, and all of it is used.
  const limits = active.map((each) => each.limit)
  assert.equal(
    limits.reduce((sum, each) => sum + each, 0),
    current,
  )
  assert.ok(Math.max(...limits) - Math.min(...limits) <= 1)
}

for (const isConstant of [true, false]) {
  const title = isConstant ? 'the limit is never exceeded' : 'with a limit that changes, the highest one is never exceeded'
  test(`${title}, whatever the order of commands and reports, and every unit ends`, () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.nat(30), fc.array(step, { maxLength: 300, size: 'max' }), (limit, before, steps) =>
        check(limit, before, isConstant ? steps.filter((each) => each.do !== 'limit') : steps),
      ),
      { numRuns: 500 },
    )
  })
}

test('units given to senders whose limit is 0 for the moment are sent after the limit has changed several times', () => {
  const give = (holder: number | null = null): Step => ({ do: 'give', holder })
  const setLimit = (limit: number): Step => ({ do: 'limit', limit })
  // Two senders lose their share, get one again, and then get new units before they have reported that the earlier ones were recalled.
  const senders: Step[] = [
    { do: 'add', sender: 3 },
    { do: 'add', sender: 1 },
  ]
  const before = [give(), give(), setLimit(2), give(), give(), setLimit(6), give(), give(), give()]
  check(1, 0, [...senders, ...before, setLimit(1), setLimit(3), give(), give(3), give(), give(1)])
})

test('a sender that joins gets its share as the first one gives it up', () => {
  const { models, home, shares, carryOut, give, answer } = rig(4)
  const second = models[1] as Model
  shares.add(home)
  carryOut(home)
  for (let nth = 0; nth < 8; nth++) {
    give(home)
    carryOut(home)
  }
  shares.add(second)
  const next = shares.next
  give(second)
  for (const each of [home, second]) while (each.commands.length > 0) carryOut(each)
  assert.deepEqual([next === second, home.inFlight.length, home.limit, second.limit], [true, 4, 2, 0])
  // Three of eight are in flight or waiting: at most three are in flight.
  for (let nth = 0; nth < 5; nth++) {
    answer(home, 0)
    home.reports.shift()?.()
  }
  while (second.commands.length > 0) carryOut(second)
  assert.deepEqual([home.units, second.limit, second.inFlight.length], [3, 1, 1])
})
