// Saved queries of a lake. The service stores them for everybody who has all sources of the lake. Somebody who has only some of them keeps queries in this
// browser, as everybody did in earlier versions; those are moved to the service once.

import { useEffect, useRef, useState } from 'react'
import type { ApiProblem } from '../../api/client.ts'
import { useApi, useChange } from '../../api/queries.ts'
import { useMayEdit } from '../../session/session.tsx'

export interface SavedQuery {
  name: string
  query: string
}

export interface SavedQueries {
  saved: readonly SavedQuery[]
  /** Whether others see them. */
  isShared: boolean
  save: (query: SavedQuery) => void
  remove: (name: string) => void
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

  const isMoved = useRef(false)
  const stored = list.data?.data
  useEffect(() => {
    if (!isShared || stored === undefined || own.length === 0 || isMoved.current) return
    isMoved.current = true
    const move = async (): Promise<void> => {
      const left: SavedQuery[] = []
      for (const { name, query } of own) {
        const known = stored.find((each) => each.name === name)
        if (known?.query === query) continue
        const body = { name: known === undefined ? name : `${name} (from a browser)`, query }
        await saving.mutateAsync({ params, body }).catch(() => left.push({ name, query }))
      }
      keep(left)
    }
    void move()
  })

  if (isShared)
    return {
      saved: stored ?? [],
      isShared,
      save: (body) => saving.mutate({ params, body }),
      remove: (name) => {
        const queryId = stored?.find((each) => each.name === name)?.id
        if (queryId !== undefined) removing.mutate({ params: { ...params, queryId } })
      },
      problem: saving.error ?? removing.error ?? list.error,
    }
  return {
    saved: own,
    isShared,
    save: (query) => keep([...own.filter(({ name }) => name !== query.name), query].sort((one, other) => (one.name < other.name ? -1 : 1))),
    remove: (name) => keep(own.filter((each) => each.name !== name)),
    problem: null,
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
