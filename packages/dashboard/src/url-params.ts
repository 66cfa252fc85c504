// Addresses as text: pure, for search.ts.

/** With its question mark; empty when nothing is left. Null, undefined and the empty text take a parameter away. */
export function changedSearch(search: string, changes: Readonly<Record<string, string | null | undefined>>): string {
  const params = new URLSearchParams(search)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === '') params.delete(name)
    else params.set(name, value)
  }
  const text = params.toString()
  return text === '' ? '' : `?${text}`
}

export function pathPart(pathname: string, at: number): string {
  const part = pathname.split('/')[at + 1] ?? ''
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
