// The parts of pages: title, sections, tabs and facts; and what is shown instead of data: that it is loading, that there is nothing, or an
// error with a way to retry. Every page uses these components, so that they look alike.

import { Alert, Box, Button, Group, Paper, SimpleGrid, Skeleton, Stack, Tabs, Text, Title } from '@mantine/core'
import { useDocumentTitle } from '@mantine/hooks'
import { Fragment, type ReactNode, useId } from 'react'
import type { ApiProblem } from '../api/client.ts'
import { type Answer, type QueryState, useApi, usePersistentProblem } from '../api/queries.ts'
import { usePathPart, useSearchState } from '../url/url-state.ts'
import { clearFilters } from './inputs.tsx'
import { LinkButton, LongText, Note, SecondaryButton, SectionTitle, SmallNote } from './styled.tsx'

interface PageProps extends Titled {
  /** The page that this one belongs to, instead of actions. */
  back?: PageLink
  children: ReactNode
}

/** The title is also the title of the browser tab. */
export function Page({ children, back, actions, ...titled }: PageProps) {
  useDocumentTitle(`${titled.title} · Switchyard`)
  const link = back && (
    <LinkButton to={back.to} size="xs">
      {back.label}
    </LinkButton>
  )
  return (
    <Stack gap="lg" maw={1400} mx="auto" w="100%">
      <Heading {...titled} actions={actions ?? link} order={1} size="h2" />
      {children}
    </Stack>
  )
}

export interface Titled {
  title: string
  about?: ReactNode
  actions?: ReactNode
}

export function Section({ children, gap = 'sm', ...titled }: Titled & { gap?: string; children: ReactNode }) {
  const titleId = useId()
  return (
    <Paper withBorder p="md" component="section" aria-labelledby={titleId} miw={0}>
      <Stack gap={gap}>
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

export interface PageLink {
  to: string
  label: string
}

interface EmptyProps {
  title: string
  children?: ReactNode
  action?: ReactNode
  link?: PageLink & { isLight?: boolean }
  /** Parameters of filters, which a button removes. */
  filters?: readonly string[]
}

export function Empty({ title, children, action, link, filters }: EmptyProps) {
  return (
    <Stack align="center" gap="xs" py="xl" ta="center">
      <SectionTitle>{title}</SectionTitle>
      {children !== undefined && (
        <Text c="dimmed" maw={480}>
          {children}
        </Text>
      )}
      {action}
      {filters && <SecondaryButton onClick={() => clearFilters(filters)}>Show all</SecondaryButton>}
      {link && (
        <LinkButton to={link.to} {...(link.isLight ? { variant: 'light', mt: 'xs' } : { variant: 'filled' })}>
          {link.label}
        </LinkButton>
      )}
    </Stack>
  )
}

export function ErrorAlert({ problem, onRetry }: { problem: Pick<ApiProblem, 'message' | 'code'>; onRetry?: () => void }) {
  return (
    <Alert color="red" variant="light" title="Something went wrong" role="alert">
      <Stack gap="xs">
        <LongText>{problem.message}</LongText>
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
  query: QueryState<T>
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

type ResourceName = 'Source' | 'Destination' | 'Event' | 'Plan'
type ResourceOperation<Name extends ResourceName> = `GET /api/${Lowercase<Name>}s/{id}`

interface ResourcePageProps<Name extends ResourceName> {
  name: Name
  /** Why there may be none with this id. */
  reasons: string
  lines?: number
  children: (data: Answer<ResourceOperation<Name>>) => ReactNode
}

/** The page of one thing, such as a source: that it is loading, that it was not found, an error, or the page itself. */
export function ResourcePage<Name extends ResourceName>({ name, reasons, lines = 6, children }: ResourcePageProps<Name>) {
  const id = usePathPart(1)
  const thing = name.toLowerCase() as Lowercase<Name>
  const query = useApi<ResourceOperation<ResourceName>>(`GET /api/${thing}s/{id}`, { params: { id }, everyMs: 15_000 })
  const problem = usePersistentProblem(query, id)
  const isMissing = problem?.code === `${thing}_not_found`
  if (query.data !== undefined && !isMissing) return <Fragment key={id}>{children(query.data)}</Fragment>
  return (
    <Page title={name}>
      {problem === null ? (
        <Loading lines={lines} label={`Loading ${thing}`} />
      ) : isMissing ? (
        <Empty title={`${name} not found`} link={{ to: `/${thing}s`, label: `All ${thing}s` }}>
          {reasons}
        </Empty>
      ) : (
        <ErrorAlert problem={problem} onRetry={() => void query.refetch()} />
      )}
    </Page>
  )
}
