// Names of destinations, where rows have only their ids. One that was deleted has its id left.

import { useMemo } from 'react'
import { useNames } from '../../api/use-names.ts'

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
