// What a list or a page shows instead of data: that it is loading, that there is nothing, or an error with a way to retry. Every page uses
// these components, so that they look alike.

import { Alert, Button, Group, Skeleton, Stack, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import type { ApiProblem } from '../api/client.ts'
import { usePersistentProblem } from '../api/queries.ts'
import { SectionTitle } from './styled.tsx'

export function Loading({ lines = 4, label = 'Loading' }: { lines?: number; label?: string }) {
  return (
    <Stack gap="sm" aria-busy="true" aria-label={label} role="status">
      {Array.from({ length: lines }, (_, at) => (
        <Skeleton key={at} height={28} radius="sm" />
      ))}
    </Stack>
  )
}

export function Empty({ title, children, action }: { title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <Stack align="center" gap="xs" py="xl" ta="center">
      <SectionTitle>{title}</SectionTitle>
      {children !== undefined && (
        <Text c="dimmed" maw={480}>
          {children}
        </Text>
      )}
      {action}
    </Stack>
  )
}

export function ErrorAlert({ problem, onRetry }: { problem: Pick<ApiProblem, 'message' | 'code'>; onRetry?: () => void }) {
  return (
    <Alert color="red" variant="light" title="Something went wrong" role="alert">
      <Stack gap="xs">
        <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
          {problem.message}
        </Text>
        <Group gap="sm">
          <Text size="xs">{problem.code}</Text>
          {onRetry && (
            <Button size="xs" variant="light" color="red" onClick={onRetry}>
              Try again
            </Button>
          )}
        </Group>
      </Stack>
    </Alert>
  )
}

/** Shows the children with the data of a query, or else its error, or that it is loading. */
export function Loaded<T>({
  query,
  children,
  lines,
}: {
  query: { data: T | undefined; error: ApiProblem | null; isPending: boolean; refetch: () => unknown }
  children: (data: T) => ReactNode
  lines?: number
}) {
  const problem = usePersistentProblem(query)
  if (query.data !== undefined) return <>{children(query.data)}</>
  if (problem) return <ErrorAlert problem={problem} onRetry={() => void query.refetch()} />
  return <Loading {...(lines === undefined ? {} : { lines })} />
}
