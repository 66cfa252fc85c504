// Which privacy rules apply where in a message. All rules of a source are followed in one walk, so that the work does not grow with the number
// of rules: a state is the set of rules whose first keys led to an object or array, and the next key leads to the next state. States are cached.
// Rules have the effect that they would have one after the other, in their order.

import { NOT_IN_WILDCARD, type Segment } from '../../api/resources/privacy-path.ts'
import type { PrivacyRule } from '../../model/configuration.ts'

export interface ParsedRule {
  segments: readonly Segment[]
  action: PrivacyRule['action']
}

/** What happens to the value of a key: first the rules for what is in it, then those for the value itself. */
export interface Step {
  /** Only the rules before the first one for the value itself, which leaves nothing for later ones: the value becomes a string, or is gone. */
  inside: State | null
  actions: readonly PrivacyRule['action'][]
}

/** States are kept up to this number. Some sets of rules have millions of them. */
const MAX_STATES = 1_000

export class State {
  readonly #rules: readonly ParsedRule[]
  readonly #depth: number
  readonly #kept: { states: number }
  readonly #steps = new Map<string, Step>()
  #other: Step | null | undefined
  /** The rules before the first one that drops all elements of an array; undefined if no rule does. */
  readonly #beforeEmptied: readonly ParsedRule[] | undefined
  #ofArray: { state: State | null; isEmptied: boolean } | undefined
  /** The names that rules have here. */
  readonly names: ReadonlySet<string>
  /** Whether a rule has a star here, so that every key counts. */
  readonly hasStar: boolean

  constructor(rules: readonly ParsedRule[], depth = 0, kept = { states: 0 }) {
    this.#rules = rules
    this.#depth = depth
    this.#kept = kept
    this.names = new Set(rules.flatMap(({ segments }) => segments[depth] ?? []))
    this.hasStar = rules.some(({ segments }) => segments[depth] === null)
    const emptying = rules.findIndex(
      ({ segments, action }) => segments[depth] === null && segments.length === depth + 1 && action === 'drop',
    )
    if (emptying >= 0) this.#beforeEmptied = rules.slice(0, emptying)
  }

  /** Null if no rule is about this key. */
  step(key: string): Step | null {
    // All names that are in no rule have the same step, except at the start of a message, where a star does not stand for all of them.
    if (!this.names.has(key) && !(this.#depth === 0 && NOT_IN_WILDCARD.has(key))) {
      const other = this.#other === undefined ? this.#stepFor(null) : this.#other
      if (!this.isFull) this.#other = other
      return other
    }
    const known = this.#steps.get(key)
    if (known !== undefined) return known
    const step = this.#stepFor(key)
    if (step !== null && !this.isFull) this.#steps.set(key, step)
    return step
  }

  /** The rules for an array up to the first that drops all its elements, and whether there is one. */
  get ofArray(): { state: State | null; isEmptied: boolean } {
    if (this.#ofArray !== undefined) return this.#ofArray
    const before = this.#beforeEmptied
    const found = before === undefined ? { state: this, isEmptied: false } : { state: this.#stateOf(before, this.#depth), isEmptied: true }
    if (!this.isFull) this.#ofArray = found
    return found
  }

  /** `key` is null for all keys that only a star stands for. */
  #stepFor(key: string | null): Step | null {
    const depth = this.#depth
    const isStarred = depth > 0 || key === null || !NOT_IN_WILDCARD.has(key)
    const matching = this.#rules.filter(({ segments }) => (segments[depth] === null ? isStarred : segments[depth] === key))
    if (matching.length === 0) return null
    const isLast = ({ segments }: ParsedRule): boolean => segments.length === depth + 1
    const first = matching.findIndex(isLast)
    return {
      inside: this.#stateOf(first < 0 ? matching : matching.slice(0, first), depth + 1),
      actions: matching.filter(isLast).map(({ action }) => action),
    }
  }

  #stateOf(rules: readonly ParsedRule[], depth: number): State | null {
    if (rules.length === 0) return null
    this.#kept.states++
    return new State(rules, depth, this.#kept)
  }

  /** Whether so many states are kept that no more should be, and that the first one should be replaced. */
  get isFull(): boolean {
    return this.#kept.states > MAX_STATES
  }
}
