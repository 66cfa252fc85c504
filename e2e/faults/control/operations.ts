// Random operations on sources, destinations and tracking plans. They are chosen before any of them is made, from the configuration at that
// time, so that a seed gives the same operations. Most of them concern the same few resources, so that concurrent calls get in each other's way.

import type { Random } from '../system/random.ts'
import { type Kind, MAX_KEYS, type Operation, type Resource, type State } from './model.ts'
import { PREFIX } from './requests.ts'

const MOST: Readonly<Record<Kind, number>> = { sources: 5, destinations: 6, plans: 3 }
const FEWEST: Readonly<Record<Kind, number>> = { sources: 3, destinations: 3, plans: 2 }
const MODES = ['observe', 'quarantine', 'quarantine', 'strip']

export class Operations {
  readonly #random: Random
  #last = 0

  constructor(random: Random) {
    this.#random = random
  }

  /** The first resources, in the order in which they must be made. */
  first(): Operation[] {
    const sources = [this.#newSource(), this.#newSource(), this.#newSource()]
    const names = sources.map(({ name }) => name)
    const destinations = Array.from({ length: 4 }, () => this.#newDestination(names))
    const plan = this.#named('plans', { sources: names.slice(0, 1), mode: 'quarantine', version: 1 })
    return [...sources, ...destinations, plan]
  }

  /** Operations to be made concurrently. `wantsMatch` says which of them are to be made with If-Match. */
  next(state: State, count: number): { operation: Operation; wantsMatch: boolean }[] {
    const random = this.#random
    const focus = {
      sources: this.#pick(state, 'sources'),
      destinations: this.#pick(state, 'destinations'),
      plans: this.#pick(state, 'plans'),
    }
    return Array.from({ length: count }, () => {
      const kind = random.pick<Kind>(['sources', 'sources', 'destinations', 'destinations', 'destinations', 'plans'])
      const operation = this.#one(state, kind, random.chance(0.6) ? focus[kind] : this.#pick(state, kind))
      const canMatch = operation.does === 'update' || operation.does === 'restore' || operation.does === 'delete'
      return { operation, wantsMatch: canMatch && random.chance(0.25) }
    })
  }

  #one(state: State, kind: Kind, name: string | undefined): Operation {
    const random = this.#random
    const known = Object.keys(state[kind]).length
    const before = name === undefined ? undefined : state[kind][name]
    const sources = Object.keys(state.sources)
    if (name === undefined || before === undefined || known < FEWEST[kind] || (known < MOST[kind] && random.chance(0.15))) {
      if (kind === 'sources') return this.#newSource()
      if (kind === 'destinations') return this.#newDestination(sources)
      return this.#named('plans', { sources: this.#some(sources), mode: random.pick(MODES), version: 1 })
    }
    if (known > FEWEST[kind] && random.chance(0.12)) return { kind, name, does: 'delete' }
    if (kind === 'sources') return this.#ofSource(name, before)
    if (kind === 'plans')
      return { kind, name, does: 'update', fields: random.chance(0.5) ? { mode: random.pick(MODES) } : { sources: this.#some(sources) } }
    return this.#ofDestination(name, before, sources)
  }

  #ofSource(name: string, { keys = [], enabled }: Resource): Operation {
    const random = this.#random
    const kind = 'sources'
    // A source is disabled for a short time only, because it gets no messages meanwhile.
    if (random.chance(enabled === true ? 0.1 : 0.8)) return { kind, name, does: 'update', fields: { enabled: enabled !== true } }
    if (random.chance(0.5)) return { kind, name, does: 'remove key', key: random.pick(keys) }
    return { kind, name, does: 'add key', key: random.chance(0.15) ? random.pick(keys) : this.#key() }
  }

  #ofDestination(name: string, { contents = [] }: Resource, sources: readonly string[]): Operation {
    const random = this.#random
    const kind = 'destinations'
    if (contents.length > 1 && random.chance(0.1)) return { kind, name, does: 'restore', version: random.int(1, contents.length) }
    const fields = random.pick<() => Resource & { code?: number | null }>([
      () => ({ maxInFlight: random.int(5, 50) }),
      () => ({ size: random.int(1, 20) }),
      () => ({ lingerMs: random.int(0, 50) }),
      () => ({ paused: random.chance(0.4) }),
      () => ({ enabled: random.chance(0.7) }),
      () => ({ sources: this.#some(sources) }),
      () => ({ code: random.chance(0.2) ? null : ++this.#last }),
      () => ({ code: ++this.#last, maxInFlight: random.int(5, 50), size: random.int(1, 20) }),
    ])()
    return { kind, name, does: 'update', fields }
  }

  #newSource(): Operation {
    // Some sources are close to the limit of keys, and some have only one key left.
    const count = this.#random.pick([1, 2, 2, 3, MAX_KEYS - 2])
    return this.#named('sources', { keys: Array.from({ length: count }, () => this.#key()), enabled: true })
  }

  #newDestination(sources: readonly string[]): Operation {
    const random = this.#random
    const settings = { maxInFlight: 20, size: random.pick([1, 1, 10]), lingerMs: 20, contents: [random.chance(0.5) ? null : ++this.#last] }
    return this.#named('destinations', { sources: this.#some(sources), enabled: true, paused: false, ...settings })
  }

  #named(kind: Kind, made: Resource): Operation {
    return { kind, name: `${PREFIX}${kind}-${++this.#last}`, does: 'create', made }
  }

  #key(): string {
    return `key-${++this.#last}-${this.#random.int(0, 0xff_ff_ff).toString(36)}`
  }

  #pick(state: State, kind: Kind): string | undefined {
    const names = Object.keys(state[kind]).sort()
    return names.length === 0 ? undefined : this.#random.pick(names)
  }

  #some(names: readonly string[]): string[] {
    const some = names.filter(() => this.#random.chance(0.5))
    return some.length > 0 || names.length === 0 ? some : [this.#random.pick(names)]
  }
}
