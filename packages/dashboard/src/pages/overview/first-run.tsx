// For an installation that has not routed a message yet: which steps are done, and a link to the next one.

import { Group, List, Paper, Stack, Text, ThemeIcon, Title } from '@mantine/core'
import { CheckIcon } from '../../components/icons.tsx'
import { LinkButton } from '../../components/styled.tsx'

export function FirstRun({ hasAccepted, hasDestination }: { hasAccepted: boolean; hasDestination: boolean }) {
  const steps = [
    { isDone: hasAccepted, text: 'Send a message', more: 'with curl, Node.js or a browser; the snippets contain your write key' },
    { isDone: hasDestination, text: 'Add a destination', more: 'a webhook that receives every message' },
  ]
  return (
    <Paper withBorder p="lg" component="section" aria-labelledby="first-run">
      <Stack gap="md" align="flex-start">
        <Stack gap={4}>
          <Title order={2} size="h3" id="first-run">
            {hasAccepted
              ? 'Messages arrive, but there is no destination'
              : hasDestination
                ? 'Waiting for the first message'
                : 'Set up this installation'}
          </Title>
          <Text c="dimmed">
            {hasAccepted
              ? 'Messages are stored. A new destination receives the messages that are accepted after it was added.'
              : 'This installation has not accepted a message yet.'}
          </Text>
        </Stack>
        <List spacing="xs" listStyleType="none" center>
          {steps.map(({ isDone, text, more }, at) => (
            <List.Item
              key={text}
              icon={
                <ThemeIcon size={26} radius="xl" variant={isDone ? 'filled' : 'light'} color={isDone ? 'teal' : 'blue'}>
                  {isDone ? <CheckIcon size={15} /> : at + 1}
                </ThemeIcon>
              }
            >
              <Text span fw={600}>
                {text}
              </Text>{' '}
              <Text span c="dimmed">
                {isDone ? '(done)' : `– ${more}`}
              </Text>
            </List.Item>
          ))}
        </List>
        <Group>
          <LinkButton to="/start" variant="filled">
            {hasAccepted || hasDestination ? 'Continue' : 'Get started'}
          </LinkButton>
        </Group>
      </Stack>
    </Paper>
  )
}
