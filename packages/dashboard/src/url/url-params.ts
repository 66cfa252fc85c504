// Reads and changes the parts of a URL as text, for url-state.ts. Pure.

/** Returns the query string with its question mark, or an empty string. Null, undefined and '' remove a parameter. */
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
