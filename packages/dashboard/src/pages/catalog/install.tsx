// Shown while the catalogue is not installed: what installing it means, a button, and the progress.

import { Alert, Button, Code, Paper, Progress, Stack, Text, Title } from '@mantine/core'
import { useEffect, useRef } from 'react'
import { useApi, useChange } from '../../api/queries.ts'
import { ErrorAlert } from '../../components/query-states.tsx'

export function InstallCatalog({ isAdmin, onInstalled }: { isAdmin: boolean; onInstalled: () => void }) {
  const status = useApi('GET /api/catalog/install', { everyMs: (answer) => (answer?.state === 'installing' ? 1_000 : 10_000) })
  const install = useChange('POST /api/catalog/install', 'GET /api/catalog/install')
  const state = status.data?.state ?? 'absent'
  const done = useRef(onInstalled)
  done.current = onInstalled
  useEffect(() => {
    if (state === 'installed') done.current()
  }, [state])
  const isBusy = state === 'installing' || install.isPending
  return (
    <Paper withBorder p="lg" component="section" aria-labelledby="install">
      <Stack align="flex-start" gap="sm" maw={640}>
        <Title order={2} size="h4" id="install">
          The integrations are not installed
        </Title>
        <Text size="sm">
          More than 200 integrations, such as Slack, Amplitude and Amazon S3, are in a package of their own of about 100 MB. The service
          downloads it from the npm registry once and needs no restart. Webhooks work without it.
        </Text>
        {status.data?.error != null && (
          <Alert color="red" variant="light" role="alert" title="The installation failed">
            <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
              {status.data.error}
            </Text>
          </Alert>
        )}
        {install.error !== null && <ErrorAlert problem={install.error} />}
        {isBusy ? (
          <Stack gap={6} w="100%" role="status">
            <Progress value={100} animated aria-label="Installing" />
            <Text size="sm" c="dimmed">
              {status.data?.progress ?? 'Installing …'}
            </Text>
          </Stack>
        ) : isAdmin ? (
          <Button onClick={() => install.mutate({})}>{state === 'failed' ? 'Try again' : 'Install the integrations'}</Button>
        ) : (
          <Text size="sm" c="dimmed">
            Installing them requires an admin token.
          </Text>
        )}
        <Text size="sm" c="dimmed">
          On the command line: <Code>switchyard catalog install</Code>
        </Text>
      </Stack>
    </Paper>
  )
}
