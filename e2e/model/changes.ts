// What the steps of the protocol change, each as a function of the state. Those in the first half are statements of the database: each is one
// transaction, and names the file of packages/server/src/store/postgres that has it. m, n and t are the indexes of a message, a node and a task.

import type { Mutant } from './mutants.ts'
import { type Holder, holderOf, isCurrent, type Message, type Node, nodeOf, type Row, type State, type Task } from './state.ts'

export type Change = (state: State) => unknown

const edit =
  (m: number, change: (message: Message) => unknown): Change =>
  ({ messages }) =>
    change(messages[m] as Message)

/** messages/accepting.ts: stores the message and its shipment, held by the node that stores it, or by nobody. */
export function store(m: number, holder: Holder): Change {
  return edit(m, (message) => {
    const row = { id: ++message.lastId, holder, claim: holder === 0 ? 0 : 1 }
    message.owed++
    message.rows.push(row)
    if (holder !== 0) message.tasks.push({ ...row, stage: 'stored', isLeft: false })
  })
}

/** messages/claiming.ts */
export function claim(m: number, at: number, holder: Holder): Change {
  return edit(m, ({ rows, tasks }) => {
    const row = rows[at] as Row
    row.holder = holder
    row.claim++
    tasks.push({ ...row, stage: 'claimed', isLeft: false })
  })
}

/** messages/claiming.ts, in three ways; it changes nothing if there is no such row. */
export function release(m: number, at: number): Change {
  return edit(m, ({ rows }) => at >= 0 && ((rows[at] as Row).holder = 0))
}

/**
 * messages/settling.ts: ends the shipment and counts the outcome; a retry is a new shipment. Refused unless the shipment is held under this holder
 * id and claim number. `by` is the holder id that the node has when it sends the statement.
 */
export function settle(m: number, t: number, by: Holder, mutant: Mutant | null): Change {
  return edit(m, (message) => {
    const { stage, id, claim: number } = message.tasks[t] as Task
    const row = message.rows.find((other) => other.id === id)
    const isHeld = row?.holder === by && row.claim === number
    const isLoose =
      mutant === 'no fence' ||
      (mutant === 'fence by row id' && row !== undefined) ||
      (mutant === 'fence by holder id' && row?.holder === by)
    if (!isHeld && !isLoose) return
    if (row !== undefined && row.holder !== 0 && row.claim !== number) message.settledByOldClaim = true
    message.rows = message.rows.filter((other) => other !== row)
    if (stage === 'retry') message.rows.push({ id: ++message.lastId, holder: 0, claim: 0 })
    else message[stage === 'sent' ? 'delivered' : 'failed']++
  })
}

/** cluster/membership.ts, #join */
export function join(n: number): Change {
  return ({ nodes, members }) => {
    const node = nodes[n] as Node
    Object.assign(node, { status: 'up', joins: node.joins + 1, hasLease: true })
    members.push(holderOf(n, node.joins))
  }
}

/** cluster/dead-nodes.ts, declareDead and releaseEnded */
export function declareDead(dead: Holder): Change {
  return (state) => {
    state.members = state.members.filter((holder) => holder !== dead)
    for (const { rows } of state.messages) for (const row of rows) if (row.holder === dead) row.holder = 0
  }
}

// ── Nodes, receivers and the sender ──

export function set(n: number, change: Partial<Node>): Change {
  return ({ nodes }) => Object.assign(nodes[n] as Node, change)
}

/** A lease passes. A node that is up has renewed its own meanwhile. */
export function passLease({ nodes }: State): void {
  for (const node of nodes) node.hasLease &&= node.status === 'up'
}

/** The process drops what is in these stages. */
export function drop(n: number, stages: readonly Task['stage'][]): Change {
  return ({ messages }) => {
    for (const message of messages)
      message.tasks = message.tasks.filter(({ holder, stage }) => nodeOf(holder) !== n || !stages.includes(stage))
  }
}

/** The process ends. Only settlements that were on the way to the database may still happen. */
export function kill(n: number): Change {
  return (state) => {
    drop(n, ['stored', 'claimed', 'uncertain', 'held'])(state)
    for (const { tasks } of state.messages) for (const task of tasks) task.isLeft ||= nodeOf(task.holder) === n
    set(n, { status: 'down', hasLease: false })(state)
  }
}

/** A fault hits the messages that the node has a claim to, in one of these stages. */
export function hit(n: number, stages: readonly Task['stage'][]): Change {
  return ({ messages }) => {
    for (const message of messages) {
      if (message.tasks.some((task) => nodeOf(task.holder) === n && stages.includes(task.stage) && isCurrent(message, task))) message.hits++
    }
  }
}

export function become(m: number, t: number, stage: Task['stage']): Change {
  return edit(m, ({ tasks }) => ((tasks[t] as Task).stage = stage))
}

export function end(m: number, t: number): Change {
  return edit(m, ({ tasks }) => tasks.splice(t, 1))
}

export const acknowledge = (m: number): Change => edit(m, (message) => (message.acknowledged = true))
export const receive = (m: number): Change => edit(m, (message) => message.received++)
export const hitOne = (m: number): Change => edit(m, (message) => message.hits++)
export const useRefusal: Change = (state) => state.refusalsLeft--
export const useFault: Change = (state) => state.faultsLeft--
