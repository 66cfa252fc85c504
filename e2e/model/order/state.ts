// A state of the model of ordered deliveries: one partition of one destination, with the messages of one key. Plain data. Messages of other keys and
// partitions do not wait for these, so one of each is enough to find an inversion. The sender sends each message after the one before was acknowledged.

import { type Holder, holderOf } from '../state.ts'

/** A row of the queue: the message, its place in the order of acceptance, and who holds it under which claim. */
export interface Row {
  message: number
  ord: number
  holder: Holder
  claim: number
}

/**
 * What a process does with a message: `held`: in memory. `running`: a request was started. `delivered`, `failed`, `retry`: it has an outcome that is
 * not recorded.
 */
export interface Task {
  message: number
  ord: number
  holder: Holder
  claim: number
  stage: 'held' | 'running' | 'delivered' | 'failed' | 'retry'
}

/** A request that was started and has not reached the receiver. It may still do so until its deadline. */
export interface Request {
  message: number
  holder: Holder
}

export interface Node {
  /** `cut`: it runs, but does not reach the database. */
  status: 'up' | 'frozen' | 'cut' | 'down'
  joins: number
  /** Its last heartbeat is so recent that it may start ordered requests, by its monotonic clock. */
  mayStart: boolean
  /** Its clock is behind. Only a mutant reads it. */
  isBehind: boolean
}

export interface Message {
  isStored: boolean
  /** A process, or the database, knows that its delivery has ended. */
  hasEnded: boolean
  /** How often it reached the receiver, and whether it was in flight, or had an outcome that was not recorded, when its node died or had to stop. */
  arrivals: number
  wasInFlight: boolean
}

export interface State {
  members: Holder[]
  /** The owner of the partition; 0 for none. */
  owner: Holder
  /** The new owner waits until requests of the dead one can no longer arrive. */
  mustWait: boolean
  nodes: Node[]
  messages: Message[]
  rows: Row[]
  tasks: Task[]
  requests: Request[]
  lastOrd: number
  lastClaim: number
  faultsLeft: number
  refusalsLeft: number
  /** The promises that were broken: see invariants in protocol.ts. */
  broken: string[]
}

export interface Bounds {
  nodes: number
  messages: number
  faults: number
  refusals: number
}

export function initialState({ nodes, messages, faults, refusals }: Bounds): State {
  return {
    members: Array.from({ length: nodes }, (_, n) => holderOf(n, 1)),
    owner: 0,
    mustWait: false,
    nodes: Array.from({ length: nodes }, (_, n) => ({ status: 'up', joins: 1, mayStart: true, isBehind: n > 0 })),
    messages: Array.from({ length: messages }, () => ({ isStored: false, hasEnded: false, arrivals: 0, wasInFlight: false })),
    rows: [],
    tasks: [],
    requests: [],
    lastOrd: 0,
    lastClaim: 0,
    faultsLeft: faults,
    refusalsLeft: refusals,
    broken: [],
  }
}

export function copyState(state: State): State {
  return {
    ...state,
    members: [...state.members],
    nodes: state.nodes.map((node) => ({ ...node })),
    messages: state.messages.map((message) => ({ ...message })),
    rows: state.rows.map((row) => ({ ...row })),
    tasks: state.tasks.map((task) => ({ ...task })),
    requests: state.requests.map((request) => ({ ...request })),
    broken: [...state.broken],
  }
}

/** Equal for states that differ only in how often nodes have joined, and in claim numbers and places that have the same order. */
export function keyOf(state: State): string {
  const { members, owner, mustWait, nodes, messages, rows, tasks, requests, faultsLeft, refusalsLeft, broken } = state
  const name = (holder: Holder): string => {
    if (holder === 0) return '-'
    const n = Math.floor(holder / 100)
    return `${n}${(nodes[n] as Node).joins - (holder % 100)}`
  }
  const ords = [...new Set([...rows, ...tasks].map(({ ord }) => ord))].sort((a, b) => a - b)
  const parts = [
    members.map(name).sort().join(),
    name(owner) + Number(mustWait),
    nodes.map(({ status, mayStart }) => status.charAt(0) + Number(mayStart)).join(),
    messages.map((m) => `${Number(m.isStored)}${Number(m.hasEnded)}${Math.min(m.arrivals, 1)}${Number(m.wasInFlight)}`).join(),
    rows
      .map(({ message, ord, holder }) => `${message}/${ords.indexOf(ord)}/${name(holder)}`)
      .sort()
      .join(),
    tasks
      .map(({ message, ord, holder, claim, stage }) => {
        const isCurrent = rows.some((row) => row.message === message && row.holder === holder && row.claim === claim)
        return `${message}/${ords.indexOf(ord)}/${name(holder)}/${stage}/${Number(isCurrent)}`
      })
      .sort()
      .join(),
    requests
      .map(({ message, holder }) => `${message}/${name(holder)}`)
      .sort()
      .join(),
    faultsLeft,
    refusalsLeft,
    broken.join(),
  ]
  return parts.join(';')
}
