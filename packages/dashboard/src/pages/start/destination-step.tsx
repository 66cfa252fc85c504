// The second step: add a webhook by its URL, run the built-in receiver, which adds itself, or choose a tool in the catalogue. Then send a test and
// show the response.

import { Alert, Badge, Button, Group, Paper, Radio, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { Answer, Schemas } from '../../api/client.ts'
import { useChange } from '../../api/queries.ts'
import { CodeBlock } from '../../components/copyable.tsx'
import { entered, Form, ParamSegments } from '../../components/inputs.tsx'
import { ErrorAlert } from '../../components/page.tsx'
import { LongNote, Note, SmallButton, SmallTitle, ViewLink } from '../../components/styled.tsx'
import { nameProblem } from '../../destination/form/validation.ts'
import { AttemptView, targetText } from '../../kinds/kinds.tsx'
import { urlAdvice, urlProblem } from '../../kinds/webhook/form/validation.ts'
import { EDITOR_ONLY, SHARED } from '../../session/needs-role.tsx'
import { useCommand, useMayEdit, useSession } from '../../session/session.tsx'
import { isLoopback } from '../../text/snippets.ts'
import { useSearchState } from '../../url/url-state.ts'
import { listenCommand } from './progress.ts'

type Destination = Schemas['Destination']
type Source = Schemas['Source']

export interface DestinationStepProps {
  source: Source
  destinations: readonly Destination[]
  chosen: Destination | undefined
  onChoose: (id: string) => void
  onNext: () => void
}

export function DestinationStep({ source, destinations, chosen, onChoose, onNext }: DestinationStepProps) {
  const { mayEdit } = useSession()
  const [params, change] = useSearchState()
  const isAdding = destinations.length === 0 || params.get('add') === 'yes'
  return (
    <Stack gap="lg">
      {isAdding ? (
        mayEdit ? (
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
            Your role is viewer, which is read-only. Ask an editor or admin to add a destination; it is then shown here.
          </Alert>
        )
      ) : (
        <Stack gap="sm">
          {destinations.length > 1 ? (
            <Radio.Group label="Destination" value={chosen?.id ?? null} onChange={onChoose}>
              <Stack gap="xs" mt="xs">
                {destinations.slice(-8).map((each) => (
                  <Radio
                    key={each.id}
                    value={each.id}
                    label={each.name}
                    description={targetText(each)}
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
                <LongNote>{targetText(chosen)}</LongNote>
              </div>
            )
          )}
          {mayEdit && (
            <Group>
              <SmallButton onClick={() => change({ add: 'yes' })}>Add a destination</SmallButton>
              {chosen !== undefined && (
                <ViewLink to={`/destinations/${chosen.id}?tab=settings`}>Set up signing, headers and filters</ViewLink>
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
  const [params] = useSearchState()
  const kind = params.get('with') === 'listen' ? 'listen' : 'url'
  return (
    <Stack gap="md">
      <ParamSegments
        param="with"
        fallback="url"
        options={[
          { value: 'url', label: 'My own URL' },
          { value: 'listen', label: 'Built-in receiver' },
        ]}
        isReplacing
        aria-label="Kind of destination"
        maw={420}
      />
      {kind === 'url' ? <UrlForm source={source} onAdded={onAdded} /> : <Listen source={source} />}
      <Text size="sm">
        Or send to one of your tools: <ViewLink to="/catalog">View all integrations</ViewLink>
      </Text>
      {onCancel && (
        <Group>
          <Button variant="subtle" size="xs" onClick={onCancel}>
            Back to existing destinations
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
  const [isSubmitted, setSubmitted] = useState(false)
  const problem = urlProblem(url)
  const rejection = create.error
  const submit = (): void => {
    setSubmitted(true)
    if (problem !== null || nameProblem(name) !== null) return
    create.mutate({ body: { name, urls: [url], sourceIds: [source.id] } }, { onSuccess: ({ id }) => onAdded(id) })
  }
  return (
    <Form onSubmit={submit} aria-label="Add a webhook">
      <Stack gap="sm" maw={560}>
        <TextInput
          label="URL"
          description="Receives every message as a POST request with a JSON body."
          placeholder="https://example.com/hooks/analytics"
          type="url"
          inputMode="url"
          {...entered(url, (next) => setUrl(next.trim()))}
          error={rejection?.field?.startsWith('urls') ? rejection.message : isSubmitted || url.length > 8 ? problem : null}
          autoComplete="off"
          data-1p-ignore
          required
        />
        {urlAdvice(url) !== null && <Note>{urlAdvice(url)}</Note>}
        <TextInput
          label="Name"
          description="Shown in this dashboard."
          {...entered(name, setName)}
          error={rejection?.field === 'name' ? rejection.message : isSubmitted ? nameProblem(name) : null}
          autoComplete="off"
          data-1p-ignore
          required
        />
        {rejection !== null && !rejection.field?.startsWith('urls') && rejection.field !== 'name' && <ErrorAlert problem={rejection} />}
        <Group>
          <Button type="submit" loading={create.isPending}>
            Add webhook
          </Button>
          <Note>It receives new messages from the source {source.name}.</Note>
        </Group>
      </Stack>
    </Form>
  )
}

function Listen({ source }: { source: Source }) {
  const command = useCommand()
  return (
    <Stack gap="sm">
      <Text size="sm">
        The built-in receiver prints what it receives and checks signatures. Run it in the Switchyard folder, with the token that you logged
        in with:
      </Text>
      <CodeBlock text={`export SWITCHYARD_TOKEN=…\n${listenCommand(command, source)}`} label="command of the receiver" />
      <Note>
        It adds itself as a destination, which is shown here within a few seconds, and removes the destination when you stop it with Ctrl-C.
        {!isLoopback(window.location.hostname) &&
          ' Run it on the machine that the service runs on, because it listens on 127.0.0.1. If other machines can reach the service, the service sends to private addresses only if SWITCHYARD_ALLOW_ADDRESSES allows them.'}
      </Note>
    </Stack>
  )
}

type Tested = Answer<'POST /api/destinations/{id}/test'>

function Test({ destination, onNext }: { destination: Destination; onNext: () => void }) {
  const mayEdit = useMayEdit(destination)
  const test = useChange('POST /api/destinations/{id}/test')
  const send = (): void => test.mutate({ params: { id: destination.id }, body: {} })
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="test-title">
      <Stack gap="sm">
        <SmallTitle id="test-title">Test the destination</SmallTitle>
        <Note>Sends a sample message and shows the response. The message is not stored and not counted.</Note>
        <Group>
          <Button onClick={send} loading={test.isPending} disabled={!mayEdit} variant={test.data?.success ? 'default' : 'filled'}>
            {test.data === undefined ? 'Send test' : 'Send again'}
          </Button>
          {!mayEdit && <Note>{destination.shared ? SHARED : EDITOR_ONLY}</Note>}
          <Button variant={test.data?.success ? 'filled' : 'default'} onClick={onNext}>
            Next: see a message arrive
          </Button>
        </Group>
        {test.error !== null && <ErrorAlert problem={test.error} onRetry={send} />}
        <div aria-live="polite">{test.data !== undefined && <TestAnswer answer={test.data} destination={destination} />}</div>
      </Stack>
    </Paper>
  )
}

function TestAnswer({ answer: { success, attempts }, destination }: { answer: Tested; destination: Destination }) {
  return (
    <Stack gap="sm">
      <Group gap="xs">
        <Badge color={success ? 'teal' : 'red'} variant="filled" tt="none">
          {success ? 'Test delivered' : 'Test failed'}
        </Badge>
      </Group>
      {attempts.map((attempt, at) => (
        <AttemptView key={at} attempt={attempt} destination={destination} />
      ))}
    </Stack>
  )
}
