// Named views of the list of messages, in this browser. A view is the query of the address: filters and columns. To share one, copy the address.

import { useState } from 'react'

export interface SavedView {
  name: string
  /** The query of the address, without the question mark. */
  query: string
}

const KEY = 'switchyard.messages.views'
const MAX_VIEWS = 50

export function useSavedViews(): { views: readonly SavedView[]; save: (view: SavedView) => void; remove: (name: string) => void } {
  const [views, setViews] = useState<readonly SavedView[]>(() => viewsIn(read()))
  const store = (next: readonly SavedView[]): void => {
    setViews(next)
    try {
      localStorage.setItem(KEY, JSON.stringify(next))
    } catch {
      // Storage is full or not allowed: the views last as long as the page.
    }
  }
  return {
    views,
    save: (view) => store(withView(views, view)),
    remove: (name) => store(views.filter((each) => each.name !== name)),
  }
}

/** In alphabetical order. A view with the same name is replaced. */
export function withView(views: readonly SavedView[], view: SavedView): readonly SavedView[] {
  return [...views.filter(({ name }) => name !== view.name), view].sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, MAX_VIEWS)
}

/** The storage may contain anything. */
export function viewsIn(text: string | null): readonly SavedView[] {
  try {
    const stored: unknown = JSON.parse(text ?? '[]')
    if (!Array.isArray(stored)) return []
    return stored
      .filter((each): each is SavedView => typeof each?.name === 'string' && typeof each?.query === 'string')
      .map(({ name, query }) => ({ name, query }))
  } catch {
    return []
  }
}

/** The query of the address with only these parameters, in a stable order, so that two of the same view are equal. */
export function viewQuery(params: URLSearchParams, names: readonly string[]): string {
  const kept = new URLSearchParams()
  for (const name of names) {
    const value = params.get(name)
    if (value !== null && value !== '') kept.set(name, value)
  }
  return kept.toString()
}

function read(): string | null {
  try {
    return localStorage.getItem(KEY)
  } catch {
    return null
  }
}
