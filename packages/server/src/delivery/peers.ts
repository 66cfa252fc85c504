// What the nodes on one store tell each other of their lanes, and what follows: a receiver that one of them found failing is left
// alone by the others, and whoever asks any of them sees the whole. Told with the beat, so up to two seconds old. What another
// node tells may be of another version: what cannot be read is left out, and nothing here trusts it with more than a probe's time.

import { type Nodes, positionOf } from '../store/store.ts'
import type { BreakerState, Heard } from './lanes/breaker.ts'

const KEY = 'lanes'
/** Of more destinations, those whose breaker is open come first. */
const MAX_TOLD = 500
/** More than a breaker ever waits. */
const MAX_MS = 3_600_000

/** A lane, as others hear of it. */
export interface Standing extends Heard {
  breaker: BreakerState
  inFlight: number
  /** In how many milliseconds something is tried next; null when nothing waits. */
  nextInMs: number | null
}

/** As it is written: state, in flight, next, open for, failed ago, closed ago. */
type Told = [string, number, number | null, number | null, number | null, number | null]

export interface PeersOptions {
  nodes: Nodes
  standings: () => Iterable<[destinationId: string, standing: Standing]>
  /** `isFirst`: this node probes as if it were alone. */
  heard: (destinationId: string, heard: Heard, isFirst: boolean) => void
}

const LETTERS: Record<BreakerState, string> = { closed: 'c', open: 'o', probing: 'p' }
const STATES: Readonly<Record<string, BreakerState>> = { c: 'closed', o: 'open', p: 'probing' }
/** The worst first. */
const ORDER: readonly BreakerState[] = ['open', 'probing', 'closed']

export class Peers {
  readonly #options: PeersOptions
  /** Of each destination that others told of. */
  #others = new Map<string, Standing[]>()

  constructor(options: PeersOptions) {
    this.#options = options
    options.nodes.onChange(() => this.#exchange())
  }

  /** A lane of this node together with those of the others. */
  together(destinationId: string, own: Standing): Standing {
    const all = [own, ...(this.#others.get(destinationId) ?? [])]
    return {
      ...own,
      breaker: ORDER.find((state) => all.some(({ breaker }) => breaker === state)) ?? own.breaker,
      inFlight: all.reduce((sum, { inFlight }) => sum + inFlight, 0),
      nextInMs: least(all.map(({ nextInMs }) => nextInMs)),
    }
  }

  #exchange(): void {
    const { nodes, standings, heard } = this.#options
    const others = nodes.others()
    const before = this.#others
    this.#others = new Map()
    for (const { doc } of others) {
      for (const [destinationId, standing] of read(doc[KEY])) {
        const known = this.#others.get(destinationId)
        if (known) known.push(standing)
        else this.#others.set(destinationId, [standing])
      }
    }
    // Those that are not told of any more are told as well, once.
    for (const id of new Set([...this.#others.keys(), ...before.keys()]))
      heard(id, combined(this.#others.get(id) ?? []), positionOf(id, nodes) === 0)
    nodes.announce(KEY, others.length === 0 ? undefined : written(standings()))
  }
}

function combined(standings: readonly Standing[]): Heard {
  const failing = standings.filter(({ openForMs }) => openForMs !== null)
  return {
    openForMs: failing.length === 0 ? null : Math.max(...failing.map(({ openForMs }) => openForMs as number)),
    failedAgoMs: Math.min(Number.POSITIVE_INFINITY, ...failing.map(({ failedAgoMs }) => failedAgoMs)),
    closedAgoMs: least(standings.map(({ closedAgoMs }) => closedAgoMs)),
  }
}

/** Only what differs from a lane that rests. */
function written(standings: Iterable<[string, Standing]>): Record<string, Told> {
  const told: [string, Standing][] = []
  for (const [id, standing] of standings) {
    const { breaker, inFlight, nextInMs, closedAgoMs } = standing
    if (breaker !== 'closed' || inFlight > 0 || nextInMs !== null || closedAgoMs !== null) told.push([id, standing])
  }
  if (told.length > MAX_TOLD) told.sort(([, a], [, b]) => ORDER.indexOf(a.breaker) - ORDER.indexOf(b.breaker))
  return Object.fromEntries(
    told.slice(0, MAX_TOLD).map(([id, { breaker, inFlight, nextInMs, openForMs, failedAgoMs, closedAgoMs }]): [string, Told] => {
      const failed = openForMs === null ? null : failedAgoMs
      return [id, [LETTERS[breaker], inFlight, nextInMs, openForMs, failed, closedAgoMs]]
    }),
  )
}

function read(value: unknown): [string, Standing][] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([id, told]: [string, unknown]): [string, Standing][] => {
    if (!Array.isArray(told)) return []
    const [letter, inFlight, nextInMs, openForMs, failedAgoMs, closedAgoMs] = told as unknown[]
    const breaker = typeof letter === 'string' && Object.hasOwn(STATES, letter) ? STATES[letter] : undefined
    if (breaker === undefined) return []
    const standing: Standing = {
      breaker,
      inFlight: milliseconds(inFlight) ?? 0,
      nextInMs: milliseconds(nextInMs),
      openForMs: milliseconds(openForMs),
      failedAgoMs: milliseconds(failedAgoMs) ?? Number.POSITIVE_INFINITY,
      closedAgoMs: milliseconds(closedAgoMs),
    }
    return [[id, standing]]
  })
}

function milliseconds(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 && value <= MAX_MS ? value : null
}

function least(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null)
  return known.length === 0 ? null : Math.min(...known)
}
