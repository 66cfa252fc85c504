// The first run: send a message, add a destination, see a message arrive, and choose where alerts go. Which steps are done follows from the data of the installation, so
// it can be left and continued at any time. Each step has its own URL.

import { Alert, Button, Group, SimpleGrid, Stack, Text, ThemeIcon, Title, UnstyledButton } from '@mantine/core'
import { useEffect } from 'react'
import { type Schemas, useApi, useChange } from '../../api/queries.ts'
import { CheckIcon } from '../../components/icons.tsx'
import { Empty, ErrorAlert, Loading, Page } from '../../components/page.tsx'
import { LinkButton, Note, SmallTag } from '../../components/styled.tsx'
import type { Destination } from '../../destination/kind.ts'
import { useSession } from '../../session/session.tsx'
import { useSearchState } from '../../url/url-state.ts'
import { AlertReceivers } from '../alerts/alert-receivers.tsx'
import { ArriveStep } from './arrive-step.tsx'
import { DestinationStep } from './destination-step.tsx'
import { doneSteps, nextStep, STEPS, type Step } from './progress.ts'
import { SendStep } from './send-step.tsx'
import classes from './start.module.css'

const ALL = { limit: 1_000 }

const ABOUT: Readonly<Record<Step, { title: string; about: string }>> = {
  send: { title: 'Send a message', about: 'Run one of the snippets and watch the message arrive.' },
  webhook: { title: 'Add a destination', about: 'Choose where messages are delivered, and send a test.' },
  arrive: { title: 'See it arrive', about: 'Send a message and follow it to the response of the destination.' },
  alerts: {
    title: 'Where should alerts go?',
    about: 'When a source falls silent or a destination fails, the service sends a message about it.',
  },
}

export default function StartPage() {
  const sources = useApi('GET /api/sources', { query: ALL, everyMs: 10_000 })
  const destinations = useApi('GET /api/destinations', { query: ALL, everyMs: 3_000 })
  const totals = useApi('GET /api/stats/totals', { everyMs: 3_000 })
  const ledger = useApi('GET /api/ledger', { query: {}, everyMs: 3_000 })
  const queries = [sources, destinations, totals, ledger]
  const failed = queries.find(({ data, error }) => data === undefined && error !== null)
  if (sources.data === undefined || destinations.data === undefined || totals.data === undefined || ledger.data === undefined)
    return (
      <Page title="Get started">
        {failed?.error ? (
          <ErrorAlert problem={failed.error} onRetry={() => void Promise.all(queries.map((query) => query.refetch()))} />
        ) : (
          <Loading lines={6} />
        )}
      </Page>
    )
  const done = doneSteps({
    accepted: totals.data.data.reduce((sum, { accepted }) => sum + accepted, 0),
    destinations: destinations.data.data.length,
    delivered: ledger.data.data.reduce((sum, { delivered }) => sum + delivered, 0),
    alertReceivers: destinations.data.data.filter(({ sourceIds }) => sourceIds.includes('system')).length,
  })
  // Nobody can send to the source of the service's own messages.
  return <Steps done={done} sources={sources.data.data.filter(({ builtIn }) => !builtIn)} destinations={destinations.data.data} />
}

interface StepsProps {
  done: Readonly<Record<Step, boolean>>
  sources: readonly Schemas['Source'][]
  destinations: readonly Destination[]
}

function Steps({ done, sources, destinations }: StepsProps) {
  const [params, change] = useSearchState()
  const chosen = STEPS.find((each) => each === params.get('step'))
  const step = chosen ?? nextStep(done)
  // Set only once: a step that is completed while it is shown must stay visible.
  useEffect(() => {
    if (chosen === undefined) change({ step }, { replace: true })
  }, [chosen, step, change])
  const goTo = (to: Step): void => change({ step: to, add: null, message: null })
  return (
    <Page title="Get started" about="Three steps to your first delivered message, and a fourth to be alerted to problems.">
      {done.send && done.webhook && done.arrive && (
        <Alert color="teal" variant="light" title="Your first message was delivered">
          <Group gap="sm">
            <Text size="sm">This installation accepts and delivers messages.</Text>
            <LinkButton to="/" size="xs">
              Go to the overview
            </LinkButton>
          </Group>
        </Alert>
      )}
      <StepList step={step} done={done} onStep={goTo} />
      <Stack component="section" aria-labelledby="step-title" gap="md" maw={860}>
        <div>
          <Title order={2} size="h3" id="step-title">
            {ABOUT[step].title}
          </Title>
          <Note>{ABOUT[step].about}</Note>
        </div>
        {step === 'alerts' ? <AlertReceivers /> : <MessageStep step={step} sources={sources} destinations={destinations} onStep={goTo} />}
      </Stack>
    </Page>
  )
}

interface MessageStepProps extends Omit<StepsProps, 'done'> {
  step: Exclude<Step, 'alerts'>
  onStep: (step: Step) => void
}

/** A step that needs a source. */
function MessageStep({ step, sources, destinations, onStep }: MessageStepProps) {
  const [params, change] = useSearchState()
  const source =
    sources.find(({ id }) => id === params.get('source')) ??
    sources.find(({ enabled, requireOAuth }) => enabled && !requireOAuth) ??
    sources[0]
  if (source === undefined) return <NoSource />
  if (step === 'arrive') return <ArriveStep source={source} destinations={destinations} />
  if (step === 'send')
    return <SendStep source={source} sources={sources} onSource={(id) => change({ source: id })} onNext={() => onStep('webhook')} />
  return (
    <DestinationStep
      source={source}
      destinations={destinations}
      chosen={destinations.find(({ id }) => id === params.get('destination')) ?? destinations.at(-1)}
      onChoose={(id) => change({ destination: id })}
      onNext={() => onStep('arrive')}
    />
  )
}

function StepList({ step, done, onStep }: { step: Step; done: Readonly<Record<Step, boolean>>; onStep: (step: Step) => void }) {
  return (
    <nav aria-label="Steps">
      <SimpleGrid
        component="ol"
        cols={{ base: 1, sm: 2, lg: 4 }}
        spacing="xs"
        verticalSpacing={4}
        p={0}
        m={0}
        style={{ listStyle: 'none' }}
      >
        {STEPS.map((each, at) => (
          <li key={each}>
            <UnstyledButton
              className={classes['step'] ?? ''}
              w="100%"
              onClick={() => onStep(each)}
              aria-current={each === step ? 'step' : undefined}
            >
              <Group gap="sm" wrap="nowrap">
                <ThemeIcon
                  size={28}
                  radius="xl"
                  variant={done[each] || each === step ? 'filled' : 'light'}
                  color={done[each] ? 'teal' : 'blue'}
                >
                  {done[each] ? <CheckIcon size={16} /> : at + 1}
                </ThemeIcon>
                <Text size="sm" fw={each === step ? 650 : 500} style={{ flex: 1 }}>
                  {ABOUT[each].title}
                </Text>
                <SmallTag color={done[each] ? 'teal' : 'gray'}>{done[each] ? 'done' : 'to do'}</SmallTag>
              </Group>
            </UnstyledButton>
          </li>
        ))}
      </SimpleGrid>
    </nav>
  )
}

function NoSource() {
  const { isAdmin } = useSession()
  const create = useChange('POST /api/sources', 'GET /api/sources')
  return (
    <Stack>
      <Empty
        title="No sources yet"
        action={
          isAdmin ? (
            <Button loading={create.isPending} onClick={() => create.mutate({ body: { name: 'default' } })}>
              Create a source
            </Button>
          ) : (
            <Text size="sm">Ask an admin to create one.</Text>
          )
        }
      >
        A source has the write key that your application sends messages with. Without a source, every call is rejected.
      </Empty>
      {create.error !== null && <ErrorAlert problem={create.error} />}
    </Stack>
  )
}
