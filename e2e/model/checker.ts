// Checks a model exhaustively: visits every state that can be reached, breadth first, so that the first violation has a shortest trace.
// It knows nothing about the protocol. Checks that every invariant is true in every state, and that from every state the end can still
// be reached without further faults.

export interface Step<S> {
  name: string
  /** It may never happen, for example a fault, so the end must be reachable without it. */
  isOptional: boolean
  /** Changes a copy of the state. */
  apply: (draft: S) => void
}

export interface Model<S> {
  initial: S
  copy: (state: S) => S
  /** All steps that are possible in this state. */
  steps: (state: S) => Iterable<Step<S>>
  /** Equal for states that differ only in the names of nodes and messages. */
  key: (state: S) => string
  invariants: Readonly<Record<string, (state: S) => boolean>>
  isEnd: (state: S) => boolean
}

/** The name under which a violation reports that the end can no longer be reached. */
export const CAN_END = 'everything acknowledged can be settled'

export interface Violation<S> {
  invariant: string
  /** The names of the steps that lead to the state, and the state. */
  trace: string[]
  state: S
}

export interface Result<S> {
  states: number
  steps: number
  /** The number of steps to the farthest state. */
  depth: number
  violation: Violation<S> | null
}

export function check<S>(model: Model<S>, maxStates = 10_000_000): Result<S> {
  const { initial, copy, steps, key, isEnd } = model
  const invariants = Object.entries(model.invariants)
  const ids = new Map([[key(initial), 0]])
  const parents = [0]
  /** The steps that are not optional, as pairs: the state reached, and the state that the step starts from. */
  const edges: number[] = []
  const ends: number[] = []
  let taken = 0
  let depth = 0
  let level: [id: number, state: S][] = [[0, initial]]
  const result = (violation: Violation<S> | null): Result<S> => ({ states: ids.size, steps: taken, depth, violation })
  for (; level.length > 0; depth++) {
    const next: typeof level = []
    for (const [id, state] of level) {
      const broken = invariants.find(([, holds]) => !holds(state))
      if (broken !== undefined) return result({ invariant: broken[0], ...traceTo(model, id, parents, ids) })
      if (isEnd(state)) ends.push(id)
      for (const { isOptional, apply } of steps(state)) {
        taken++
        const draft = copy(state)
        apply(draft)
        const draftKey = key(draft)
        let reached = ids.get(draftKey)
        if (reached === undefined) {
          reached = ids.size
          if (reached === maxStates) throw new Error(`more than ${maxStates} states: use smaller bounds`)
          ids.set(draftKey, reached)
          parents.push(id)
          next.push([reached, draft])
        }
        if (!isOptional && reached !== id) edges.push(reached, id)
      }
    }
    level = next
  }
  const stuck = firstStuck(ids.size, edges, ends)
  return result(stuck === undefined ? null : { invariant: CAN_END, ...traceTo(model, stuck, parents, ids) })
}

/** The state nearest to the initial one from which no end can be reached. */
function firstStuck(states: number, edges: readonly number[], ends: readonly number[]): number | undefined {
  // Edges grouped by the state that they lead to: those of state s are sources[starts[s]] up to sources[starts[s + 1]].
  const starts = new Int32Array(states + 2)
  for (let at = 0; at < edges.length; at += 2) starts[(edges[at] as number) + 2]!++
  for (let at = 2; at < starts.length; at++) starts[at]! += starts[at - 1]!
  const sources = new Int32Array(edges.length / 2)
  for (let at = 0; at < edges.length; at += 2) sources[starts[(edges[at] as number) + 1]!++] = edges[at + 1]!
  const canEnd = new Uint8Array(states)
  const waiting = [...ends]
  for (const end of ends) canEnd[end] = 1
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    for (const source of sources.subarray(starts[id], starts[id + 1])) {
      if (canEnd[source] === 1) continue
      canEnd[source] = 1
      waiting.push(source)
    }
  }
  const stuck = canEnd.indexOf(0)
  return stuck === -1 ? undefined : stuck
}

/** Repeats the steps from the initial state, so that nodes and messages keep their names along the trace. */
function traceTo<S>(
  { initial, copy, steps, key }: Model<S>,
  id: number,
  parents: readonly number[],
  ids: ReadonlyMap<string, number>,
): Omit<Violation<S>, 'invariant'> {
  const path: number[] = []
  for (let at = id; at !== 0; at = parents[at] as number) path.unshift(at)
  const trace: string[] = []
  let state = initial
  for (const wanted of path) {
    for (const { name, apply } of steps(state)) {
      const draft = copy(state)
      apply(draft)
      if (ids.get(key(draft)) !== wanted) continue
      trace.push(name)
      state = draft
      break
    }
  }
  return { trace, state }
}
