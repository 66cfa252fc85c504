// Shown while the catalogue is not installed: what installing it means, and how.

import { Code, Paper, Stack, Text, Title } from '@mantine/core'

export function InstallCatalog() {
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
        <Text size="sm" c="dimmed">
          On the command line: <Code>switchyard catalog install</Code>
        </Text>
      </Stack>
    </Paper>
  )
}
