// A list in a sentence.

/** `a, b and c`; `last` replaces the last comma. */
export function listed(items: readonly string[], last = ' and '): string {
  return items.length < 2 ? (items[0] ?? '') : `${items.slice(0, -1).join(', ')}${last}${items.at(-1)}`
}
