// Shown while the catalogue is not installed: what installing it means, a button, and the progress.

import { Alert, Button, Code, Paper, Progress, Stack, Text } from '@mantine/core'
import { useEffect, useRef } from 'react'
import { useApi, useChange } from '../../api/queries.ts'
import { ErrorAlert } from '../../components/page.tsx'
import { LongText, Note, SectionTitle } from '../../components/styled.tsx'
import { useCommand } from '../../session/command-line.ts'
import { exactCount } from '../../text/format.ts'

export function InstallCatalog({ isAdmin, onInstalled }: { isAdmin: boolean; onInstalled: () => void }) {
  const command = useCommand()
  const installation = useApi('GET /api/catalog/install', { everyMs: (answer) => (answer?.state === 'installing' ? 1_000 : 10_000) })
  const install = useChange('POST /api/catalog/install', 'GET /api/catalog/install')
  const { state = 'missing', done = 0, total = 0, error = null } = installation.data ?? {}
  const installed = useRef(onInstalled)
  installed.current = onInstalled
  useEffect(() => {
    if (state === 'installed') installed.current()
  }, [state])
  const isBusy = state === 'installing' || install.isPending
  return (
    <Paper withBorder p="lg" component="section" aria-labelledby="install">
      <Stack align="flex-start" gap="sm" maw={640}>
        <SectionTitle id="install">The integrations are not installed</SectionTitle>
        <Text size="sm">
          About 190 integrations, such as Slack, Amplitude and Kafka, are in a separate package of about 100 MB. The service downloads it
          from the npm registry once, without a restart. Webhooks work without it.
        </Text>
        {error !== null && !isBusy && (
          <Alert color="red" variant="light" role="alert" title="The installation failed">
            <LongText>{error}</LongText>
          </Alert>
        )}
        {install.error !== null && <ErrorAlert problem={install.error} />}
        {isBusy ? (
          <Stack gap={6} w="100%" role="status">
            <Progress value={total === 0 ? 0 : (100 * done) / total} animated aria-label="Progress of the installation" />
            <Note>{total === 0 ? 'Starting …' : `${exactCount(done)} of ${exactCount(total)} packages`}</Note>
          </Stack>
        ) : isAdmin ? (
          <Button onClick={() => install.mutate({})}>{error === null ? 'Install the integrations' : 'Try again'}</Button>
        ) : (
          <Note>Installing them requires an admin token.</Note>
        )}
        <Note>
          On the command line: <Code>{command} catalog install</Code>
        </Note>
      </Stack>
    </Paper>
  )
}
