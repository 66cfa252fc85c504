// The names of sources and destinations by id, for lists that contain only ids.

import { useMemo } from 'react'
import { useApi } from './queries.ts'

export interface Names {
  sources: ReadonlyMap<string, string>
  destinations: ReadonlyMap<string, string>
  /** Whether both lists are loaded. Until then, and for deleted sources and destinations, the id is shown instead. */
  isLoaded: boolean
}

const ALL = { limit: 1_000 }

export function useNames(): Names {
  const sources = useApi('GET /api/sources', { query: ALL })
  const destinations = useApi('GET /api/destinations/summary', {})
  return useMemo(
    () => ({
      sources: new Map((sources.data?.data ?? []).map(({ id, name }) => [id, name])),
      destinations: new Map((destinations.data?.data ?? []).map(({ id, name }) => [id, name])),
      isLoaded: sources.data !== undefined && destinations.data !== undefined,
    }),
    [sources.data, destinations.data],
  )
}

export function useDestinationNames() {
  const { destinations, isLoaded } = useNames()
  return useMemo(
    () => ({
      nameOf: (id: string): string => destinations.get(id) ?? id,
      isKnown: (id: string): boolean => !isLoaded || destinations.has(id),
      destinations,
    }),
    [destinations, isLoaded],
  )
}
