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

export interface Param {
  /** The name of the parameter in the page's address. */
  param: string
  /** Another name of it, which links of other pages use. */
  alias?: string | undefined
  /** Another parameter, which is removed when this one is changed. */
  clears?: string | undefined
  /** Whether a change replaces the entry in the browser's history. */
  isReplacing?: boolean | undefined
}

/** One query parameter, empty if it is not set, and a function that changes or removes it. */
export function useParam({ param, alias = param, clears = param, isReplacing = false }: Param) {
  const [params, change] = useSearchState()
  const set = (value: string | null | undefined): void =>
    change({ [alias]: null, [clears]: null, [param]: value }, { replace: isReplacing })
  return [params.get(param) || params.get(alias) || '', set] as const
}

export function changeSearch(changes: SearchChanges, { replace = false }: { replace?: boolean } = {}): void {
  const { pathname, search, hash } = window.location
  navigate(`${pathname}${changedSearch(search, changes)}${hash}`, { replace })
}

/** A decoded segment of the path, counted from 0: segment 1 of /messages/a%2Fb is a/b. */
export function usePathPart(at: number): string {
  return pathPart(usePathname(), at)
}
