// The protocol by which nodes share deliveries: the steps that are possible in a state. changes.ts says what they change, and checker.ts explores
// all of them. Comments name the files of packages/server/src/store/postgres that the steps stand for; decision 0067 says what the model leaves
// out. Nodes in the model are less careful than real ones: a step has only the conditions that correctness depends on.

import * as after from './changes.ts'
import type { Model, Step } from './checker.ts'
import { INVARIANTS, isEnd } from './invariants.ts'
import type { Mutant } from './mutants.ts'
import { type Bounds, copyState, holderOf, initialState, isSent, type Message, type Node, nodeOf, type State, type Task } from './state.ts'
import { keyOf } from './symmetry.ts'

export function createProtocol(bounds: Bounds, mutant: Mutant | null = null): Model<State> {
  const initial = initialState(bounds, mutant === 'lease by the clock of the node')
  const steps = (state: State) => stepsOf(state, mutant)
  const key = (state: State) => keyOf(state, mutant === null)
  return { initial, copy: copyState, steps, key, invariants: INVARIANTS, isEnd }
}

function stepsOf({ nodes, members, messages, faultsLeft, refusalsLeft }: State, mutant: Mutant | null): Step<State>[] {
  const steps: Step<State>[] = []
  const add = (isOptional: boolean, name: string, changes: after.Change[]): void => {
    steps.push({ name, isOptional, apply: (draft) => changes.forEach((change) => change(draft)) })
  }
  const can = (name: string, ...changes: after.Change[]) => add(false, name, changes)
  const chance = (name: string, ...changes: after.Change[]) => add(true, name, changes)
  const fault = (name: string, ...changes: after.Change[]) => {
    if (faultsLeft > 0) chance(`FAULT: ${name}`, after.useFault, ...changes)
  }

  // cluster/membership.ts: leases end by the server's clock.
  if (nodes.some(({ status, hasLease }) => status !== 'up' && hasLease)) can('a lease passes', after.passLease)
  for (const [n, node] of nodes.entries()) {
    const isMember = members.includes(holderOf(n, node.joins))
    processSteps(n, node, isMember)
    if (node.status === 'up') declareDeadSteps(n, node)
    for (const [m, message] of messages.entries()) {
      if (node.status === 'up' && isMember) acceptSteps(n, node, m, message)
      if (node.status === 'up') for (const at of message.rows.keys()) rowSteps(n, node, isMember, m, message, at)
      for (const [t, task] of message.tasks.entries()) if (nodeOf(task.holder) === n) taskSteps(n, node, m, message, t, task)
    }
  }
  return steps

  function processSteps(n: number, { status, hasLease }: Node, isMember: boolean): void {
    if (status !== 'down') fault(`node ${n} is killed`, after.hit(n, ['sent']), after.kill(n))
    if (status === 'up') {
      // A frozen process keeps its session. One that is cut off has none, and may send what it holds while its lease lasts.
      fault(`node ${n} freezes`, after.hit(n, ['sent']), after.set(n, { status: 'frozen' }))
      fault(`node ${n} is cut off`, after.hit(n, ['stored', 'claimed', 'uncertain', 'held', 'sent']), after.set(n, { status: 'cut' }))
    }
    // cluster/membership.ts: a node that was declared dead drops what it has not sent, and joins under another holder id.
    if (status === 'down') can(`node ${n} starts`, after.join(n))
    else if (status !== 'up') can(`node ${n} recovers`, after.set(n, { status: 'up' }))
    else if (!isMember) can(`node ${n} joins again`, after.drop(n, ['held', 'uncertain']), after.join(n))
    else if (!hasLease) can(`node ${n} renews its lease`, after.set(n, { hasLease: true }))
  }

  // cluster/membership.ts, node-locks.ts: a node declares another dead whose lease or session has ended, and releases what it held.
  function declareDeadSteps(n: number, { joins, clockIsAhead }: Node): void {
    for (const other of mutant === 'no takeover' ? [] : members) {
      const its = nodes[nodeOf(other)] as Node
      const isRunning = holderOf(nodeOf(other), its.joins) === other && its.status !== 'down'
      const hasSession = isRunning && its.status !== 'cut'
      const hasLease = its.hasLease && !(mutant === 'lease by the clock of the node' && clockIsAhead)
      if (other === holderOf(n, joins) || (hasSession && hasLease)) continue
      const name = `node ${n} declares node ${nodeOf(other)} dead`
      can(name, after.declareDead(other))
      // An accept or claim that has seen the row of its node, and the shipment as free, may commit just after the row of the node is gone.
      for (const [m, { owed, rows, tasks }] of messages.entries()) {
        const at = rows.findIndex(({ holder }) => holder === 0)
        if (owed > 0 && at < 0) continue
        const changes = [after.declareDead(other), owed === 0 ? after.store(m, other) : after.claim(m, at, other)]
        if (!isRunning) changes.push(after.end(m, tasks.length))
        if (its.status === 'cut') changes.push(after.hitOne(m))
        chance(`${name}, which takes message ${m} at the same moment`, ...changes)
      }
    }
  }

  // messages/accepting.ts: refused if this node was declared dead. The sender repeats the message until it is acknowledged.
  function acceptSteps(n: number, { joins }: Node, m: number, { acknowledged, owed }: Message): void {
    if (acknowledged) return
    if (owed === 0 || mutant === 'no deduplication') {
      can(`node ${n} stores message ${m}, held by itself`, after.store(m, holderOf(n, joins)))
      can(`node ${n} stores message ${m}, held by nobody`, after.store(m, 0))
    }
    if (owed > 0 || mutant === 'acknowledge before the commit') can(`node ${n} acknowledges message ${m}`, after.acknowledge(m))
  }

  function rowSteps(n: number, { joins }: Node, isMember: boolean, m: number, { rows, tasks }: Message, at: number): void {
    const me = holderOf(n, joins)
    const { id, holder, claim } = rows[at] as Message['rows'][number]
    // messages/claiming.ts: refused if this node was declared dead.
    const isFree = holder === 0 || (mutant === 'claim what others hold' && holder !== me)
    const mayClaim = isMember || mutant === 'claim after being declared dead'
    if (isFree && mayClaim) can(`node ${n} claims message ${m}`, after.claim(m, at, me))
    // cluster/dead-nodes.ts, releaseOrphans
    const isOrphan = holder !== 0 && !members.includes(holder) && mutant !== 'orphans stay'
    if (isOrphan) can(`node ${n} releases message ${m}, an orphan`, after.release(m, at))
    // messages/claiming.ts, #releaseStrays: this node holds the row without knowing it. It waits until all statements have ended.
    const isAwaited = (stage: Task['stage']) => stage !== 'claimed' || mutant !== 'release strays at once'
    const isKnown = tasks.some((task) => task.holder === me && task.id === id && task.claim === claim && isAwaited(task.stage))
    if (holder === me && !isKnown && mutant !== 'strays stay') can(`node ${n} releases message ${m}, a stray`, after.release(m, at))
  }

  function taskSteps(n: number, { status, joins, hasLease }: Node, m: number, { rows, tasks }: Message, t: number, task: Task): void {
    const { stage, holder, isLeft } = task
    const isMine = holder === holderOf(n, joins)
    const isUp = status === 'up' && !isLeft
    const isRunning = isUp || (status === 'cut' && !isLeft)
    // messages/accepting.ts, claiming.ts: the answer arrives, or not. If the node has joined again meanwhile, it no longer holds the shipment.
    if (isUp && (stage === 'stored' || stage === 'claimed')) {
      const next = isMine || mutant === 'keep late claims' ? after.become(m, t, 'held') : after.end(m, t)
      if (stage === 'stored') can(`node ${n} has stored message ${m} and acknowledges it`, after.acknowledge(m), next)
      else can(`node ${n} has claimed message ${m}`, next)
      const isNoted = stage === 'stored' && isMine
      fault(`node ${n} has ${stage} message ${m}, but gets no answer`, isNoted ? after.become(m, t, 'uncertain') : after.end(m, t))
    }
    // messages/claiming.ts, #releaseUncertain: if the accept has committed, the shipment is still held under its first claim.
    if (isUp && stage === 'uncertain') {
      const isInMemory = tasks.some((other) => other.id === task.id && (other.stage === 'held' || isSent(other.stage)))
      const isAnyClaim = mutant === 'release without a claim number' && !isInMemory
      const at = rows.findIndex((row) => row.id === task.id && row.holder === holder && (row.claim === task.claim || isAnyClaim))
      can(`node ${n} releases message ${m}, if it was stored`, after.release(m, at), after.end(m, t))
      if (at >= 0) fault(`node ${n} releases message ${m}, but gets no answer`, after.release(m, at))
    }
    // delivery/lanes/lane.ts: starts nothing without a lease, by the monotonic clock of the node.
    if (isRunning && stage === 'held' && (hasLease || mutant === 'send without a lease')) {
      can(`node ${n} sends message ${m}`, after.receive(m), after.become(m, t, 'sent'))
      if (mutant === 'settle before sending') can(`node ${n} counts message ${m} as sent`, after.become(m, t, 'sent'))
      for (const outcome of refusalsLeft > 0 ? (['retry', 'failed'] as const) : [])
        can(`node ${n} sends message ${m}, which is refused: ${outcome}`, after.useRefusal, after.become(m, t, outcome))
    }
    if (isRunning && stage === 'sent') fault(`node ${n} gets no answer to message ${m}`, after.hitOne(m), after.become(m, t, 'retry'))
    // messages/settling.ts: the database may execute a settlement long after it was sent, and after its node has joined again.
    if (isSent(stage)) {
      const offer = isUp && isMine ? can : chance
      const write = (by: number) => after.settle(m, t, by, mutant)
      offer(`node ${n} settles message ${m}: ${stage}`, write(holder), after.end(m, t))
      if (isUp && !isMine) chance(`node ${n} settles message ${m} as a new node: ${stage}`, write(holderOf(n, joins)), after.end(m, t))
      fault(`node ${n} settles message ${m}: ${stage}, but gets no answer`, write(holder))
    }
  }
}
