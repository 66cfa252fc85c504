// The frame around every page: navigation, search (⌘K), the switch between light and dark, and who is logged in.

import {
  ActionIcon,
  Alert,
  AppShell,
  Badge,
  Burger,
  Button,
  Group,
  Kbd,
  NavLink,
  ScrollArea,
  Text,
  UnstyledButton,
  useComputedColorScheme,
  useMantineColorScheme,
  VisuallyHidden,
} from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { Suspense } from 'react'
import { Link, Route, Switch, useLocation } from 'wouter'
import { ErrorBoundary } from './components/error-boundary.tsx'
import { DocsIcon, MoonIcon, SearchIcon, SunIcon } from './components/icons.tsx'
import { Empty, Loading, Page } from './components/page.tsx'
import { SmallButton, Time } from './components/styled.tsx'
import { type Incident, unattended } from './incidents/incident-text.ts'
import { useActiveIncidents } from './incidents/use-incidents.ts'
import { NAVIGATION, VIEWS } from './routes.tsx'
import { openSearch, Search } from './search.tsx'
import { useSession } from './session/session.tsx'
import { UserMenu } from './session/user-menu.tsx'

export function Shell() {
  const [isOpen, { toggle, close }] = useDisclosure(false)
  const [location] = useLocation()
  return (
    <AppShell header={{ height: 52 }} navbar={{ width: 216, breakpoint: 'sm', collapsed: { mobile: !isOpen } }} padding="md">
      <Button component="a" href="#content" className="skip-link" size="xs">
        Skip to content
      </Button>
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={isOpen} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Navigation" />
            <Link href="/" asChild>
              <UnstyledButton aria-label="Switchyard, overview">
                <Group gap={8} wrap="nowrap">
                  <img src="/icon.svg" alt="" width={24} height={24} />
                  <Text fw={700}>Switchyard</Text>
                </Group>
              </UnstyledButton>
            </Link>
          </Group>
          <Tools />
        </Group>
      </AppShell.Header>
      <Navigation location={location} onChoose={close} />
      <AppShell.Main id="content" tabIndex={-1}>
        <OldData />
        <ErrorBoundary at={location}>
          <Suspense fallback={<Loading lines={6} />}>
            <Switch>
              {VIEWS.map(({ path, page: View }) => (
                <Route key={path} path={path}>
                  {(params) => <View {...(params as Record<string, string>)} />}
                </Route>
              ))}
              <Route>
                <Page title="Not found">
                  <Empty title="Page not found" link={{ to: '/', label: 'Go to the overview' }}>
                    Check the URL. The page may belong to another version of Switchyard.
                  </Empty>
                </Page>
              </Route>
            </Switch>
          </Suspense>
        </ErrorBoundary>
      </AppShell.Main>
      <Search />
    </AppShell>
  )
}

function Tools() {
  return (
    <Group gap={6} wrap="nowrap">
      <SmallButton leftSection={<SearchIcon size={15} />} onClick={openSearch} visibleFrom="xs" rightSection={<Kbd size="xs">⌘K</Kbd>}>
        Search
      </SmallButton>
      <ActionIcon variant="default" size="md" onClick={openSearch} hiddenFrom="xs" aria-label="Search">
        <SearchIcon size={15} />
      </ActionIcon>
      <SchemeButton />
      <UserMenu />
    </Group>
  )
}

function Navigation({ location, onChoose }: { location: string; onChoose: () => void }) {
  const { mayEdit, sources } = useSession()
  const waiting = unattended(useActiveIncidents(20_000).data?.data ?? [])
  return (
    <AppShell.Navbar p="xs" aria-label="Pages">
      <AppShell.Section grow component={ScrollArea}>
        {NAVIGATION.map(({ path, label, Icon }) => (
          <NavLink
            key={path}
            component={Link}
            href={path}
            label={label}
            leftSection={<Icon />}
            rightSection={path === '/alerts' && waiting.length > 0 ? <IncidentCount incidents={waiting} /> : undefined}
            active={path === '/' ? location === '/' : location.replace('/catalog', '/destinations').startsWith(path)}
            onClick={onChoose}
          />
        ))}
      </AppShell.Section>
      <AppShell.Section>
        <NavLink component="a" href="/docs/" label="Documentation" leftSection={<DocsIcon />} />
        {!mayEdit && (
          <Badge variant="light" color="gray" m="xs">
            Read-only access
          </Badge>
        )}
        {sources !== 'all' && (
          <Badge variant="light" color="gray" m="xs">
            {sources.length === 1 ? 'Limited to 1 source' : `Limited to ${sources.length} sources`}
          </Badge>
        )}
      </AppShell.Section>
    </AppShell.Navbar>
  )
}

/** Says on every page that what it shows is old, because the service does not answer any more. */
function OldData() {
  const { data, error, dataUpdatedAt } = useActiveIncidents(5_000)
  if (data === undefined || error?.status !== 0) return null
  return (
    <Alert color="orange" title="No answer from the service" role="status" mb="md">
      What you see may be old. Last answer: <Time at={new Date(dataUpdatedAt).toISOString()} relative />.
    </Alert>
  )
}

function IncidentCount({ incidents }: { incidents: readonly Incident[] }) {
  const isCritical = incidents.some(({ severity }) => severity === 'critical')
  return (
    <Badge
      size="sm"
      circle
      variant="filled"
      color={isCritical ? 'red.9' : 'orange.9'}
      aria-label={`${incidents.length} that nobody has acknowledged`}
    >
      {incidents.length}
    </Badge>
  )
}

function SchemeButton() {
  const { setColorScheme } = useMantineColorScheme()
  const isDark = useComputedColorScheme('light') === 'dark'
  return (
    <ActionIcon variant="default" size="md" onClick={() => setColorScheme(isDark ? 'light' : 'dark')}>
      {isDark ? <SunIcon size={15} /> : <MoonIcon size={15} />}
      <VisuallyHidden>{isDark ? 'Switch to light mode' : 'Switch to dark mode'}</VisuallyHidden>
    </ActionIcon>
  )
}
