// The configuration as a model: what each operation of the control API does to it if operations are made one after the other. It has no
// clock, no nodes and no randomness. explain.ts compares it with what happened. Resources are known by their names, which tests choose and
// never change, because the id of a resource is not known if the answer to its creation was lost.

export type Kind = 'sources' | 'destinations' | 'plans'
export const KINDS: readonly Kind[] = ['sources', 'destinations', 'plans']

/** The fields that operations change. References to sources are names. */
export interface Resource {
  readonly sources?: readonly string[]
  /** The write keys of a source. */
  readonly keys?: readonly string[]
  /** What each version of a destination sends: the number in its transformation, or null if it has none. */
  readonly contents?: readonly (number | null)[]
  readonly [field: string]: unknown
}

export type State = Readonly<Record<Kind, Readonly<Record<string, Resource>>>> & {
  /** The number of entries in the audit log since the last comparison, by the name of the resource. */
  readonly entries: Readonly<Record<string, number>>
}

export const EMPTY: State = { sources: {}, destinations: {}, plans: {}, entries: {} }

export type Operation = {
  kind: Kind
  name: string
  /** With If-Match: the resource as it was read before, from shown(). */
  ifShown?: string
} & (
  | { does: 'create'; made: Resource }
  | { does: 'update'; fields: Resource & { code?: number | null } }
  | { does: 'restore'; version: number }
  | { does: 'add key' | 'remove key'; key: string }
  | { does: 'delete' }
)

export const MAX_KEYS = 100
const NOT_FOUND: Readonly<Record<Kind, string>> = {
  sources: 'source_not_found',
  destinations: 'destination_not_found',
  plans: 'plan_not_found',
}

/** Returns the next state, or the code with which the operation must be refused. */
export function applied(state: State, operation: Operation): State | string {
  const { kind, name } = operation
  if (operation.does === 'create') return refusal(state, kind, name, operation.made) ?? put(state, kind, name, operation.made)
  const before = state[kind][name]
  if (before === undefined) return NOT_FOUND[kind]
  if (operation.ifShown !== undefined && operation.ifShown !== shown(before)) return 'changed_since_read'
  switch (operation.does) {
    case 'update': {
      const { code, ...fields } = operation.fields
      const after = { ...before, ...fields, ...(code !== undefined && { contents: withContent(before, code) }) }
      return refusal(state, kind, name, fields) ?? put(state, kind, name, withPlanVersion(kind, before, after))
    }
    case 'restore':
      return put(state, kind, name, { ...before, contents: withContent(before, before.contents?.[operation.version - 1] ?? null) })
    case 'add key': {
      const { keys = [] } = before
      if (keys.includes(operation.key)) return 'write_key_taken'
      return keys.length >= MAX_KEYS ? 'too_many_write_keys' : put(state, kind, name, { ...before, keys: [...keys, operation.key] })
    }
    case 'remove key': {
      const { keys = [] } = before
      if (!keys.includes(operation.key)) return 'write_key_not_found'
      const rest = keys.filter((key) => key !== operation.key)
      return rest.length === 0 ? 'last_write_key' : put(state, kind, name, { ...before, keys: rest })
    }
    case 'delete': {
      const { [name]: _, ...rest } = state[kind]
      const without: State = { ...withAuditEntry(state, name), [kind]: rest }
      return kind === 'sources' ? detached(without, name) : without
    }
  }
}

/** The resource as the API shows it, for comparisons. */
export function shown(resource: Resource): string {
  const { contents, ...rest } = resource
  return sortedJson(contents === undefined ? rest : { ...rest, code: contents.at(-1), version: contents.length })
}

/** JSON with sorted keys. */
export function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => {
    if (typeof each !== 'object' || each === null || Array.isArray(each)) return each
    return Object.fromEntries(Object.entries(each).sort(([one], [other]) => (one < other ? -1 : 1)))
  })
}

/** A source that is referred to must exist, and can have only one plan. */
function refusal(state: State, kind: Kind, name: string, { sources = [] }: Resource): string | undefined {
  if (sources.some((source) => state.sources[source] === undefined)) return 'invalid_field'
  if (kind !== 'plans') return undefined
  const others = Object.entries(state.plans).filter(([other]) => other !== name)
  return others.some(([, plan]) => plan.sources?.some((source) => sources.includes(source))) ? 'source_has_plan' : undefined
}

/** A change that changes nothing is not recorded. */
function put(state: State, kind: Kind, name: string, resource: Resource): State {
  const before = state[kind][name]
  if (before !== undefined && sortedJson(before) === sortedJson(resource)) return state
  return { ...withAuditEntry(state, name), [kind]: { ...state[kind], [name]: resource } }
}

function withAuditEntry(state: State, name: string): State {
  return { ...state, entries: { ...state.entries, [name]: (state.entries[name] ?? 0) + 1 } }
}

function withContent({ contents = [] }: Resource, code: number | null): readonly (number | null)[] {
  return contents.at(-1) === code ? contents : [...contents, code]
}

/** The version of a plan counts changes of its content, and its sources are not part of that. */
function withPlanVersion(kind: Kind, before: Resource, after: Resource): Resource {
  const isSame = kind !== 'plans' || sortedJson({ ...after, sources: null }) === sortedJson({ ...before, sources: null })
  return isSame ? after : { ...after, version: (before['version'] as number) + 1 }
}

/** Removes the references to a deleted source. They are part of the same change, and have no audit entries of their own. */
function detached(state: State, source: string): State {
  const without = (resources: State['plans']): State['plans'] =>
    Object.fromEntries(
      Object.entries(resources).map(([name, { sources = [], ...rest }]) => [
        name,
        { ...rest, sources: sources.filter((each) => each !== source) },
      ]),
    )
  return { ...state, destinations: without(state.destinations), plans: without(state.plans) }
}
