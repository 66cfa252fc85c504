// Searches in a message: for a part of its ids and names, and for a property. Pure.

import type { PropertyFilter } from '../../port/history.ts'

type Item = Readonly<Record<string, unknown>>

const NAMES = ['messageId', 'userId', 'anonymousId', 'previousId', 'groupId', 'event', 'name']
const TRAITS = ['email', 'name', 'username']

/** Whether an id, a name or an email address of the message contains the text, in upper or lower case. */
export function hasText(item: Item, search: string): boolean {
  const wanted = search.toLowerCase()
  const has = (value: unknown): boolean => typeof value === 'string' && value.toLowerCase().includes(wanted)
  if (NAMES.some((name) => has(own(item, name)))) return true
  return [own(item, 'traits'), own(item, 'properties'), own(own(item, 'context'), 'traits')].some((of) =>
    TRAITS.some((name) => has(own(of, name))),
  )
}

/**
 * Whether the message has the property. A path that does not begin with a field of the message is one of its properties or traits. Each element of
 * an array is looked at. A text matches a part of it, another value only if it is the same.
 */
export function hasProperty(item: Item, { path, value }: PropertyFilter): boolean {
  const [first = ''] = path
  const roots = Object.hasOwn(item, first) ? [item] : [own(item, 'properties'), own(item, 'traits')]
  const wanted = value?.toLowerCase()
  return roots.some((root) => isAt(root, path, 0, wanted))
}

function isAt(value: unknown, path: readonly string[], depth: number, wanted: string | undefined): boolean {
  if (Array.isArray(value) && !(wanted === undefined && depth === path.length))
    return value.some((element) => isAt(element, path, depth, wanted))
  if (depth < path.length) {
    const name = path[depth] as string
    return isRecord(value) && Object.hasOwn(value, name) && isAt(value[name], path, depth + 1, wanted)
  }
  if (wanted === undefined) return true
  if (typeof value === 'string') return value.toLowerCase().includes(wanted)
  return !isRecord(value) && String(value) === wanted
}

function own(value: unknown, name: string): unknown {
  return isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined
}

function isRecord(value: unknown): value is Item {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
