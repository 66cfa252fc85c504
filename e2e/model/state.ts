// A state of the model: the database, the processes of the nodes, the sender and the receiver. Plain data.

/** A node has a new holder id each time it joins: 100 × the number of the node + how often it has joined. 0 is nobody. */
export type Holder = number
export const holderOf = (n: number, joins: number): Holder => n * 100 + joins
export const nodeOf = (holder: Holder): number => Math.floor(holder / 100)

/** A row of `shipments`. */
export interface Row {
  id: number
  holder: Holder
  claim: number
}

/**
 * How far a process has come with a message. `stored`, `claimed`: the accept or claim is committed, and the answer of the database is on its way.
 * `uncertain`: the answer to an accept was lost. `held`: in memory. `sent`: the receiver has accepted it, and the node settles it when it has received the 200.
 * `failed`, `retry`: the receiver has rejected it, or its 200 was lost.
 */
export interface Task extends Row {
  stage: 'stored' | 'claimed' | 'uncertain' | 'held' | 'sent' | 'failed' | 'retry'
  /** Its process was killed. Its settlement may have been on the way to the database. */
  isLeft: boolean
}

/** Whether the request was made, so that what is left is to settle it. */
export function isSent(stage: Task['stage']): boolean {
  return stage === 'sent' || stage === 'failed' || stage === 'retry'
}

/** A message and its shipment to one destination. */
export interface Message {
  /** In the database: at most one row, the last id that was used, and the ledger. What is pending is counted from the rows. */
  rows: Row[]
  lastId: number
  owed: number
  delivered: number
  failed: number
  tasks: Task[]
  /** The sender has got a 200. */
  acknowledged: boolean
  /** How often the receiver has accepted it, and how often a fault hit it in flight. */
  received: number
  hits: number
  /** It was settled by a task whose claim was over, while a later claim was in force. */
  settledByOldClaim: boolean
}

export interface Node {
  /** `cut`: it runs, but does not reach the database, and its session there has ended. */
  status: 'up' | 'frozen' | 'cut' | 'down'
  joins: number
  /** Less than a lease has passed since its last heartbeat. The server's clock and the monotonic clock of the node agree on that. */
  hasLease: boolean
  /** Its wall clock is ahead by more than a lease. Only a mutant reads it. */
  clockIsAhead: boolean
}

export interface State {
  /** The rows of the table `nodes`. */
  members: Holder[]
  nodes: Node[]
  messages: Message[]
  faultsLeft: number
  refusalsLeft: number
}

export interface Bounds {
  nodes: number
  messages: number
  /** How many faults may happen, and how often the receiver may refuse a message. */
  faults: number
  refusals: number
}

export function initialState({ nodes, messages, faults, refusals }: Bounds, isClockAhead: boolean): State {
  return {
    members: Array.from({ length: nodes }, (_, n) => holderOf(n, 1)),
    nodes: Array.from({ length: nodes }, (_, n) => ({ status: 'up', joins: 1, hasLease: true, clockIsAhead: isClockAhead && n > 0 })),
    messages: Array.from({ length: messages }, () => ({
      rows: [],
      lastId: 0,
      owed: 0,
      delivered: 0,
      failed: 0,
      tasks: [],
      acknowledged: false,
      received: 0,
      hits: 0,
      settledByOldClaim: false,
    })),
    faultsLeft: faults,
    refusalsLeft: refusals,
  }
}

export function copyState({ members, nodes, messages, faultsLeft, refusalsLeft }: State): State {
  return {
    members: [...members],
    nodes: nodes.map((node) => ({ ...node })),
    messages: messages.map((message) => ({
      ...message,
      rows: message.rows.map((row) => ({ ...row })),
      tasks: message.tasks.map((task) => ({ ...task })),
    })),
    faultsLeft,
    refusalsLeft,
  }
}

/** Whether the database shows the shipment as held under this claim. */
export function isCurrent({ rows }: Message, { id, holder, claim }: Task): boolean {
  return rows.some((row) => row.id === id && row.holder === holder && row.claim === claim)
}
