// The protocol by which nodes share the partitions of ordered destinations, as the steps that are possible in a state: see docs/decisions/0110-order.md.
// The rows, their claims and the fence are those of ../protocol.ts, which also has lost answers and late commits. New here are the order of claims
// and starts, the owner of the partition, and requests that reach the receiver late. Nodes are less careful than real ones.

import type { Model, Step } from '../checker.ts'
import { type Holder, holderOf, nodeOf } from '../state.ts'
import type { OrderMutant } from './mutants.ts'
import { AGAIN, FIRST, PROMISES, STARTED } from './promises.ts'
import { type Bounds, copyState, initialState, keyOf, type Message, type Node, type Row, type State, type Task } from './state.ts'

export function createOrderProtocol(bounds: Bounds, mutant: OrderMutant | null = null): Model<State> {
  const invariants = Object.fromEntries(PROMISES.map((promise) => [promise, ({ broken }: State) => !broken.includes(promise)]))
  const isEnd = ({ messages, rows }: State): boolean => rows.length === 0 && messages.every(({ isStored }) => isStored)
  return { initial: initialState(bounds), copy: copyState, steps: (state) => stepsOf(state, mutant), key: keyOf, invariants, isEnd }
}

function stepsOf(state: State, mutant: OrderMutant | null): Step<State>[] {
  const steps: Step<State>[] = []
  const can = (name: string, apply: (draft: State) => void, isOptional = false) => steps.push({ name, isOptional, apply })
  const fault = (name: string, apply: (draft: State) => void) => {
    if (state.faultsLeft === 0) return
    can(`FAULT: ${name}`, (draft) => (draft.faultsLeft--, apply(draft)), true)
  }
  for (const [n, node] of state.nodes.entries()) {
    processSteps(n, node)
    if (node.status !== 'up' || !state.members.includes(me(n))) continue
    memberSteps(n)
  }
  for (const [t, task] of state.tasks.entries()) taskSteps(t, task)
  for (const [r, { message, holder }] of state.requests.entries()) {
    can(`the request of node ${nodeOf(holder)} with message ${message} arrives`, (draft) => arrive(draft, r, message), true)
  }
  if (state.mustWait) can('the requests of the dead owner can no longer arrive', endWait)
  return steps

  function me(n: number): Holder {
    return holderOf(n, (state.nodes[n] as Node).joins)
  }

  function processSteps(n: number, { status, mayStart }: Node): void {
    if (status !== 'down') fault(`node ${n} is killed`, (draft) => set(draft, n, { status: 'down', mayStart: false }))
    if (status === 'up') {
      fault(`node ${n} freezes`, (draft) => set(draft, n, { status: 'frozen' }))
      fault(`node ${n} is cut off`, (draft) => set(draft, n, { status: 'cut' }))
    }
    if (status !== 'up' && mayStart) can(`node ${n} has had no heartbeat for too long`, (draft) => set(draft, n, { mayStart: false }))
    const isMember = state.members.includes(me(n))
    if (status === 'down') can(`node ${n} starts`, (draft) => join(draft, n))
    else if (status !== 'up') can(`node ${n} recovers`, (draft) => set(draft, n, { status: 'up' }))
    else if (!isMember) can(`node ${n} joins again`, (draft) => join(draft, n))
    else if (!mayStart) can(`node ${n} sends a heartbeat`, (draft) => set(draft, n, { mayStart: true }))
    // It drops what it has not started, and its requests end without being recorded.
    if (status === 'up' && isMember) {
      for (const other of state.members) {
        if (nodeOf(other) === n) continue
        const its = state.nodes[nodeOf(other)] as Node
        const runs = its.status === 'up' || its.status === 'frozen'
        const isSame = holderOf(nodeOf(other), its.joins) === other
        if (isSame && runs && its.mayStart) continue
        can(`node ${n} declares node ${nodeOf(other)} dead`, (draft) => declareDead(draft, other))
      }
    }
  }

  function memberSteps(n: number): void {
    const holder = me(n)
    const next = state.messages.findIndex(({ isStored }) => !isStored)
    if (next >= 0) can(`node ${n} stores and acknowledges message ${next}`, (draft) => store(draft, n, next))
    if (state.owner === 0) can(`node ${n} takes the partition`, (draft) => (draft.owner = holder))
    const isIdle = state.tasks.every((task) => task.holder !== holder || mutant === 'give partitions back at once')
    if (state.owner === holder && isIdle) can(`node ${n} gives the partition back`, (draft) => (draft.owner = 0), true)
    if (state.owner !== holder && mutant !== 'no fence on partitions') return
    // Until a failure is recorded, the database does not know of it. What the node claims behind it goes back at once.
    const isStopped = state.tasks.some((task) => task.holder === holder && stops(task)) && mutant !== 'keep what is behind a retry'
    if (isStopped) return
    for (const [at, row] of state.rows.entries()) {
      const isNext = state.rows.every((other) => other.ord >= row.ord || other.holder === holder) || mutant === 'claims in any order'
      if (row.holder === 0 && (isNext || mutant === 'no fence on partitions'))
        can(`node ${n} claims message ${row.message}`, (draft) => claim(draft, at, holder))
    }
  }

  function taskSteps(t: number, { message, ord, holder, stage }: Task): void {
    const n = nodeOf(holder)
    const { status, mayStart } = state.nodes[n] as Node
    const isRunning = status === 'up' || status === 'cut'
    const isMine = me(n) === holder
    if (stage === 'held' && isRunning && isMine) {
      const before = state.tasks.filter((other) => other.holder === holder && other.ord < ord)
      const isFirst = before.every((other) => isReceived(other)) || mutant === 'claims in any order'
      const isAllowed = mayStart || mutant === 'start within the whole lease'
      if (isFirst && isAllowed && !(state.mustWait && state.owner === holder))
        can(`node ${n} starts a request with message ${message}`, (draft) => start(draft, t))
    }
    if (stage === 'running' && status !== 'frozen' && status !== 'down') {
      can(`node ${n} gets 200 for message ${message}`, (draft) => answer(draft, t, 'delivered', true))
      for (const outcome of state.refusalsLeft > 0 ? (['retry', 'failed'] as const) : []) {
        can(`message ${message} of node ${n} is refused: ${outcome}`, (draft) => answer(draft, t, outcome, true))
        // The receiver did not get it, or gets it after the node has given up.
        can(`node ${n} gets no answer to message ${message}: ${outcome}`, (draft) => answer(draft, t, outcome, false))
      }
    }
    // A settlement may reach the database long after its node was declared dead or killed.
    if (stage === 'delivered' || stage === 'failed' || stage === 'retry')
      can(`node ${n} settles message ${message}: ${stage}`, (draft) => settle(draft, t), !(status === 'up' && isMine))
  }

  // ── What the steps change ──

  function store(draft: State, n: number, message: number): void {
    const isBehind = mutant === 'order by the clocks of nodes' && (draft.nodes[n] as Node).isBehind
    ;(draft.messages[message] as Message).isStored = true
    draft.lastOrd++
    draft.rows.push({ message, ord: isBehind ? draft.lastOrd - 10 : draft.lastOrd, holder: 0, claim: 0 })
  }

  function claim(draft: State, at: number, holder: Holder): void {
    const row = draft.rows[at] as Row
    row.holder = holder
    row.claim = ++draft.lastClaim
    draft.tasks.push({ ...row, stage: 'held' })
  }

  function start(draft: State, t: number): void {
    const task = draft.tasks[t] as Task
    const isFirst =
      (draft.messages[task.message] as Message).arrivals === 0 && draft.requests.every(({ message }) => message !== task.message)
    const before = draft.messages.slice(0, task.message)
    if (isFirst && before.some(({ hasEnded }) => !hasEnded)) draft.broken.push(STARTED)
    task.stage = 'running'
    draft.requests.push({ message: task.message, holder: task.holder })
  }

  function answer(draft: State, t: number, stage: 'delivered' | 'failed' | 'retry', arrives: boolean): void {
    const task = draft.tasks[t] as Task
    if (stage !== 'delivered') draft.refusalsLeft--
    // Without an answer, the request of this node may still be on its way: it was given up, and its connection is closed at its deadline.
    const r = draft.requests.findIndex(({ message, holder }) => message === task.message && holder === task.holder)
    if (arrives && r >= 0) arrive(draft, r, task.message)
    else if (r >= 0) draft.requests.splice(r, 1)
    task.stage = stage
    if (isReceived(task)) (draft.messages[task.message] as Message).hasEnded = true
    if (stops(task) && mutant !== 'keep what is behind a retry') giveBack(draft, task.holder, task.ord + 1)
  }

  /** Its key goes on before the outcome is recorded. */
  function isReceived({ stage }: Task): boolean {
    return stage === 'delivered' || (stage === 'failed' && mutant === 'go on before a failure is recorded')
  }

  function stops(task: Task): boolean {
    return (task.stage === 'retry' || task.stage === 'failed') && !isReceived(task)
  }

  function settle(draft: State, t: number): void {
    const [{ message, ord, holder, claim: number, stage }] = draft.tasks.splice(t, 1) as [Task]
    const at = draft.rows.findIndex((row) => row.message === message && row.holder === holder && row.claim === number)
    const loose = mutant === 'no fence on rows' ? draft.rows.findIndex((row) => row.message === message) : -1
    const found = at >= 0 ? at : loose
    // The message is sent again.
    if (found < 0) return void ((draft.messages[message] as Message).wasInFlight = true)
    draft.rows.splice(found, 1)
    if (stage !== 'retry') (draft.messages[message] as Message).hasEnded = true
    if (stage !== 'retry') return
    const behind = mutant === 'retry behind the next message'
    draft.rows.push({ message, ord: behind ? ++draft.lastOrd : ord, holder: 0, claim: 0 })
  }

  function declareDead(draft: State, dead: Holder): void {
    draft.members = draft.members.filter((holder) => holder !== dead)
    const held = draft.rows.filter(({ holder }) => holder === dead)
    for (const row of held) row.holder = 0
    markInFlight(draft)
    if (draft.owner !== dead || mutant === 'partitions of dead nodes stay theirs') return
    draft.owner = 0
    if (held.length > 0) draft.mustWait = true
  }

  /** The last heartbeat of the dead owner is longer ago than it may start requests after one, and then the deadline of a request has passed. */
  function endWait(draft: State): void {
    draft.mustWait = false
    if (mutant !== 'takeover without waiting for the deadline of old requests')
      draft.requests = draft.requests.filter(({ holder }) => draft.members.includes(holder))
    markInFlight(draft)
    for (const [n, node] of draft.nodes.entries()) {
      const isMember = draft.members.includes(holderOf(n, node.joins))
      if (!isMember) node.mayStart = false
    }
  }

  /** What a dead node has started, and not recorded, is sent again. */
  function markInFlight({ members, tasks, messages }: State): void {
    for (const { message, holder, stage } of tasks)
      if (!members.includes(holder) && stage !== 'held') (messages[message] as Message).wasInFlight = true
  }

  function join(draft: State, n: number): void {
    const node = draft.nodes[n] as Node
    // A process that has started again knows nothing. One that was declared dead drops what it has not started.
    draft.tasks = draft.tasks.filter(({ holder, stage }) => nodeOf(holder) !== n || (stage !== 'held' && stage !== 'running'))
    Object.assign(node, { status: 'up', joins: node.joins + 1, mayStart: true })
    draft.members.push(holderOf(n, node.joins))
  }

  /** Gives back what the node holds and has not started, from a place in the order on. */
  function giveBack(draft: State, holder: Holder, fromOrd: number): void {
    for (const task of draft.tasks.filter((other) => other.holder === holder && other.stage === 'held' && other.ord >= fromOrd)) {
      draft.tasks.splice(draft.tasks.indexOf(task), 1)
      const row = draft.rows.find(({ message, claim: number }) => message === task.message && number === task.claim)
      if (row !== undefined) row.holder = 0
    }
  }

  function arrive(draft: State, r: number, message: number): void {
    draft.requests.splice(r, 1)
    const it = draft.messages[message] as Message
    if (draft.messages.slice(message + 1).some(({ arrivals }) => arrivals > 0)) {
      if (it.arrivals === 0) draft.broken.push(FIRST)
      else if (!it.wasInFlight) draft.broken.push(AGAIN)
    }
    it.arrivals++
  }

  function set(draft: State, n: number, change: Partial<Node>): void {
    Object.assign(draft.nodes[n] as Node, change)
  }
}
