// The hooks with which pages call the API: a cached query per operation and parameters, refreshed while it is shown. Lists are loaded page by page.

import { keepPreviousData, QueryClient, useInfiniteQuery, useMutation, useQueries, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { type Answer, ApiProblem, type CallOptions, call, type Operation, type Query } from './client.ts'

export type { Answer, Schemas } from './client.ts'
export { ApiProblem } from './client.ts'

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      // An error response would be the same again. Retry only if the service could not be reached or is unavailable.
      retry: (failures, error) => failures < 2 && error instanceof ApiProblem && (error.status === 0 || error.status === 503),
      refetchOnWindowFocus: true,
      networkMode: 'always',
    },
    // The service may run on this computer, so calls do not wait until the browser thinks that it is online.
    mutations: { networkMode: 'always' },
  },
})

/** What pages need of a query. */
export interface QueryState<T = unknown> {
  data: T | undefined
  error: ApiProblem | null
  isPending: boolean
  refetch: () => unknown
}

type Getting = Extract<Operation, `GET ${string}`>

/** `everyMs`: how often the query is refreshed while it is shown. A function gets the last response and returns undefined to stop. */
export function useApi<Op extends Getting>(
  operation: Op,
  options: CallOptions<Op> & {
    everyMs?: number | ((answer: Answer<Op> | undefined) => number | undefined)
    enabled?: boolean
    keep?: boolean
  },
) {
  const { everyMs, enabled = true, keep = false, ...rest } = options
  const asked = rest as unknown as CallOptions<Op>
  return useQuery<Answer<Op>, ApiProblem>({
    queryKey: [operation, rest],
    queryFn: ({ signal }) => (call as (op: Op, options: unknown) => Promise<Answer<Op>>)(operation, { ...asked, signal }),
    enabled,
    ...(keep ? { placeholderData: keepPreviousData } : {}),
    ...(everyMs === undefined
      ? {}
      : { refetchInterval: typeof everyMs === 'number' ? everyMs : ({ state }) => everyMs(state.data) ?? false }),
  })
}

type Listed<Op extends Getting> = Answer<Op> extends { data: (infer Row)[]; next: string | null } ? Row : never

/** A page, with what the list says about it besides its rows. */
type Page<Op extends Getting> = Omit<Answer<Op>, 'data' | 'next'> & { data: Listed<Op>[]; next: string | null }

/** All pages that are loaded so far, as one list. */
export function useList<Op extends Getting>(
  operation: Op,
  options: { params?: Record<string, string>; query?: Omit<Query<Op>, 'cursor'>; everyMs?: number; enabled?: boolean; keep?: boolean },
) {
  const { params, query, everyMs, enabled = true, keep = false } = options
  const result = useInfiniteQuery({
    queryKey: [operation, 'list', params, query],
    queryFn: ({ pageParam, signal }) =>
      (call as (op: Op, options: unknown) => Promise<unknown>)(operation, {
        params,
        query: { ...query, cursor: pageParam ?? undefined },
        signal,
      }) as Promise<Page<Op>>,
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    enabled,
    ...(keep ? { placeholderData: keepPreviousData } : {}),
    ...(everyMs === undefined ? {} : { refetchInterval: everyMs }),
  })
  const rows = result.data?.pages.flatMap(({ data }) => data) ?? []
  return { ...result, rows, problem: result.error as ApiProblem | null }
}

/** All pages, loaded one after the other: for lists that a page searches. There are only as many rows as a configuration holds. */
export function useWholeList<Op extends Getting>(operation: Op, options: Parameters<typeof useList<Op>>[1]) {
  const list = useList(operation, options)
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = list
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage()
  }, [hasNextPage, isFetchingNextPage, fetchNextPage])
  return list
}

/**
 * The error of a query that has never had data. It is kept during retries: a query without data clears its error at every retry, and a page
 * that refreshes every few seconds would flicker. `about` identifies the query; another query starts without an error.
 */
export function usePersistentProblem({ data, error }: { data: unknown; error: ApiProblem | null }, about = ''): ApiProblem | null {
  const last = useRef<{ about: string; problem: ApiProblem } | null>(null)
  if (error !== null) last.current = { about, problem: error }
  else if (data !== undefined || last.current?.about !== about) last.current = null
  return last.current?.problem ?? null
}

/** Queries that return the same resources as another query, so they are refreshed with it. */
const ALSO_STALE: { readonly [Op in Getting]?: readonly Getting[] } = { 'GET /api/destinations': ['GET /api/destinations/summary'] }

type Changing = Exclude<Operation, Getting>

/** A call that changes something. Afterwards the cached queries of the given operations are refreshed. */
export function useChange<Op extends Changing>(operation: Op, ...stale: Getting[]) {
  const client = useQueryClient()
  return useMutation<Answer<Op>, ApiProblem, CallOptions<Op>>({
    mutationFn: (options) => (call as (op: Op, options: unknown) => Promise<Answer<Op>>)(operation, options),
    onSuccess: () =>
      Promise.all(
        [...stale, ...stale.flatMap((each) => ALSO_STALE[each] ?? [])].map((each) => client.invalidateQueries({ queryKey: [each] })),
      ).then(() => undefined),
  })
}

type StatsQuery = Omit<Query<'GET /api/stats'>, 'sourceId' | 'destinationId'>

/** The statistics of each of some sources or destinations. */
export function useStatsOf(about: 'sourceId' | 'destinationId', ids: readonly string[], query: StatsQuery, everyMs: number) {
  const asked = useQueries({
    queries: ids.map((id) => ({
      queryKey: ['GET /api/stats', { query: { ...query, [about]: id } }],
      queryFn: ({ signal }: { signal: AbortSignal }) => call('GET /api/stats', { query: { ...query, [about]: id }, signal }),
      refetchInterval: everyMs,
    })),
  })
  return asked.map(({ data, error, isPending, refetch }) => ({ data, error: error as ApiProblem | null, isPending, refetch }))
}
