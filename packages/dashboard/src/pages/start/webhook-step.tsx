// The second step: a webhook, by its URL or by a receiver on this machine that connects itself; then a test, with what came back.

import { Alert, Badge, Button, Group, Paper, Radio, SegmentedControl, Stack, Text, TextInput, Title } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import type { Answer, Schemas } from '../../api/client.ts'
import { useChange } from '../../api/queries.ts'
import { AttemptView } from '../../components/attempt.tsx'
import { CodeBlock } from '../../components/copyable.tsx'
import { ViewLink } from '../../components/link.tsx'
import { ErrorAlert } from '../../components/query-states.tsx'
import { useSession } from '../../session.tsx'
import { isLoopback } from '../../text/snippets.ts'
import { useSearchState } from '../../url-state.ts'
import { nameProblem, urlAdvice, urlProblem } from '../destinations/validation.ts'
import { listenCommand } from './progress.ts'

type Destination = Schemas['Destination']
type Source = Schemas['Source']

export interface WebhookStepProps {
  source: Source
  destinations: readonly Destination[]
  chosen: Destination | undefined
  onChoose: (id: string) => void
  onNext: () => void
}

export function WebhookStep({ source, destinations, chosen, onChoose, onNext }: WebhookStepProps) {
  const { isAdmin } = useSession()
  const [params, change] = useSearchState()
  const isAdding = destinations.length === 0 || params.get('add') === 'yes'
  return (
    <Stack gap="lg">
      {isAdding ? (
        isAdmin ? (
          <Adding
            source={source}
            onAdded={(id) => {
              change({ add: null })
              onChoose(id)
            }}
            {...(destinations.length > 0 ? { onCancel: () => change({ add: null }) } : {})}
          />
        ) : (
          <Alert color="gray">
            Your token may only look. Somebody with an admin token can add a webhook; it shows here as soon as it is there.
          </Alert>
        )
      ) : (
        <Stack gap="sm">
          {destinations.length > 1 ? (
            <Radio.Group label="Which webhook" value={chosen?.id ?? null} onChange={onChoose}>
              <Stack gap="xs" mt="xs">
                {destinations.slice(-8).map(({ id, name, urls }) => (
                  <Radio
                    key={id}
                    value={id}
                    label={name}
                    description={urls[0]}
                    styles={{ label: { overflowWrap: 'anywhere' }, description: { overflowWrap: 'anywhere' } }}
                  />
                ))}
              </Stack>
            </Radio.Group>
          ) : (
            chosen !== undefined && (
              <div>
                <Text fw={600} style={{ overflowWrap: 'anywhere' }}>
                  {chosen.name}
                </Text>
                <Text size="sm" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
                  {chosen.urls[0]}
                </Text>
              </div>
            )
          )}
          {isAdmin && (
            <Group>
              <Button variant="default" size="xs" onClick={() => change({ add: 'yes' })}>
                Add another
              </Button>
              {chosen !== undefined && (
                <ViewLink to={`/destinations/${chosen.id}?tab=settings`}>Signing, headers and filters are in its settings</ViewLink>
              )}
            </Group>
          )}
        </Stack>
      )}
      {chosen !== undefined && !isAdding && <Test key={chosen.id} destination={chosen} onNext={onNext} />}
    </Stack>
  )
}

function Adding({ source, onAdded, onCancel }: { source: Source; onAdded: (id: string) => void; onCancel?: () => void }) {
  const [params, change] = useSearchState()
  const kind = params.get('with') === 'listen' ? 'listen' : 'url'
  return (
    <Stack gap="md">
      <SegmentedControl
        aria-label="Where messages are to go"
        value={kind}
        onChange={(value) => change({ with: value === 'listen' ? 'listen' : null }, { replace: true })}
        data={[
          { value: 'url', label: 'A URL of mine' },
          { value: 'listen', label: 'The built-in receiver' },
        ]}
        maw={420}
      />
      {kind === 'url' ? <UrlForm source={source} onAdded={onAdded} /> : <Listen source={source} />}
      {onCancel && (
        <Group>
          <Button variant="subtle" size="xs" onClick={onCancel}>
            Back to those that are there
          </Button>
        </Group>
      )}
    </Stack>
  )
}

function UrlForm({ source, onAdded }: { source: Source; onAdded: (id: string) => void }) {
  const create = useChange('POST /api/destinations', 'GET /api/destinations', 'GET /api/destinations/health', 'GET /api/ledger')
  const [url, setUrl] = useState('')
  const [name, setName] = useState('My webhook')
  const [isTried, setTried] = useState(false)
  const problem = urlProblem(url)
  const refusal = create.error
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    setTried(true)
    if (problem !== null || nameProblem(name) !== null) return
    create.mutate({ body: { name, urls: [url], sourceIds: [source.id] } }, { onSuccess: ({ id }) => onAdded(id) })
  }
  return (
    <form onSubmit={submit} noValidate aria-label="Add a webhook">
      <Stack gap="sm" maw={560}>
        <TextInput
          label="URL"
          description="Every message is sent to it as a POST with JSON."
          placeholder="https://example.com/hooks/analytics"
          type="url"
          inputMode="url"
          value={url}
          onChange={(event) => setUrl(event.currentTarget.value.trim())}
          error={refusal?.field?.startsWith('urls') ? refusal.message : isTried || url.length > 8 ? problem : null}
          autoComplete="off"
          data-1p-ignore
          required
        />
        {urlAdvice(url) !== null && (
          <Text size="sm" c="dimmed">
            {urlAdvice(url)}
          </Text>
        )}
        <TextInput
          label="Name"
          description="For people."
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          error={refusal?.field === 'name' ? refusal.message : isTried ? nameProblem(name) : null}
          autoComplete="off"
          data-1p-ignore
          required
        />
        {refusal !== null && !refusal.field?.startsWith('urls') && refusal.field !== 'name' && <ErrorAlert problem={refusal} />}
        <Group>
          <Button type="submit" loading={create.isPending}>
            Add the webhook
          </Button>
          <Text size="sm" c="dimmed">
            It takes what the source {source.name} sends from then on.
          </Text>
        </Group>
      </Stack>
    </form>
  )
}

function Listen({ source }: { source: Source }) {
  return (
    <Stack gap="sm">
      <Text size="sm">
        No receiver of your own yet? This one prints what arrives and checks signatures. In the folder of Switchyard, with the token that
        you logged in with:
      </Text>
      <CodeBlock text={`export SWITCHYARD_TOKEN=…\n${listenCommand(window.location.origin, source)}`} label="the command of the receiver" />
      <Text size="sm" c="dimmed">
        It makes itself a destination of the service, which shows here within a few seconds, and takes it away again when you end it with
        Ctrl-C.
        {!isLoopback(window.location.hostname) &&
          ' Run it on the machine that the service runs on: it listens on 127.0.0.1. A service that others can reach sends to private addresses only if SWITCHYARD_ALLOW_ADDRESSES allows it.'}
      </Text>
    </Stack>
  )
}

type Tested = Answer<'POST /api/destinations/{id}/test'>

function Test({ destination, onNext }: { destination: Destination; onNext: () => void }) {
  const { isAdmin } = useSession()
  const test = useChange('POST /api/destinations/{id}/test')
  const send = (): void => test.mutate({ params: { id: destination.id }, body: {} })
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="test-title">
      <Stack gap="sm">
        <Title order={3} size="h5" id="test-title">
          Test it
        </Title>
        <Text size="sm" c="dimmed">
          Sends one sample message now and shows what came back. It is not stored and not counted.
        </Text>
        <Group>
          <Button onClick={send} loading={test.isPending} disabled={!isAdmin} variant={test.data?.success ? 'default' : 'filled'}>
            {test.data === undefined ? 'Send a test' : 'Test again'}
          </Button>
          {!isAdmin && (
            <Text size="sm" c="dimmed">
              Your token may only look.
            </Text>
          )}
          <Button variant={test.data?.success ? 'filled' : 'default'} onClick={onNext}>
            Next: see a message arrive
          </Button>
        </Group>
        {test.error !== null && <ErrorAlert problem={test.error} onRetry={send} />}
        <div aria-live="polite">{test.data !== undefined && <TestAnswer answer={test.data} />}</div>
      </Stack>
    </Paper>
  )
}

function TestAnswer({ answer: { success, attempts } }: { answer: Tested }) {
  return (
    <Stack gap="sm">
      <Group gap="xs">
        <Badge color={success ? 'teal' : 'red'} variant="filled" tt="none">
          {success ? 'it arrived' : 'it did not arrive'}
        </Badge>
      </Group>
      {attempts.map((attempt, at) => (
        <AttemptView key={at} attempt={attempt} />
      ))}
    </Stack>
  )
}
