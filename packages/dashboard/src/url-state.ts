// What of a view stands in its address: filters, tabs, selections. Read from the address as it is, because wouter's own hooks decode it
// once before it is taken apart, and a user or message whose id holds a per cent sign would come out as another.

import { useMemo } from 'react'
import { navigate, usePathname, useSearch } from 'wouter/use-browser-location'
import { changedSearch, pathPart } from './url-params.ts'

export type SearchChanges = Readonly<Record<string, string | null | undefined>>

/** The parameters, and how to change some of them. `replace`: not a step to go back to, as for every letter that is typed. */
export function useSearchState(): [params: URLSearchParams, change: (changes: SearchChanges, options?: { replace?: boolean }) => void] {
  const search = useSearch()
  const params = useMemo(() => new URLSearchParams(search), [search])
  return [params, changeSearch]
}

export function changeSearch(changes: SearchChanges, { replace = false }: { replace?: boolean } = {}): void {
  const { pathname, search, hash } = window.location
  navigate(`${pathname}${changedSearch(search, changes)}${hash}`, { replace })
}

/** A part of the path, from 0: of /messages/a%2Fb the second is a/b. */
export function usePathPart(at: number): string {
  return pathPart(usePathname(), at)
}
