// The configuration as `switchyard export` writes it: to read, copy and download, and how to apply it.

import { Alert, Button, Checkbox, Code, Group, Paper, Stack, Text, Title } from '@mantine/core'
import { useApi } from '../../api/queries.ts'
import { CodeBlock } from '../../components/copyable.tsx'
import { Loaded } from '../../components/query-states.tsx'
import { useSession } from '../../session.tsx'
import { useSearchState } from '../../url-state.ts'
import { plural } from '../deletions/users.ts'
import { ADMIN_ONLY } from './needs-admin.tsx'

const FILE_NAME = 'switchyard.yaml'

export default function Configuration() {
  const { isAdmin } = useSession()
  const [params, change] = useSearchState()
  const writeKeys = params.get('keys') !== 'no'
  const file = useApi('GET /api/configuration', { query: { writeKeys }, enabled: isAdmin, keep: true })
  if (!isAdmin)
    return (
      <Alert color="blue">
        {ADMIN_ONLY} Values of headers are hidden from viewers, and a file without them would take them away where it is applied.
      </Alert>
    )
  return (
    <Stack gap="lg">
      <Group justify="space-between">
        <Checkbox
          label="With write keys"
          description="They are in every page and app that sends; a copy of the installation needs them."
          checked={writeKeys}
          onChange={(event) => change({ keys: event.currentTarget.checked ? null : 'no' }, { replace: true })}
        />
        <Button disabled={file.data === undefined} onClick={() => file.data !== undefined && download(file.data.yaml)}>
          Download {FILE_NAME}
        </Button>
      </Group>
      <Loaded query={file} lines={10}>
        {({ yaml, variables }) => (
          <>
            <CodeBlock text={yaml} label="the configuration file" maxHeight={520} />
            <Paper withBorder p="md">
              <Stack gap="sm">
                <Title order={2} size="h4">
                  How to apply it
                </Title>
                <Text size="sm">
                  It is what <Code>npx switchyard export</Code> writes. No secret is in it: in the place of each stands the name of a
                  variable. Entries are told apart by their names.
                </Text>
                <Stack gap={4}>
                  <Text size="sm">
                    <b>On this installation:</b> change the file, look at what it would do, then do it. Variables that are not set leave the
                    stored secrets as they are.
                  </Text>
                  <CodeBlock text={`npx switchyard apply ${FILE_NAME} --dry-run\nnpx switchyard apply ${FILE_NAME}`} label="the commands" />
                </Stack>
                <Stack gap={4}>
                  <Text size="sm">
                    <b>On another one:</b>{' '}
                    {variables.length > 0 ? `set the variables of its ${plural(variables.length, 'secret')} first, and ` : ''}say where it
                    is.
                  </Text>
                  <CodeBlock
                    text={[
                      ...variables.map((name) => `export ${name}=…`),
                      `npx switchyard apply ${FILE_NAME} --url https://OTHER-HOST`,
                    ].join('\n')}
                    label="the commands for another installation"
                  />
                </Stack>
                <Text size="sm" c="dimmed">
                  What is not in the file is left alone, unless <Code>--prune</Code> deletes it. The commands need{' '}
                  <Code>SWITCHYARD_TOKEN</Code> of an admin.
                </Text>
              </Stack>
            </Paper>
          </>
        )}
      </Loaded>
    </Stack>
  )
}

function download(text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: 'application/yaml' }))
  const link = document.createElement('a')
  link.href = address
  link.download = FILE_NAME
  link.click()
  // Firefox reads it after the click.
  setTimeout(() => URL.revokeObjectURL(address), 10_000)
}
