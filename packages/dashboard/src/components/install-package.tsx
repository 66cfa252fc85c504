// Shown while an optional package of the service is not installed: the button and the command that install it, and the progress.

import { Alert, Button, Code, Paper, Progress, Stack, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import type { ApiProblem } from '../api/client.ts'
import { exactCount } from '../text/format.ts'
import { ErrorAlert } from './page.tsx'
import { LongText, Note, SectionTitle } from './styled.tsx'

export interface InstallPackageProps {
  title: string
  /** What the package is. */
  children: ReactNode
  /** The label of the button. */
  action: string
  isAdmin: boolean
  /** For people who are not admins. */
  adminsOnly: string
  command: string
  progress: { state: string; done: number; total: number; error: string | null }
  install: { isPending: boolean; error: ApiProblem | null; mutate: (options: Record<string, never>) => void }
}

export function InstallPackage({ title, children, action, isAdmin, adminsOnly, command, progress, install }: InstallPackageProps) {
  const { state, done, total, error } = progress
  const isBusy = state === 'installing' || install.isPending
  return (
    <Paper withBorder p="lg" component="section" aria-labelledby="install">
      <Stack align="flex-start" gap="sm" maw={640}>
        <SectionTitle id="install">{title}</SectionTitle>
        <Text size="sm">{children}</Text>
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
          <Button onClick={() => install.mutate({})}>{error === null ? action : 'Try again'}</Button>
        ) : (
          <Note>{adminsOnly}</Note>
        )}
        <Note>
          On the command line: <Code>{command}</Code>
        </Note>
      </Stack>
    </Paper>
  )
}
