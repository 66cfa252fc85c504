// The names of destinations, for rows that have only ids. A deleted destination is shown by its id.

import { useMemo } from 'react'
import { useNames } from '../api/use-names.ts'

export function useDestinationNames() {
  const { destinations, isLoaded } = useNames()
  return useMemo(
    () => ({
      nameOf: (id: string): string => destinations.get(id) ?? id,
      isKnown: (id: string): boolean => !isLoaded || destinations.has(id),
      options: [...destinations].map(([value, label]) => ({ value, label })),
    }),
    [destinations, isLoaded],
  )
}
