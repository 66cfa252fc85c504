// A state of the model of ordered deliveries: the messages of one or two keys for one destination, each key in a partition of its own. Plain data.
// Messages of different keys wait for each other only in shipments that are not divided, so two keys are enough to find an inversion. The sender sends
// each request after the one before was acknowledged.

import { type Holder, holderOf, nodeOf } from '../state.ts'

/**
 * A row of the queue: its messages, its place in the order of acceptance, and who holds it under which claim. If it is divided, its messages are of one
 * partition.
 */
export interface Row {
  messages: number[]
  isUndivided: boolean
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
  /** The number of its request, and of its partition. */
  request: number
  part: number
  /** Whether it is the last message of its key, and the only one. */
  isLast: boolean
  isAlone: boolean
  isStored: boolean
  /** A process, or the database, knows that its delivery has ended. */
  hasEnded: boolean
  /** How often it reached the receiver, and whether it was in flight, or had an outcome that was not recorded, when its node died or had to stop. */
  arrivals: number
  wasInFlight: boolean
}

export interface State {
  members: Holder[]
  /** The owner of each partition; 0 for none. */
  owners: Holder[]
  /** Of which partitions the new owner waits until requests of the dead one can no longer arrive. */
  mustWait: boolean[]
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
  /** With two partitions, shipments may be undivided. */
  parts: number
  /** The requests of the sender. Each letter is a message of the key `a` or `b`. */
  requests: readonly string[]
  faults: number
  refusals: number
}

export function initialState({ nodes, parts, requests, faults, refusals }: Bounds): State {
  return {
    members: Array.from({ length: nodes }, (_, n) => holderOf(n, 1)),
    owners: Array.from({ length: parts }, () => 0),
    mustWait: Array.from({ length: parts }, () => false),
    nodes: Array.from({ length: nodes }, (_, n) => ({ status: 'up', joins: 1, mayStart: true, isBehind: n > 0 })),
    messages: messagesOf(requests),
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

function messagesOf(requests: readonly string[]): Message[] {
  const all = requests.flatMap((keys, request) => Array.from(keys, (key) => ({ key, request })))
  return all.map(({ key, request }, at) => {
    const others = all.flatMap((other, place) => (other.key === key && place !== at ? [place] : []))
    const part = 'ab'.indexOf(key)
    const [isLast, isAlone] = [others.every((place) => place < at), others.length === 0]
    return { request, part, isLast, isAlone, isStored: false, hasEnded: false, arrivals: 0, wasInFlight: false }
  })
}

export function copyState(state: State): State {
  return {
    ...state,
    members: [...state.members],
    owners: [...state.owners],
    mustWait: [...state.mustWait],
    nodes: state.nodes.map((node) => ({ ...node })),
    messages: state.messages.map((message) => ({ ...message })),
    rows: state.rows.map((row) => ({ ...row, messages: [...row.messages] })),
    tasks: state.tasks.map((task) => ({ ...task })),
    requests: state.requests.map((request) => ({ ...request })),
    broken: [...state.broken],
  }
}

/**
 * Equal for states that differ only in the numbers of nodes, in how often these have joined, in claim numbers and places that have the same order, and in
 * what no promise depends on. `isBehind` of nodes, which only a mutant reads, is left out.
 */
export function keyOf(state: State): string {
  let least: string | undefined
  for (const order of ORDERS[state.nodes.length] as number[][]) {
    const key = keyInOrder(state, order)
    if (least === undefined || key < least) least = key
  }
  return least as string
}

/** All orders of so many nodes. */
const ORDERS = [0, 1, 2, 3].map((count) => ordersOf(Array.from({ length: count }, (_, n) => n)))

function ordersOf(nodes: readonly number[]): number[][] {
  if (nodes.length === 0) return [[]]
  return nodes.flatMap((n) => ordersOf(nodes.filter((other) => other !== n)).map((rest) => [n].concat(rest)))
}

/** `order`: the number of the node at each place. */
function keyInOrder(state: State, order: readonly number[]): string {
  const { members, owners, mustWait, nodes, messages, rows, tasks, requests, faultsLeft, refusalsLeft, broken } = state
  const name = (holder: Holder): string => {
    if (holder === 0) return '-'
    const n = nodeOf(holder)
    return `${order.indexOf(n)}${holderOf(n, (nodes[n] as Node).joins) - holder}`
  }
  const places = [...new Set([...rows, ...tasks].map(({ ord }) => ord))].sort((a, b) => a - b)
  const parts = [
    sorted(members, name),
    owners.map((owner, part) => name(owner) + Number(mustWait[part])).join(),
    order.map((n) => `${(nodes[n] as Node).status.charAt(0)}${Number((nodes[n] as Node).mayStart)}`).join(),
    messages.map(factsOf).join(),
    sorted(rows, (row) => `${row.messages.join('+')}/${Number(row.isUndivided)}/${places.indexOf(row.ord)}/${name(row.holder)}`),
    sorted(tasks, ({ message, ord, holder, claim, stage }) => {
      const isCurrent = rows.some((row) => row.messages.includes(message) && row.holder === holder && row.claim === claim)
      return `${message}/${places.indexOf(ord)}/${name(holder)}/${stage}/${Number(isCurrent)}`
    }),
    sorted(
      requests.filter(({ message }) => !messages[message]?.isAlone),
      ({ message, holder }) => `${message}/${name(holder)}`,
    ),
    faultsLeft,
    refusalsLeft,
    broken.join(),
  ]
  return parts.join(';')
}

/** The promises are about messages of one key: how the last of them ended, and whether the only one arrived, changes nothing. */
function factsOf({ isStored, hasEnded, arrivals, wasInFlight, isLast, isAlone }: Message): number {
  return Number(isStored) + 2 * Number(!isLast && hasEnded) + 4 * Number(!isAlone && arrivals > 0) + 8 * Number(!isLast && wasInFlight)
}

function sorted<T>(items: readonly T[], text: (item: T) => string): string {
  if (items.length === 0) return ''
  return items.map(text).sort().join()
}
