// The state of a page that is in its URL: filters, tabs, selections. Reads the raw URL, because wouter's own hooks decode it before they
// split it, which would change the id of a user or message that contains a per cent sign.

import { useMemo } from 'react'
import { navigate, usePathname, useSearch } from 'wouter/use-browser-location'
import { changedSearch, pathPart } from './url-params.ts'

export type SearchChanges = Readonly<Record<string, string | null | undefined>>

/** The query parameters and a function that changes some of them. With `replace`, the change adds no entry to the browser's history. */
export function useSearchState(): [params: URLSearchParams, change: (changes: SearchChanges, options?: { replace?: boolean }) => void] {
  const search = useSearch()
  const params = useMemo(() => new URLSearchParams(search), [search])
  return [params, changeSearch]
}

export function changeSearch(changes: SearchChanges, { replace = false }: { replace?: boolean } = {}): void {
  const { pathname, search, hash } = window.location
  navigate(`${pathname}${changedSearch(search, changes)}${hash}`, { replace })
}

/** A decoded segment of the path, counted from 0: segment 1 of /messages/a%2Fb is a/b. */
export function usePathPart(at: number): string {
  return pathPart(usePathname(), at)
}
