// Which states are the same for the checker, so that it explores only one of them. Nodes and messages have no properties of their own, so states that
// differ only in how they are numbered are the same; so are states that differ only in how often a node has joined before.

import { type Holder, isCurrent, isSent, type Node, nodeOf, type Row, type State } from './state.ts'

/**
 * Equal for states that are the same. If `isFenced`, what cannot change anything any more is left out too. A claim that is over never becomes current
 * again, because holder ids are not reused and claim numbers grow: once its message is sent, or its node has joined again, all that can
 * still happen is that its settlement is refused. And once a message is stored, it does not matter whether the sender knows that: a repetition is a duplicate.
 */
export function keyOf(state: State, isFenced: boolean): string {
  const processes = state.nodes.map(({ status, hasLease, clockIsAhead }) => status + Number(hasLease) + Number(clockIsAhead))
  const sorted = [...processes].sort()
  let least: string | undefined
  for (const order of permutations(processes.length)) {
    if (processes.some((process, n) => sorted[order[n] as number] !== process)) continue
    const key = keyIn(state, order, isFenced)
    if (least === undefined || key < least) least = key
  }
  return `${sorted.join()};${least}`
}

const LETTERS = { stored: 'a', claimed: 'c', uncertain: 'u', held: 'h', sent: 's', failed: 'f', retry: 'r' }

/** `order` has the new number of each node. Of ids, holder ids and claim numbers, it matters only which are equal, and of the two counts only their difference. */
function keyIn({ nodes, members, messages, faultsLeft, refusalsLeft }: State, order: readonly number[], isFenced: boolean): string {
  const age = (holder: Holder): number => (nodes[nodeOf(holder)] as Node).joins - (holder % 100)
  const name = (holder: Holder): string => (holder === 0 ? '-' : `${order[nodeOf(holder)]}${age(holder)}`)
  const texts: string[] = []
  for (const message of messages) {
    const { rows, owed, delivered, failed, tasks, acknowledged, received, hits, settledByOldClaim } = message
    const known: string[] = []
    for (const task of tasks) {
      const { stage, holder, id, claim, isLeft } = task
      if (isFenced && (isSent(stage) || age(holder) > 0) && !isCurrent(message, task)) continue
      const at = rows.findIndex((row) => row.id === id)
      known.push(LETTERS[stage] + Number(isLeft) + name(holder) + (at < 0 ? '' : `${at}${(rows[at] as Row).claim - claim}`))
    }
    const flags = `${Number(acknowledged && !(isFenced && owed > 0))}${Number(settledByOldClaim)}${Number(received > 0)}${received - hits}`
    texts.push(`${owed}${delivered}${failed}${flags}${rows.map(({ holder }) => name(holder)).join()}:${known.sort().join()}`)
  }
  return [faultsLeft, refusalsLeft, members.map(name).sort().join(), ...texts.sort()].join(';')
}

const cached: number[][][] = [[[]]]
function permutations(count: number): number[][] {
  cached[count] ??= permutations(count - 1).flatMap((rest) =>
    Array.from({ length: count }, (_, at) => [...rest.slice(0, at), count - 1, ...rest.slice(at)]),
  )
  return cached[count]
}
