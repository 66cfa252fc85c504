// Saved queries, in this browser.

import { useState } from 'react'

export interface SavedQuery {
  name: string
  query: string
}

const KEY = 'switchyard.sql.saved'

export function useSavedQueries(): { saved: readonly SavedQuery[]; save: (query: SavedQuery) => void; remove: (name: string) => void } {
  const [saved, setSaved] = useState<readonly SavedQuery[]>(read)
  const store = (next: readonly SavedQuery[]): void => {
    setSaved(next)
    try {
      localStorage.setItem(KEY, JSON.stringify(next))
    } catch {
      // Storage is full or not allowed: the queries last as long as the page.
    }
  }
  return {
    saved,
    save: (query) =>
      store([...saved.filter(({ name }) => name !== query.name), query].sort((one, other) => (one.name < other.name ? -1 : 1))),
    remove: (name) => store(saved.filter((each) => each.name !== name)),
  }
}

function read(): readonly SavedQuery[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]')
    return Array.isArray(stored)
      ? stored.filter((each): each is SavedQuery => typeof each?.name === 'string' && typeof each?.query === 'string')
      : []
  } catch {
    return []
  }
}
