// The fields that differ between an object before and after a change. Pure.

export interface Difference {
  /** For example `batch.size` or `urls`. */
  field: string
  kind: 'added' | 'removed' | 'changed'
  /** As text; null if the field did not exist. */
  before: string | null
  after: string | null
}

type JsonObject = Readonly<Record<string, unknown>>

/** Returns the fields in the order of `before`, then the new ones. */
export function differences(before: JsonObject | null, after: JsonObject | null): Difference[] {
  return compare('', before ?? {}, after ?? {})
}

function compare(path: string, before: JsonObject, after: JsonObject): Difference[] {
  const fields = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return fields.flatMap((name) => {
    const field = path === '' ? name : `${path}.${name}`
    const had = Object.hasOwn(before, name)
    const has = Object.hasOwn(after, name)
    const [was, is] = [before[name], after[name]]
    if (had && has && same(was, is)) return []
    // Objects are compared field by field. An empty object has no fields to list, so it is reported as a whole.
    if (isObject(was ?? {}) && isObject(is ?? {}) && (isObject(was) || isObject(is)) && (sizeOf(was) > 0 || sizeOf(is) > 0))
      return compare(field, (was ?? {}) as JsonObject, (is ?? {}) as JsonObject)
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

/** The entries that are in only one of the lists. If there are none, only the order differs, and both lists are reported. */
function listDifference(field: string, before: readonly unknown[], after: readonly unknown[]): Difference {
  const removed = before.filter((each) => !after.some((other) => same(each, other)))
  const added = after.filter((each) => !before.some((other) => same(each, other)))
  if (removed.length === 0 && added.length === 0) return { field, kind: 'changed', before: shown(before), after: shown(after) }
  return {
    field,
    kind: removed.length === 0 ? 'added' : added.length === 0 ? 'removed' : 'changed',
    before: removed.length === 0 ? null : lines(removed),
    after: added.length === 0 ? null : lines(added),
  }
}

function lines(values: readonly unknown[]): string {
  return values.map(shown).join('\n')
}

export function shown(value: unknown): string {
  if (value === undefined || value === null) return 'none'
  if (typeof value === 'string') return value === '' ? '(empty)' : value
  if (Array.isArray(value)) return value.length === 0 ? 'none' : lines(value)
  if (isObject(value)) return Object.keys(value).length === 0 ? 'none' : JSON.stringify(value)
  return JSON.stringify(value)
}

function sizeOf(value: unknown): number {
  return isObject(value) ? Object.keys(value).length : 0
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function same(left: unknown, right: unknown): boolean {
  return JSON.stringify(ordered(left)) === JSON.stringify(ordered(right))
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((name) => [name, ordered(value[name])]),
  )
}
