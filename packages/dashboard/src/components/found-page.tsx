// The page of one thing, such as a source: that it is loading, that it was not found, an error, or the page itself.

import type { ReactNode } from 'react'
import type { ApiProblem } from '../api/client.ts'
import { usePersistentProblem } from '../api/queries.ts'
import { Page } from './page.tsx'
import { Empty, ErrorAlert, Loading } from './query-states.tsx'
import { LinkButton } from './styled.tsx'

interface FoundPageProps<T> {
  query: { data: T | undefined; error: ApiProblem | null; refetch: () => unknown }
  id: string
  /** The name of the kind of thing, such as Source. */
  name: string
  /** The code of the API if there is none with this id. */
  notFound: string
  /** Why there may be none. */
  reasons: string
  /** The page that lists all of them. */
  all: { to: string; label: string }
  lines?: number
  children: (data: T) => ReactNode
}

export function FoundPage<T>({ query, id, name, notFound, reasons, all, lines = 6, children }: FoundPageProps<T>) {
  const problem = usePersistentProblem(query, id)
  if (query.data !== undefined && problem?.code !== notFound) return children(query.data)
  return (
    <Page title={name}>
      {problem === null ? (
        <Loading lines={lines} label={`Loading ${name.toLowerCase()}`} />
      ) : problem.code === notFound ? (
        <Empty
          title={`${name} not found`}
          action={
            <LinkButton to={all.to} variant="filled">
              {all.label}
            </LinkButton>
          }
        >
          {reasons}
        </Empty>
      ) : (
        <ErrorAlert problem={problem} onRetry={() => void query.refetch()} />
      )}
    </Page>
  )
}
