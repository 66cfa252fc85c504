// The protocol by which nodes share the partitions of ordered destinations, as the steps that are possible in a state: see docs/decisions/0110-order.md.
// The rows, their claims and the fence are those of ../protocol.ts, which also has lost answers and late commits. New here are the order of claims
// and starts, the owners of partitions, shipments that are not divided, and requests that reach the receiver late. Nodes are less careful than real ones.

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
  if (state.mustWait.includes(true)) can('the requests of the dead owner can no longer arrive', endWait)
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
    const next = state.messages.find(({ isStored }) => !isStored)?.request
    if (next !== undefined) storeSteps(n, next)
    for (const [part, owner] of state.owners.entries()) {
      if (owner === 0) can(`node ${n} takes partition ${part}`, (draft) => (draft.owners[part] = holder))
      const keeps = (row: Row): boolean =>
        row.holder === holder &&
        (partOf(state, row) === part || (row.isUndivided && mutant !== 'give partitions back with an undivided shipment'))
      const isIdle = !state.rows.some(keeps) || mutant === 'give partitions back at once'
      if (owner === holder && isIdle) can(`node ${n} gives partition ${part} back`, (draft) => (draft.owners[part] = 0), true)
    }
    if (state.tasks.some((task) => task.holder === holder && task.stage === 'held'))
      can(`node ${n} gives back what it has not started`, (draft) => giveBack(draft, holder), true)
    const owned = state.owners.filter((owner) => owner === holder).length
    for (const [at, row] of state.rows.entries()) {
      if (row.holder !== 0) continue
      if (row.isUndivided && owned > 0 && owned < state.owners.length)
        can(`node ${n} divides ${row.messages.join('+')}`, (draft) => divide(draft, at))
      const mayClaim = row.isUndivided
        ? owned === state.owners.length || (owned > 0 && mutant === 'claim an undivided shipment without all partitions')
        : state.owners[partOf(state, row) as number] === holder
      if (!mayClaim && mutant !== 'no fence on partitions') continue
      const messages = row.messages.filter((message) => isNext(row, message) && !isLeaving(holder, message))
      if (messages.length > 0) can(`node ${n} claims ${messages.join('+')}`, (draft) => claim(draft, at, messages, holder))
    }
  }

  /** What the node knows of the owners may be a moment old, so it may store a request undivided although it does not own all partitions. */
  function storeSteps(n: number, request: number): void {
    for (const isUndivided of state.owners.length > 1 ? [true, false] : [false])
      can(`node ${n} stores and acknowledges request ${request}${isUndivided ? ', undivided' : ''}`, (draft) =>
        store(draft, n, request, isUndivided),
      )
  }

  /** Whether no earlier message of the key can be claimed. Those that others hold are not read: they are of other partitions. */
  function isNext({ ord }: Row, message: number): boolean {
    if (mutant === 'claims in any order') return true
    return state.rows.every(
      (other) =>
        other.ord >= ord ||
        other.holder !== 0 ||
        !other.messages.some((earlier) => isSameKey(earlier, message)) ||
        (other.isUndivided && mutant === 'claim past an undivided shipment'),
    )
  }

  /** Until a failure is recorded, the database does not know of it. What the node claims behind it, and behind what is on its way back, goes back at once. */
  function isLeaving(holder: Holder, message: number): boolean {
    if (mutant === 'keep what is behind a retry') return false
    const own = state.tasks.filter((task) => task.holder === holder)
    const isOnItsWay = (earlier: number): boolean => isSameKey(earlier, message) && own.every((task) => task.message !== earlier)
    return (
      own.some((task) => stops(task) && isSameKey(task.message, message)) ||
      (state.rows.some((row) => row.holder === holder && row.messages.some(isOnItsWay)) && mutant !== 'claim past what is on its way back')
    )
  }

  function isSameKey(one: number, other: number): boolean {
    return (state.messages[one] as Message).part === (state.messages[other] as Message).part
  }

  function taskSteps(t: number, { message, ord, holder, stage }: Task): void {
    const n = nodeOf(holder)
    const { status, mayStart } = state.nodes[n] as Node
    const isRunning = status === 'up' || status === 'cut'
    const isMine = me(n) === holder
    if (stage === 'held' && isRunning && isMine) {
      const before = state.tasks.filter((other) => other.holder === holder && other.ord < ord && isSameKey(other.message, message))
      const { part } = state.messages[message] as Message
      const isFirst = before.every((other) => isReceived(other)) || mutant === 'claims in any order'
      const isAllowed = mayStart || mutant === 'start within the whole lease'
      if (isFirst && isAllowed && !(state.mustWait[part] && state.owners[part] === holder))
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

  function store(draft: State, n: number, request: number, isUndivided: boolean): void {
    const isBehind = mutant === 'order by the clocks of nodes' && (draft.nodes[n] as Node).isBehind
    const ord = ++draft.lastOrd - (isBehind ? 10 : 0)
    const messages = [...draft.messages.keys()].filter((message) => draft.messages[message]?.request === request)
    for (const message of messages) (draft.messages[message] as Message).isStored = true
    draft.rows.push({ messages, isUndivided: true, ord, holder: 0, claim: 0 })
    if (!isUndivided) divide(draft, draft.rows.length - 1)
  }

  /** Replaces a row by one for each message, at the same place. Messages of one request have different keys. */
  function divide(draft: State, at: number): void {
    const [row] = draft.rows.splice(at, 1) as [Row]
    for (const message of row.messages) draft.rows.push({ ...row, messages: [message], isUndivided: false })
  }

  /** The other messages of the row are put into rows of their own, behind others of their keys. */
  function claim(draft: State, at: number, messages: readonly number[], holder: Holder): void {
    const row = draft.rows[at] as Row
    const left = row.messages.filter((message) => !messages.includes(message))
    if (left.length > 0) divide(draft, draft.rows.push({ ...row, messages: left }) - 1)
    Object.assign(row, { messages: [...messages], holder, claim: ++draft.lastClaim })
    const { ord, claim: number } = row
    for (const message of messages) draft.tasks.push({ message, ord, holder, claim: number, stage: 'held' })
  }

  function start(draft: State, t: number): void {
    const task = draft.tasks[t] as Task
    const isFirst =
      (draft.messages[task.message] as Message).arrivals === 0 && draft.requests.every(({ message }) => message !== task.message)
    const before = draft.messages.slice(0, task.message).filter((_, earlier) => isSameKey(earlier, task.message))
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
    if (stops(task) && mutant !== 'keep what is behind a retry') giveBack(draft, task.holder, task)
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
    const has = (row: Row): boolean => row.messages.includes(message)
    const row = draft.rows.find((one) => has(one) && ((one.holder === holder && one.claim === number) || mutant === 'no fence on rows'))
    // The message is sent again.
    if (row === undefined) return void ((draft.messages[message] as Message).wasInFlight = true)
    row.messages = row.messages.filter((other) => other !== message)
    if (row.messages.length === 0) draft.rows.splice(draft.rows.indexOf(row), 1)
    else releaseIfOver(draft, row)
    if (stage !== 'retry') (draft.messages[message] as Message).hasEnded = true
    if (stage !== 'retry') return
    const behind = mutant === 'retry behind the next message'
    draft.rows.push({ messages: [message], isUndivided: false, ord: behind ? ++draft.lastOrd : ord, holder: 0, claim: 0 })
  }

  function declareDead(draft: State, dead: Holder): void {
    draft.members = draft.members.filter((holder) => holder !== dead)
    const held = draft.rows.filter(({ holder }) => holder === dead)
    for (const row of held) row.holder = 0
    markInFlight(draft)
    if (mutant === 'partitions of dead nodes stay theirs') return
    for (const [part, owner] of draft.owners.entries()) if (owner === dead) draft.owners[part] = 0
    for (const { messages, isUndivided } of held)
      if (!isUndivided || mutant !== 'no wait for the keys of an undivided shipment')
        for (const message of messages) draft.mustWait[(draft.messages[message] as Message).part] = true
  }

  /** The last heartbeat of the dead owner is longer ago than it may start requests after one, and then the deadline of a request has passed. */
  function endWait(draft: State): void {
    draft.mustWait.fill(false)
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

  /** Gives back what the node holds and has not started: everything, or what comes after a message of its key. */
  function giveBack(draft: State, holder: Holder, after?: Task): void {
    const left = new Set(
      draft.tasks.filter(
        (task) =>
          task.holder === holder &&
          task.stage === 'held' &&
          (after === undefined || (task.ord > after.ord && isSameKey(task.message, after.message))),
      ),
    )
    draft.tasks = draft.tasks.filter((task) => !left.has(task))
    for (const row of draft.rows) if (row.holder === holder) releaseIfOver(draft, row)
  }

  /** A message that goes back does so when the last message of its row that was started has ended, and is recorded. A process that was killed releases nothing. */
  function releaseIfOver(draft: State, row: Row): void {
    const isOver = draft.tasks.every(({ holder, claim: number }) => holder !== row.holder || number !== row.claim)
    if (isOver && me(nodeOf(row.holder)) === row.holder) row.holder = 0
  }

  function arrive(draft: State, r: number, message: number): void {
    draft.requests.splice(r, 1)
    const it = draft.messages[message] as Message
    if (draft.messages.some(({ arrivals }, later) => later > message && isSameKey(later, message) && arrivals > 0)) {
      if (it.arrivals === 0) draft.broken.push(FIRST)
      else if (!it.wasInFlight) draft.broken.push(AGAIN)
    }
    it.arrivals++
  }

  function set(draft: State, n: number, change: Partial<Node>): void {
    Object.assign(draft.nodes[n] as Node, change)
  }
}

/** The partition of a row that is divided. */
function partOf({ messages }: State, row: Row): number | null {
  return row.isUndivided ? null : (messages[row.messages[0] as number] as Message).part
}
