// For an installation that has not routed anything yet: what is done, what is next, and the way there.

import { Button, Group, List, Paper, Stack, Text, ThemeIcon, Title } from '@mantine/core'
import { Link } from 'wouter'
import { CheckIcon } from '../../components/icons.tsx'

export function FirstRun({ hasAccepted, hasDestination }: { hasAccepted: boolean; hasDestination: boolean }) {
  const steps = [
    { isDone: hasAccepted, text: 'Send the first message', more: 'by curl, Node.js or a browser, with your write key filled in' },
    { isDone: hasDestination, text: 'Add a destination', more: 'a webhook, to which every message is delivered' },
  ]
  return (
    <Paper withBorder p="lg" component="section" aria-labelledby="first-run">
      <Stack gap="md" align="flex-start">
        <Stack gap={4}>
          <Title order={2} size="h3" id="first-run">
            {hasAccepted
              ? 'Messages arrive, but nothing takes them'
              : hasDestination
                ? 'Waiting for the first message'
                : 'Welcome. Two steps, and it runs.'}
          </Title>
          <Text c="dimmed">
            {hasAccepted
              ? 'They are stored, and what is accepted from the moment a destination is there is delivered to it.'
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
          <Button component={Link} href="/start">
            {hasAccepted || hasDestination ? 'Go on' : 'Get started'}
          </Button>
        </Group>
      </Stack>
    </Paper>
  )
}
