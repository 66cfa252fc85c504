// Accepted messages of a source with a value that was ignored or is probably wrong, by code.

import { Badge, Group, Stack, Text } from '@mantine/core'
import { exactCount } from '../../text/format.ts'
import { warningAdvice, warningSentence } from '../../text/warnings.ts'

export function Warnings({ counts }: { counts: Readonly<Record<string, number>> }) {
  const rows = Object.entries(counts).sort(([, a], [, b]) => b - a)
  if (rows.length === 0) return null
  return (
    <Stack gap="xs">
      <Text size="sm" fw={600} id="warnings">
        Accepted with a warning
      </Text>
      <Stack component="ul" gap="xs" p={0} m={0} style={{ listStyle: 'none' }} aria-labelledby="warnings">
        {rows.map(([code, count]) => (
          <li key={code}>
            <Group gap="xs" style={{ rowGap: 4 }}>
              <Badge color="orange" variant="light" tt="none" style={{ flexShrink: 0 }}>
                {code}
              </Badge>
              <Text size="sm" component="span">
                {exactCount(count)} {count === 1 ? 'message' : 'messages'}
              </Text>
            </Group>
            <Text size="sm" mt={4}>
              {warningSentence(code)}{' '}
              <Text span size="sm" c="dimmed">
                {warningAdvice(code)}
              </Text>
            </Text>
          </li>
        ))}
      </Stack>
    </Stack>
  )
}
