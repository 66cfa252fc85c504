// A list that is loaded page by page: that it is loading, an error, what is shown instead of an empty list, or the rows and a button for the next page.

import type { ReactNode } from 'react'
import type { ApiProblem } from '../api/client.ts'
import { ErrorAlert, Loading } from './query-states.tsx'
import { LoadMore } from './responsive-table.tsx'

export interface LoadedListProps {
  list: {
    rows: readonly unknown[]
    problem: ApiProblem | null
    isPending: boolean
    refetch: () => unknown
    hasNextPage: boolean
    isFetchingNextPage: boolean
    fetchNextPage: () => unknown
  }
  /** Shown while there are no rows. */
  empty: ReactNode
  /** While it is loading. */
  lines?: number
  label?: string
  children: ReactNode
}

export function LoadedList({ list, empty, lines = 4, label = 'Loading', children }: LoadedListProps) {
  if (list.problem !== null && list.rows.length === 0) return <ErrorAlert problem={list.problem} onRetry={() => void list.refetch()} />
  if (list.isPending) return <Loading lines={lines} label={label} />
  if (list.rows.length === 0) return empty
  return (
    <>
      {children}
      <LoadMore list={list} />
    </>
  )
}
