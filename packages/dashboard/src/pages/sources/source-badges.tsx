// Badges for the state of a source, and its accepted messages with a value that was ignored or is probably wrong, by code.

import { Group, Stack, Text } from '@mantine/core'
import type { Schemas } from '../../api/client.ts'
import { Note, Strong, Tag } from '../../components/styled.tsx'
import { plural } from '../../text/format.ts'
import { warningAdvice, warningSentence } from '../../text/warnings.ts'

export function SourceBadges({ source: { enabled, requireOAuth }, size = 'sm' }: { source: Schemas['Source']; size?: string }) {
  return (
    <Group gap={4}>
      <Tag color={enabled ? 'teal' : 'gray'} size={size}>
        {enabled ? 'enabled' : 'disabled'}
      </Tag>
      {requireOAuth && (
        <Tag color="blue" size={size}>
          requires OAuth
        </Tag>
      )}
    </Group>
  )
}

export function Warnings({ counts }: { counts: Readonly<Record<string, number>> }) {
  const rows = Object.entries(counts).sort(([, a], [, b]) => b - a)
  if (rows.length === 0) return null
  return (
    <Stack gap="xs">
      <Strong id="warnings">Accepted with a warning</Strong>
      <Stack component="ul" gap="xs" p={0} m={0} style={{ listStyle: 'none' }} aria-labelledby="warnings">
        {rows.map(([code, count]) => (
          <li key={code}>
            <Group gap="xs" style={{ rowGap: 4 }}>
              <Tag color="orange" style={{ flexShrink: 0 }}>
                {code}
              </Tag>
              <Text size="sm" component="span">
                {plural(count, 'message')}
              </Text>
            </Group>
            <Text size="sm" mt={4}>
              {warningSentence(code)} <Note span>{warningAdvice(code)}</Note>
            </Text>
          </li>
        ))}
      </Stack>
    </Stack>
  )
}
