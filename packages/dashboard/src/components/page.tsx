// The parts of pages: title, sections, tabs and facts; and what is shown instead of data: that it is loading, that there is nothing, or an
// error with a way to retry. Every page uses these components, so that they look alike.

import { Alert, Box, Button, Group, Paper, SimpleGrid, Skeleton, Stack, Tabs, Text, Title } from '@mantine/core'
import { useDocumentTitle } from '@mantine/hooks'
import { type ReactNode, useId } from 'react'
import type { ApiProblem } from '../api/client.ts'
import { usePersistentProblem } from '../api/queries.ts'
import { useSearchState } from '../url/url-state.ts'
import { LinkButton, Note, SectionTitle, SmallNote } from './styled.tsx'

export function Page({ children, ...titled }: Titled & { children: ReactNode }) {
  useDocumentTitle(`${titled.title} · Switchyard`)
  return (
    <Stack gap="lg" maw={1400} mx="auto" w="100%">
      <Heading {...titled} order={1} size="h2" />
      {children}
    </Stack>
  )
}

export interface Titled {
  title: string
  about?: ReactNode
  actions?: ReactNode
}

export function Section({ children, ...titled }: Titled & { children: ReactNode }) {
  const titleId = useId()
  return (
    <Paper withBorder p="md" component="section" aria-labelledby={titleId} miw={0}>
      <Stack gap="sm">
        <Heading {...titled} order={2} size="h4" id={titleId} />
        {children}
      </Stack>
    </Paper>
  )
}

export function Heading({ title, about, actions, ...own }: Titled & { order: 1 | 2; size: string; id?: string }) {
  return (
    <Group justify="space-between" align="flex-start" gap="sm">
      <Stack gap={2} miw={0} style={{ flex: '1 1 240px' }}>
        <Title style={{ overflowWrap: 'anywhere' }} {...own}>
          {title}
        </Title>
        {about !== undefined && <Note>{about}</Note>}
      </Stack>
      {actions !== undefined && <Group gap="xs">{actions}</Group>}
    </Group>
  )
}

interface PageTabsProps {
  /** `panel` is rendered while the tab is shown. */
  tabs: readonly { name: string; label: string; panel: ReactNode }[]
  /** Parameters in the address that belong to a tab, and are removed when another one is chosen. */
  clears?: readonly string[]
}

export function PageTabs({ tabs, clears = [] }: PageTabsProps) {
  const [params, change] = useSearchState()
  const [first] = tabs
  const shown = tabs.find(({ name }) => name === params.get('tab')) ?? first
  return (
    <Tabs
      value={shown?.name ?? null}
      onChange={(value) => change({ ...Object.fromEntries(clears.map((name) => [name, null])), tab: value === first?.name ? null : value })}
      keepMounted={false}
    >
      <Tabs.List>
        {tabs.map(({ name, label }) => (
          <Tabs.Tab key={name} value={name}>
            {label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {tabs.map(({ name, panel }) => (
        <Tabs.Panel key={name} value={name} pt="md">
          {panel}
        </Tabs.Panel>
      ))}
    </Tabs>
  )
}

export type Fact = readonly [name: string, value: ReactNode]

/** Leaves out facts whose value is null or undefined. */
export function Facts({ facts, cols = 3 }: { facts: readonly Fact[]; cols?: number }) {
  return (
    <SimpleGrid component="dl" cols={{ base: 1, xs: 2, md: cols }} spacing="md" verticalSpacing="sm" m={0}>
      {facts
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([name, value]) => (
          <Box key={name} miw={0}>
            <SmallNote component="dt">{name}</SmallNote>
            <Text component="dd" size="sm" m={0} style={{ overflowWrap: 'anywhere' }}>
              {value}
            </Text>
          </Box>
        ))}
    </SimpleGrid>
  )
}

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

interface LoadedProps<T> {
  query: { data: T | undefined; error: ApiProblem | null; isPending: boolean; refetch: () => unknown }
  children: (data: T) => ReactNode
  lines?: number
}

/** Shows the children with the data of a query, or else its error, or that it is loading. */
export function Loaded<T>({ query, children, lines }: LoadedProps<T>) {
  const problem = usePersistentProblem(query)
  if (query.data !== undefined) return <>{children(query.data)}</>
  if (problem) return <ErrorAlert problem={problem} onRetry={() => void query.refetch()} />
  return <Loading {...(lines === undefined ? {} : { lines })} />
}

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
