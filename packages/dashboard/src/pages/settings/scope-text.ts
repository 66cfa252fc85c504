// The sources of a person or a token in words. Pure.

/** Sources that do not exist any more have no name. */
export function scopeText(sources: 'all' | readonly string[], names: ReadonlyMap<string, string>): string {
  if (sources === 'all') return 'all'
  return sources.length === 0 ? 'none' : sources.map((id) => names.get(id) ?? id).join(', ')
}
