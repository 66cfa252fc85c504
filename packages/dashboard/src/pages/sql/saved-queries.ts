// Saved queries of a lake. The service stores them for everybody who has all sources of the lake. Somebody who has only some of them keeps queries in this
// browser, as everybody did in earlier versions. Queries of a browser are moved to the service only when somebody asks for it, because that publishes them.

import { useState } from 'react'
import type { ApiProblem } from '../../api/client.ts'
import { useApi, useChange } from '../../api/queries.ts'
import { useMayEdit } from '../../session/session.tsx'
import { type ListedQuery, listedQueries, type SavedQuery } from './listed-queries.ts'

export interface SavedQueries {
  saved: readonly ListedQuery[]
  /** Whether others see them. */
  isShared: boolean
  save: (query: SavedQuery) => void
  remove: (query: ListedQuery) => void
  /** Queries of this browser that could be shared. */
  unshared: readonly SavedQuery[]
  /** Moves them to the lake. Rejects with the last error if some could not be moved; these stay in the browser. */
  share: () => Promise<void>
  problem: ApiProblem | null
}

const KEY = 'switchyard.sql.saved'
const LIST = 'GET /api/destinations/{id}/queries'

export function useSavedQueries(lake: { id: string; shared?: boolean | undefined }): SavedQueries {
  const params = { id: lake.id }
  const isShared = useMayEdit(lake)
  const [own, setOwn] = useState<readonly SavedQuery[]>(read)
  const list = useApi(LIST, { params, enabled: isShared })
  const saving = useChange('POST /api/destinations/{id}/queries', LIST)
  const removing = useChange('DELETE /api/destinations/{id}/queries/{queryId}', LIST)
  const keep = (next: readonly SavedQuery[]): void => {
    setOwn(next)
    write(next)
  }

  const stored = list.data?.data ?? []
  const share = async (): Promise<void> => {
    const left: SavedQuery[] = []
    let problem: unknown = null
    for (const { name, query } of own) {
      const known = stored.find((each) => each.name === name)
      if (known?.query === query) continue
      const body = { name: known === undefined ? name : `${name} (from a browser)`, query }
      await saving.mutateAsync({ params, body }).catch((error: unknown) => {
        left.push({ name, query })
        problem = error
      })
    }
    keep(left)
    if (problem !== null) throw problem
  }

  const removeOwn = ({ name }: SavedQuery): void => keep(own.filter((each) => each.name !== name))
  if (!isShared) {
    const save = (query: SavedQuery): void =>
      keep([...own.filter(({ name }) => name !== query.name), query].sort((one, other) => (one.name < other.name ? -1 : 1)))
    return { saved: listedQueries([], own, isShared), isShared, save, remove: removeOwn, unshared: [], share, problem: null }
  }
  const unshared = list.data === undefined ? [] : own
  return {
    saved: listedQueries(stored, unshared, isShared),
    isShared,
    save: (body) => saving.mutate({ params, body }),
    remove: (query) => {
      if (query.id === null) removeOwn(query)
      else removing.mutate({ params: { ...params, queryId: query.id } })
    },
    unshared,
    share,
    problem: saving.error ?? removing.error ?? list.error,
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

function write(queries: readonly SavedQuery[]): void {
  try {
    if (queries.length === 0) localStorage.removeItem(KEY)
    else localStorage.setItem(KEY, JSON.stringify(queries))
  } catch {
    // The browser's storage is full or not allowed: the queries are kept until the page is closed.
  }
}
