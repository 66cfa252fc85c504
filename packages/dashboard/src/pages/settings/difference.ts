// What a change changed, field by field: of the thing before and after it, only what differs. Pure.

export interface Difference {
  /** `batch.size`, `urls`. */
  field: string
  kind: 'added' | 'removed' | 'changed'
  /** As text; null where there was nothing. */
  before: string | null
  after: string | null
}

type Thing = Readonly<Record<string, unknown>>

/** Fields in the order of the thing, what is new of it last. */
export function differences(before: Thing | null, after: Thing | null): Difference[] {
  return compare('', before ?? {}, after ?? {})
}

function compare(path: string, before: Thing, after: Thing): Difference[] {
  const fields = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return fields.flatMap((name) => {
    const field = path === '' ? name : `${path}.${name}`
    const had = Object.hasOwn(before, name)
    const has = Object.hasOwn(after, name)
    const [was, is] = [before[name], after[name]]
    if (had && has && same(was, is)) return []
    // Within objects what differs is told by itself; an empty one would say nothing and is told whole.
    if (isThing(was ?? {}) && isThing(is ?? {}) && (isThing(was) || isThing(is)) && (sizeOf(was) > 0 || sizeOf(is) > 0))
      return compare(field, (was ?? {}) as Thing, (is ?? {}) as Thing)
    if (Array.isArray(was) && Array.isArray(is)) return [listDifference(field, was, is)]
    return [
      {
        field,
        kind: !had ? 'added' : !has ? 'removed' : 'changed',
        before: had ? shown(was) : null,
        after: has ? shown(is) : null,
      } as const,
    ]
  })
}

/** Of two lists, what is only in one of them; when that is nothing, only their order differs and both are told. */
function listDifference(field: string, before: readonly unknown[], after: readonly unknown[]): Difference {
  const gone = before.filter((each) => !after.some((other) => same(each, other)))
  const come = after.filter((each) => !before.some((other) => same(each, other)))
  if (gone.length === 0 && come.length === 0) return { field, kind: 'changed', before: shown(before), after: shown(after) }
  return {
    field,
    kind: gone.length === 0 ? 'added' : come.length === 0 ? 'removed' : 'changed',
    before: gone.length === 0 ? null : lines(gone),
    after: come.length === 0 ? null : lines(come),
  }
}

function lines(values: readonly unknown[]): string {
  return values.map(shown).join('\n')
}

export function shown(value: unknown): string {
  if (value === undefined || value === null) return 'none'
  if (typeof value === 'string') return value === '' ? '(empty)' : value
  if (Array.isArray(value)) return value.length === 0 ? 'none' : lines(value)
  if (isThing(value)) return Object.keys(value).length === 0 ? 'none' : JSON.stringify(value)
  return JSON.stringify(value)
}

function sizeOf(value: unknown): number {
  return isThing(value) ? Object.keys(value).length : 0
}

function isThing(value: unknown): value is Thing {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function same(left: unknown, right: unknown): boolean {
  return JSON.stringify(ordered(left)) === JSON.stringify(ordered(right))
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered)
  if (!isThing(value)) return value
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((name) => [name, ordered(value[name])]),
  )
}
