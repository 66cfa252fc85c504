// The nodes on one store report the state of their lanes to each other. If a receiver fails on one node, the others open
// their breakers too, and every node can show the state across all nodes. Reports are sent with the heartbeat, so they are up to two
// seconds old. Another node may run a different version: values that cannot be read are ignored, and a wrong report can only delay requests until the next probe.

import { type Nodes, positionOf } from '../../store/store.ts'
import type { BreakerState } from '../events/events.ts'
import type { PeerReport } from './breaker.ts'

const KEY = 'lanes'
/** The number of destinations reported. If there are more, those whose breaker is open come first. */
const MAX_REPORTED = 500
/** Larger numbers in a report are ignored. A breaker never waits this long between probes. */
const MAX_MS = 3_600_000
const MAX_HELD = 300

/** The state of a lane as reported to other nodes. */
export interface LaneState extends PeerReport {
  breaker: BreakerState
  inFlight: number
  /** Milliseconds until the next attempt; null if nothing is waiting. */
  nextInMs: number | null
  /** Why the node holds the deliveries back; null if it does not. */
  held: string | null
}

/** The encoded form: state, in flight, next, open for, failed ago, closed ago, held. Nodes of earlier versions read only the first six. */
type WireState = [string, number, number | null, number | null, number | null, number | null, ...held: string[]]

export interface PeersOptions {
  nodes: Nodes
  laneStates: () => Iterable<[destinationId: string, state: LaneState]>
  /** `isFirst`: whether this is the one node that probes at the normal rate while other nodes probe too. */
  onReport: (destinationId: string, report: PeerReport, isFirst: boolean) => void
}

const LETTERS: Record<BreakerState, string> = { closed: 'c', open: 'o', probing: 'p' }
const STATES: Readonly<Record<string, BreakerState>> = { c: 'closed', o: 'open', p: 'probing' }
/** Ordered from worst to best. */
const ORDER: readonly BreakerState[] = ['open', 'probing', 'closed']

export class Peers {
  readonly #options: PeersOptions
  /** The reports of other nodes, by destination id. */
  #others = new Map<string, LaneState[]>()

  constructor(options: PeersOptions) {
    this.#options = options
    options.nodes.onChange(() => this.#exchange())
  }

  /** Combines the lane of this node with those of the other nodes. */
  combine(destinationId: string, own: LaneState): LaneState {
    const all = [own, ...(this.#others.get(destinationId) ?? [])]
    return {
      ...own,
      breaker: ORDER.find((state) => all.some(({ breaker }) => breaker === state)) ?? own.breaker,
      inFlight: all.reduce((sum, { inFlight }) => sum + inFlight, 0),
      nextInMs: earliest(all.map(({ nextInMs }) => nextInMs)),
      held: all.find(({ held }) => held !== null)?.held ?? null,
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
    // For a destination that is no longer reported, one last empty report tells the breaker so.
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

/** Leaves out idle lanes: closed breaker, nothing in flight, nothing waiting, not recently recovered. */
function encode(laneStates: Iterable<[string, LaneState]>): Record<string, WireState> {
  const reported: [string, LaneState][] = []
  for (const [id, state] of laneStates) {
    const { breaker, inFlight, nextInMs, closedAgoMs, held } = state
    if (breaker !== 'closed' || inFlight > 0 || nextInMs !== null || closedAgoMs !== null || held !== null) reported.push([id, state])
  }
  if (reported.length > MAX_REPORTED) reported.sort(([, a], [, b]) => ORDER.indexOf(a.breaker) - ORDER.indexOf(b.breaker))
  return Object.fromEntries(
    reported
      .slice(0, MAX_REPORTED)
      .map(([id, { breaker, inFlight, nextInMs, openForMs, failedAgoMs, closedAgoMs, held }]): [string, WireState] => {
        const failed = openForMs === null ? null : failedAgoMs
        return [
          id,
          [LETTERS[breaker], inFlight, nextInMs, openForMs, failed, closedAgoMs, ...(held === null ? [] : [held.slice(0, MAX_HELD)])],
        ]
      }),
  )
}

function decode(value: unknown): [string, LaneState][] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([id, reported]: [string, unknown]): [string, LaneState][] => {
    if (!Array.isArray(reported)) return []
    const [letter, inFlight, nextInMs, openForMs, failedAgoMs, closedAgoMs, held] = reported as unknown[]
    const breaker = typeof letter === 'string' && Object.hasOwn(STATES, letter) ? STATES[letter] : undefined
    if (breaker === undefined) return []
    const state: LaneState = {
      breaker,
      inFlight: milliseconds(inFlight) ?? 0,
      nextInMs: milliseconds(nextInMs),
      openForMs: milliseconds(openForMs),
      failedAgoMs: milliseconds(failedAgoMs) ?? Number.POSITIVE_INFINITY,
      closedAgoMs: milliseconds(closedAgoMs),
      held: typeof held === 'string' ? held.slice(0, MAX_HELD) : null,
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
