// The last messages of some sources: what a mapping can read, and which events there are.

import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { type ApiProblem, call } from '../../api/client.ts'
import { eventNames, type PathSuggestion, pathSuggestions } from './path-suggestions.ts'

const MAX_SOURCES = 5
const PER_SOURCE = 30

export interface RecentMessages {
  suggestions: readonly PathSuggestion[]
  events: readonly string[]
}

export function useRecentMessages(sourceIds: readonly string[]): RecentMessages {
  const asked = sourceIds.slice(0, MAX_SOURCES)
  const { data } = useQuery<{ event: string | null; message: Record<string, unknown> | null }[], ApiProblem>({
    queryKey: ['recent messages', ...asked],
    queryFn: async ({ signal }) => {
      const pages = await Promise.all(
        asked.map((sourceId) => call('GET /api/messages', { query: { sourceId, limit: PER_SOURCE }, signal })),
      )
      return pages.flatMap((page) => page.data)
    },
    enabled: asked.length > 0,
    staleTime: 30_000,
  })
  return useMemo(() => {
    const messages = data ?? []
    return {
      suggestions: pathSuggestions(messages.flatMap(({ message }) => (message === null ? [] : [message]))),
      events: eventNames(messages),
    }
  }, [data])
}
