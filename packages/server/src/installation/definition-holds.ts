// Compares destinations with the definitions of the installed catalogue. After an upgrade a destination may no longer fit: an action is gone, or a
// setting is newly required. Its deliveries would then fail for good, one by one, so this node holds them instead, until they fit again: because
// somebody changed the destination, or installed another version. Nothing is stored: each node judges by what is installed on it, so
// that during a rolling upgrade a node for which the destination still fits goes on sending.

import type { Catalog, OpenCatalog } from '../control/routes/route.ts'
import type { Hold } from '../delivery/lanes/gate.ts'
import { kindOf } from '../destinations/kinds.ts'
import type { Configuration, Destination } from '../store/store.ts'

export interface DefinitionHoldsParts {
  /** Opens the catalogue of the installed package. Null: nothing is compared. */
  open: OpenCatalog | null
  configuration: () => Configuration
  /** Called when destinations may be held or released. */
  onChange: () => void
  /** Called when a destination does not fit, and when it fits again. */
  onHeld: (destination: Destination, problem: string | null) => void
  /** How often the catalogue is looked at again while something is held. */
  recheckMs?: number
}

const RECHECK_MS = 10_000
const CHECKING: Hold = { problem: null }

type Definition = NonNullable<Awaited<ReturnType<Catalog['readIntegration']>>>
type Known = { definition: Definition } | { problem: string }

export class DefinitionHolds {
  readonly #parts: DefinitionHoldsParts
  /** By slug. */
  readonly #known = new Map<string, Known>()
  /** A changed destination is a new object. */
  #judged = new WeakMap<Destination, Hold | null>()
  /** The problems that were reported, by id of the destination. */
  readonly #reported = new Map<string, string>()
  #checking: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(parts: DefinitionHoldsParts) {
    this.#parts = parts
  }

  /** Why this node sends nothing to the destination; null if it does. Called for every request, so it waits for nothing. */
  readonly holdOf = (destination: Destination): Hold | null => {
    const judged = this.#judged.get(destination)
    if (judged !== undefined) return judged
    const slug = this.#parts.open === null ? null : kindOf(destination).slug(destination)
    const known = slug === null ? null : this.#known.get(slug)
    if (known === undefined) return CHECKING
    const hold = known === null ? null : holdBy(destination, known)
    this.#judged.set(destination, hold)
    return hold
  }

  /** Must be called when the configuration has changed, and once at the start. Resolves when all destinations have been compared. */
  follow(): Promise<void> {
    const slugs = this.#slugs()
    if ([...slugs].some((slug) => !this.#known.has(slug))) return this.#check(slugs)
    this.#report()
    return Promise.resolve()
  }

  /** Looks at the catalogue again, which may have been installed or replaced. */
  recheck(): Promise<void> {
    return this.#check(this.#slugs())
  }

  close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    return this.#checking
  }

  #slugs(): Set<string> {
    if (this.#parts.open === null) return new Set()
    const slugs = [...this.#parts.configuration().destinations.values()].map((destination) => kindOf(destination).slug(destination))
    return new Set(slugs.filter((slug) => slug !== null))
  }

  #check(slugs: ReadonlySet<string>): Promise<void> {
    this.#checking = this.#checking.then(async () => {
      if (this.#isClosed) return
      const { open } = this.#parts
      const read = open === null ? [] : await readAll(open, slugs)
      if (this.#isClosed) return
      for (const [slug, known] of read) this.#known.set(slug, known)
      this.#judged = new WeakMap()
      this.#parts.onChange()
      this.#report()
    })
    return this.#checking
  }

  #report(): void {
    const { configuration, onHeld } = this.#parts
    const { destinations } = configuration()
    for (const id of this.#reported.keys()) if (!destinations.has(id)) this.#reported.delete(id)
    for (const [id, destination] of destinations) {
      const problem = this.holdOf(destination)?.problem ?? null
      if (problem === (this.#reported.get(id) ?? null)) continue
      if (problem === null) this.#reported.delete(id)
      else this.#reported.set(id, problem)
      onHeld(destination, problem)
    }
    clearTimeout(this.#timer)
    if (this.#reported.size > 0) this.#timer = setTimeout(() => void this.recheck(), this.#parts.recheckMs ?? RECHECK_MS).unref()
  }
}

/** Never rejects. */
async function readAll(open: OpenCatalog, slugs: ReadonlySet<string>): Promise<Map<string, Known>> {
  const read = new Map<string, Known>()
  let catalog: Catalog | null = null
  let problem = 'The integrations package of this version is not installed on this node. Run `switchyard catalog install` there.'
  try {
    catalog = await open()
  } catch (error) {
    problem = unreadable(error)
  }
  for (const slug of slugs) {
    if (catalog === null) read.set(slug, { problem })
    else read.set(slug, await catalog.readIntegration(slug).then(knownOf, (error: unknown) => ({ problem: unreadable(error) })))
  }
  return read
}

function knownOf(definition: Definition | null): Known {
  return definition === null ? { problem: 'The installed catalogue does not have this integration any more.' } : { definition }
}

function unreadable(error: unknown): string {
  return `The catalogue of integrations cannot be read: ${error instanceof Error ? error.message : String(error)}`
}

function holdBy(destination: Destination, known: Known): Hold | null {
  if ('problem' in known) return known
  const { available, problem } = known.definition
  if (!available) return { problem: `The integration is not available any more. ${problem ?? ''}`.trim() }
  const misfit = kindOf(destination).misfit(destination, known.definition)
  return misfit === null ? null : { problem: `${misfit.field} ${misfit.problem}.` }
}
