// Shown instead of the form while the warehouse package is not installed: the button and the command that install it, and the progress.

import { Alert, Button, Code, Paper, Progress, Stack, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { useApi, useChange } from '../../api/queries.ts'
import { ErrorAlert, Loaded } from '../../components/page.tsx'
import { LongText, Note, SectionTitle } from '../../components/styled.tsx'
import { useCommand, useSession } from '../../session/session.tsx'
import { exactCount } from '../../text/format.ts'

export function IfInstalled({ children }: { children: ReactNode }) {
  const installation = useApi('GET /api/warehouse/install', {
    everyMs: (answer) => (answer?.state === 'installed' ? undefined : answer?.state === 'installing' ? 1_000 : 10_000),
  })
  return <Loaded query={installation}>{(state) => (state.state === 'installed' ? children : <Install {...state} />)}</Loaded>
}

function Install({ state, done, total, error }: { state: string; done: number; total: number; error: string | null }) {
  const command = useCommand()
  const { isAdmin } = useSession()
  const install = useChange('POST /api/warehouse/install', 'GET /api/warehouse/install')
  const isBusy = state === 'installing' || install.isPending
  return (
    <Paper withBorder p="lg" component="section" aria-labelledby="install">
      <Stack align="flex-start" gap="sm" maw={640}>
        <SectionTitle id="install">The warehouse package is not installed</SectionTitle>
        <Text size="sm">
          The code that writes tables and runs SQL is a separate package. The service downloads it from the npm registry once, without a
          restart. With several nodes, install it on each of them.
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
          <Button onClick={() => install.mutate({})}>{error === null ? 'Install the package' : 'Try again'}</Button>
        ) : (
          <Note>Installing it requires the admin role.</Note>
        )}
        <Note>
          On the command line: <Code>{command} warehouse install</Code>
        </Note>
      </Stack>
    </Paper>
  )
}
