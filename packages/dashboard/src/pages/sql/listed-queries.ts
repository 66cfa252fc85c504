// The list of saved queries: those of the lake, and those that only this browser has. Both may have a query of one name.

export interface SavedQuery {
  name: string
  query: string
}

export interface ListedQuery extends SavedQuery {
  /** Identifies it in the list. */
  key: string
  label: string
  /** The id in the lake; null if only this browser has it. */
  id: string | null
}

/** `isShared`: whether others see queries that are saved now. Otherwise all are in this browser, and need no suffix. */
export function listedQueries(
  stored: readonly (SavedQuery & { id: string })[],
  own: readonly SavedQuery[],
  isShared: boolean,
): ListedQuery[] {
  return [
    ...stored.map(({ id, name, query }) => ({ key: `lake ${id}`, label: name, id, name, query })),
    ...own.map(({ name, query }) => {
      const label = isShared ? `${name} (only in this browser)` : name
      return { key: `browser ${name}`, label, id: null, name, query }
    }),
  ]
}

/** The query that was chosen in the list; after its name was changed, the first one with this name. */
export function openedQuery(listed: readonly ListedQuery[], key: string | null, name: string): ListedQuery | undefined {
  return listed.find((each) => each.key === key && each.name === name) ?? listed.find((each) => each.name === name)
}
