// Checks whether the calls were linearizable: whether some order explains them in which the operations are made one after the other, no
// operation comes before one that ended before it began, and all answers and the configuration at the end are the same. A call whose answer was
// lost is made completely, at any time after its start, or not at all. The search tries every such order.

import { applied, type Operation, type State, shown, sortedJson } from './model.ts'

export interface Call {
  operation: Operation
  node: string
  /** performance.now() */
  startMs: number
  /** Infinity if the answer was lost. */
  endMs: number
  /** `shown` is the resource in the answer. */
  outcome: { is: 'done'; shown?: string } | { is: 'refused'; code: string } | { is: 'lost' }
}

const MOST_STEPS = 200_000

/** Returns undefined if the calls can be explained, otherwise the largest part that can be, in words. */
export function unexplained(from: State, calls: readonly Call[], found: State): string | undefined {
  const goal = sortedJson(found)
  const seen = new Set<string>()
  let longest: readonly number[] = []
  let closest = from
  let steps = 0

  const search = (state: State, order: readonly number[]): boolean => {
    const done = new Set(order)
    const left = calls.flatMap((_, at) => (done.has(at) ? [] : [at]))
    const text = sortedJson(state)
    if (left.every((at) => calls[at]?.outcome.is === 'lost') && text === goal) return true
    const key = `${left.join()} ${text}`
    if (seen.has(key) || ++steps > MOST_STEPS) return false
    seen.add(key)
    if (order.length > longest.length) {
      longest = order
      closest = state
    }
    const firstEndMs = Math.min(...left.map((at) => (calls[at] as Call).endMs))
    return left.some((at) => {
      const call = calls[at] as Call
      if (call.startMs > firstEndMs) return false
      const next = after(state, call)
      return next !== undefined && search(next, [...order, at])
    })
  }
  if (search(from, [])) return undefined
  const rest = calls.filter((_, at) => !longest.includes(at))
  return [
    steps > MOST_STEPS
      ? `No order of the calls was found within ${MOST_STEPS} steps.`
      : 'No order of the calls explains their answers and the configuration.',
    `Before: ${sortedJson(from)}`,
    `Explained: ${longest.map((at) => describe(calls[at] as Call)).join('; ')}`,
    `Then: ${sortedJson(closest)}`,
    `Not explained: ${rest.map(describe).join('; ')}`,
    `Found: ${goal}`,
  ].join('\n')
}

/** The state after the call, or undefined if the call would have been answered differently in this state. */
function after(state: State, { operation, outcome }: Call): State | undefined {
  const next = applied(state, operation)
  if (outcome.is === 'refused') return next === outcome.code ? state : undefined
  if (typeof next === 'string') return undefined
  if (outcome.is === 'done' && outcome.shown !== undefined) {
    const resource = next[operation.kind][operation.name]
    if (resource === undefined || shown(resource) !== outcome.shown) return undefined
  }
  return next
}

export function describe({ operation, node, startMs, endMs, outcome }: Call): string {
  const { kind, name, does, ifShown, ...rest } = operation
  const answer = outcome.is === 'refused' ? outcome.code : outcome.is
  const details = JSON.stringify(rest)
  return `[${startMs.toFixed(0)}–${endMs.toFixed(0)} ${node}] ${does} ${kind} ${name} ${details}${ifShown === undefined ? '' : ` if ${ifShown}`} → ${answer}`
}
