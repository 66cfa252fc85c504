// What the nodes on one store tell each other of their lanes, and what follows: a receiver that one of them found failing is left
// alone by the others, and whoever asks any of them sees the whole. Told with the beat, so up to two seconds old. What another
// node tells may be of another version: what cannot be read is left out, and nothing here trusts it with more than a probe's time.

import { type Nodes, positionOf } from '../store/store.ts'
import type { BreakerState, PeerReport } from './lanes/breaker.ts'

const KEY = 'lanes'
/** Of more destinations, those whose breaker is open come first. */
const MAX_REPORTED = 500
/** More than a breaker ever waits. */
const MAX_MS = 3_600_000

/** A lane, as others hear of it. */
export interface LaneState extends PeerReport {
  breaker: BreakerState
  inFlight: number
  /** In how many milliseconds something is tried next; null when nothing waits. */
  nextInMs: number | null
}

/** As it is written: state, in flight, next, open for, failed ago, closed ago. */
type WireState = [string, number, number | null, number | null, number | null, number | null]

export interface PeersOptions {
  nodes: Nodes
  laneStates: () => Iterable<[destinationId: string, state: LaneState]>
  /** `isFirst`: this node probes as if it were alone. */
  onReport: (destinationId: string, report: PeerReport, isFirst: boolean) => void
}

const LETTERS: Record<BreakerState, string> = { closed: 'c', open: 'o', probing: 'p' }
const STATES: Readonly<Record<string, BreakerState>> = { c: 'closed', o: 'open', p: 'probing' }
/** The worst first. */
const ORDER: readonly BreakerState[] = ['open', 'probing', 'closed']

export class Peers {
  readonly #options: PeersOptions
  /** Of each destination that others told of. */
  #others = new Map<string, LaneState[]>()

  constructor(options: PeersOptions) {
    this.#options = options
    options.nodes.onChange(() => this.#exchange())
  }

  /** A lane of this node together with those of the others. */
  combine(destinationId: string, own: LaneState): LaneState {
    const all = [own, ...(this.#others.get(destinationId) ?? [])]
    return {
      ...own,
      breaker: ORDER.find((state) => all.some(({ breaker }) => breaker === state)) ?? own.breaker,
      inFlight: all.reduce((sum, { inFlight }) => sum + inFlight, 0),
      nextInMs: earliest(all.map(({ nextInMs }) => nextInMs)),
    }
  }

  #exchange(): void {
    const { nodes, laneStates, onReport } = this.#options
    const others = nodes.others()
    const before = this.#others
    this.#others = new Map()
    for (const { doc } of others) {
      for (const [destinationId, state] of decode(doc[KEY])) {
        const known = this.#others.get(destinationId)
        if (known) known.push(state)
        else this.#others.set(destinationId, [state])
      }
    }
    // Those that are not told of any more are told as well, once.
    for (const id of new Set([...this.#others.keys(), ...before.keys()]))
      onReport(id, reportOf(this.#others.get(id) ?? []), positionOf(id, nodes) === 0)
    nodes.announce(KEY, others.length === 0 ? undefined : encode(laneStates()))
  }
}

function reportOf(laneStates: readonly LaneState[]): PeerReport {
  const failing = laneStates.filter(({ openForMs }) => openForMs !== null)
  return {
    openForMs: failing.length === 0 ? null : Math.max(...failing.map(({ openForMs }) => openForMs as number)),
    failedAgoMs: Math.min(Number.POSITIVE_INFINITY, ...failing.map(({ failedAgoMs }) => failedAgoMs)),
    closedAgoMs: earliest(laneStates.map(({ closedAgoMs }) => closedAgoMs)),
  }
}

/** Only what differs from a lane that rests. */
function encode(laneStates: Iterable<[string, LaneState]>): Record<string, WireState> {
  const reported: [string, LaneState][] = []
  for (const [id, state] of laneStates) {
    const { breaker, inFlight, nextInMs, closedAgoMs } = state
    if (breaker !== 'closed' || inFlight > 0 || nextInMs !== null || closedAgoMs !== null) reported.push([id, state])
  }
  if (reported.length > MAX_REPORTED) reported.sort(([, a], [, b]) => ORDER.indexOf(a.breaker) - ORDER.indexOf(b.breaker))
  return Object.fromEntries(
    reported
      .slice(0, MAX_REPORTED)
      .map(([id, { breaker, inFlight, nextInMs, openForMs, failedAgoMs, closedAgoMs }]): [string, WireState] => {
        const failed = openForMs === null ? null : failedAgoMs
        return [id, [LETTERS[breaker], inFlight, nextInMs, openForMs, failed, closedAgoMs]]
      }),
  )
}

function decode(value: unknown): [string, LaneState][] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([id, reported]: [string, unknown]): [string, LaneState][] => {
    if (!Array.isArray(reported)) return []
    const [letter, inFlight, nextInMs, openForMs, failedAgoMs, closedAgoMs] = reported as unknown[]
    const breaker = typeof letter === 'string' && Object.hasOwn(STATES, letter) ? STATES[letter] : undefined
    if (breaker === undefined) return []
    const state: LaneState = {
      breaker,
      inFlight: milliseconds(inFlight) ?? 0,
      nextInMs: milliseconds(nextInMs),
      openForMs: milliseconds(openForMs),
      failedAgoMs: milliseconds(failedAgoMs) ?? Number.POSITIVE_INFINITY,
      closedAgoMs: milliseconds(closedAgoMs),
    }
    return [[id, state]]
  })
}

function milliseconds(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 && value <= MAX_MS ? value : null
}

function earliest(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null)
  return known.length === 0 ? null : Math.min(...known)
}
