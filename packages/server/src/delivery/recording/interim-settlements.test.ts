// Which tasks in progress are recorded, and when. The settlements themselves are tested with the tasks.

import assert from 'node:assert/strict'
import test from 'node:test'
import { ManualClock } from '../fixtures/manual-clock.ts'
import type { Task } from '../shipments/task.ts'
import { InterimSettlements } from './interim-settlements.ts'

/** Tasks of 15 messages, of which the test says how many have outcomes. */
function setUp() {
  const clock = new ManualClock()
  const tasks = new Map<string, { size: number; unrecorded: number }>()
  const recorded: string[] = []
  const interim = new InterimSettlements(clock.setTimer, (task) => {
    const found = [...tasks].find(([, each]) => each === (task as unknown)) ?? assert.fail()
    recorded.push(found[0])
    found[1].unrecorded = 0
  })
  const taskOf = (name: string): Task => {
    const task = tasks.get(name) ?? { size: 15, unrecorded: 0 }
    tasks.set(name, task)
    return task as unknown as Task
  }
  return {
    clock,
    interim,
    taskOf,
    end: (name: string, outcomes: number): void => {
      const task = taskOf(name) as unknown as { unrecorded: number }
      for (let ended = 0; ended < outcomes; ended++) {
        task.unrecorded++
        interim.add(taskOf(name))
      }
    },
    /** The names of the tasks that were recorded since the last call. */
    take: () => recorded.splice(0),
  }
}

test('when there are 50 unrecorded outcomes, the tasks with the most are recorded until half are left', () => {
  const { end, take } = setUp()
  for (const [name, outcomes] of [
    ['a', 14],
    ['b', 2],
    ['c', 14],
    ['d', 13],
    ['e', 6],
  ] as const)
    end(name, outcomes)
  assert.deepEqual(take(), [])
  end('b', 1)
  assert.deepEqual(take(), ['a', 'c'])
  end('b', 10)
  end('e', 8)
  assert.deepEqual(take(), [])
})

test('outcomes of a task that is being recorded do not cause others to be recorded, and count when the recording has ended', () => {
  const { end, take, interim, taskOf } = setUp()
  for (const name of ['a', 'b', 'c', 'd']) end(name, 13)
  assert.deepEqual(take(), ['a', 'b'])
  end('a', 12)
  end('b', 12)
  end('e', 1)
  assert.deepEqual(take(), [], 'those that could be recorded have 25 outcomes')
  interim.recordingEnded(taskOf('a'))
  interim.recordIfDue()
  assert.deepEqual(take(), [])
  interim.recordingEnded(taskOf('b'))
  interim.recordIfDue()
  assert.deepEqual(take(), ['c', 'd'])
})

test('everything is recorded after half a second', () => {
  const { end, take, clock } = setUp()
  end('a', 1)
  clock.advance(499)
  assert.deepEqual(take(), [])
  clock.advance(1)
  assert.deepEqual(take(), ['a'])
})
