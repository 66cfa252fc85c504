// The configuration file that `switchyard export` writes, to read, copy and download, and how to apply it.

import { Alert, Button, Checkbox, Code, Group, Paper, Stack, Text } from '@mantine/core'
import { useApi } from '../../api/queries.ts'
import { CodeBlock } from '../../components/copyable.tsx'
import { ticked } from '../../components/inputs.tsx'
import { Loaded } from '../../components/page.tsx'
import { Note, SectionTitle } from '../../components/styled.tsx'
import { ADMIN_ONLY } from '../../session/needs-role.tsx'
import { useCommand, useSession } from '../../session/session.tsx'
import { plural } from '../../text/format.ts'
import { useSearchState } from '../../url/url-state.ts'

const FILE_NAME = 'switchyard.yaml'

export default function Configuration() {
  const { isAdmin } = useSession()
  const command = useCommand()
  const [params, change] = useSearchState()
  const writeKeys = params.get('keys') !== 'no'
  const file = useApi('GET /api/configuration', { query: { writeKeys }, enabled: isAdmin, keep: true })
  if (!isAdmin)
    return (
      <Alert color="blue">{ADMIN_ONLY} Header values are hidden from viewers, and applying a file without them would delete them.</Alert>
    )
  return (
    <Stack gap="lg">
      <Group justify="space-between">
        <Checkbox
          label="Include write keys"
          description="Needed to copy the installation, so that existing senders keep working."
          {...ticked(writeKeys, (isOn) => change({ keys: isOn ? null : 'no' }, { replace: true }))}
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
                <SectionTitle>How to apply it</SectionTitle>
                <Text size="sm">
                  This is the output of <Code>{command} export</Code>. It contains no secrets: each is replaced by the name of an
                  environment variable. Entries are matched by name.
                </Text>
                <Stack gap={4}>
                  <Text size="sm">
                    <b>On this installation:</b> edit the file, preview the changes, then apply them. If a variable is not set, the stored
                    secret is kept.
                  </Text>
                  <CodeBlock text={`${command} apply ${FILE_NAME} --dry-run\n${command} apply ${FILE_NAME}`} label="the commands" />
                </Stack>
                <Stack gap={4}>
                  <Text size="sm">
                    <b>On another installation:</b>{' '}
                    {variables.length > 0
                      ? `set the variables of its ${plural(variables.length, 'secret')}, then pass its URL.`
                      : 'pass its URL.'}
                  </Text>
                  <CodeBlock
                    text={[...variables.map((name) => `export ${name}=…`), `${command} apply ${FILE_NAME} --url https://OTHER-HOST`].join(
                      '\n',
                    )}
                    label="the commands for another installation"
                  />
                </Stack>
                <Note>
                  Entries that are not in the file are kept, unless you pass <Code>--prune</Code>, which deletes them. The commands need an
                  admin token in <Code>SWITCHYARD_TOKEN</Code>.
                </Note>
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
  // Firefox reads the URL after the click.
  setTimeout(() => URL.revokeObjectURL(address), 10_000)
}
