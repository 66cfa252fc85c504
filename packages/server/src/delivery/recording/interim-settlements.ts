// Decides when the outcomes of tasks that are still in progress are recorded, so that when a process is killed, at most 100 messages, all of
// the last second, have an outcome that is not in the store. A short task, which is the usual case, is recorded once, at its end.
// Invariant: a task has at most one settlement in progress, because each builds on the previous one.

import type { CancelTimer, SetTimer } from '../../timing/timers.ts'
import type { Task } from '../shipments/task.ts'

/** A single task with at most this many messages is not recorded early because of its number of outcomes. */
const SMALL_TASK = 100
/** Half of what is promised. The other half is for outcomes that arrive while the store commits. */
const RECORD_AT = 50
const RECORD_AFTER_MS = 500

export class InterimSettlements {
  readonly #setTimer: SetTimer
  readonly #record: (task: Task) => void
  /** Tasks in progress, with the number of outcomes reported to add() and not yet recorded. */
  readonly #tasks = new Map<Task, number>()
  readonly #recording = new Set<Task>()
  /** How many of these outcomes can be recorded now: those of tasks without a settlement in progress. */
  #count = 0
  #cancelTimer: CancelTimer | null = null

  /** `record` creates the task's settlement synchronously; recordingEnded() must be called when it has ended. */
  constructor(setTimer: SetTimer, record: (task: Task) => void) {
    this.#setTimer = setTimer
    this.#record = record
  }

  isRecording(task: Task): boolean {
    return this.#recording.has(task)
  }

  /** Adds the new outcomes of a task that is still in progress, if there are any. */
  add(task: Task): void {
    const more = task.unrecorded - (this.#tasks.get(task) ?? 0)
    if (more === 0) return
    this.#tasks.set(task, task.unrecorded)
    if (!this.#recording.has(task)) this.#count += more
    this.recordIfDue()
  }

  /** Called when the task is over, or its outcomes are being recorded. */
  forget(task: Task): void {
    if (!this.#recording.has(task)) this.#count -= this.#tasks.get(task) ?? 0
    this.#tasks.delete(task)
  }

  recordingEnded(task: Task): void {
    if (this.#recording.delete(task)) this.#count += this.#tasks.get(task) ?? 0
  }

  close(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = null
  }

  recordIfDue(): void {
    if (this.#tasks.size === 0) return
    if (this.#count >= RECORD_AT && !this.#isOneSmallTask) this.#recordLargest()
    this.#cancelTimer ??= this.#setTimer(() => {
      this.#cancelTimer = null
      this.#recordAll()
      this.recordIfDue()
    }, RECORD_AFTER_MS)
  }

  get #isOneSmallTask(): boolean {
    if (this.#tasks.size > 1) return false
    for (const { size } of this.#tasks.keys()) return size <= SMALL_TASK
    return true
  }

  #recordAll(): void {
    for (const task of this.#tasks.keys()) this.#recordOne(task)
  }

  /** Those with the most outcomes, until half are left: each settlement is a record of its own, and the other tasks may soon be over. */
  #recordLargest(): void {
    const largest = [...this.#tasks].filter(([task]) => !this.#recording.has(task)).sort(([, a], [, b]) => b - a)
    for (const [task] of largest) {
      if (this.#count <= RECORD_AT / 2) return
      this.#recordOne(task)
    }
  }

  #recordOne(task: Task): void {
    if (this.#recording.has(task)) return
    this.forget(task)
    this.#recording.add(task)
    this.#record(task)
  }
}
