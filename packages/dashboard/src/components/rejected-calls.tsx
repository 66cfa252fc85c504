// Rejected calls by code: what the code means, what to do about it, and the start of the last rejected body as text.

import { Badge, Group, Paper, Stack, Text } from '@mantine/core'
import type { Answer } from '../api/client.ts'
import { exactCount } from '../text/format.ts'
import { rejectionAdvice, rejectionSentence } from '../text/rejections.ts'
import { CodeBlock } from './copyable.tsx'
import { Time } from './time.tsx'

export type RejectionRow = Answer<'GET /api/rejections'>['data'][number]

/** `sourceName` returns which source a row belongs to, for lists of several sources. */
export function RejectedCalls({
  rows,
  label,
  sourceName,
}: {
  rows: readonly RejectionRow[]
  label: string
  sourceName?: (row: RejectionRow) => string
}) {
  return (
    <Stack component="ul" gap="sm" p={0} m={0} style={{ listStyle: 'none' }} aria-label={label}>
      {rows.map((row) => (
        <Paper key={`${row.sourceId}:${row.code}`} component="li" withBorder p="sm">
          <Stack gap={6}>
            <Group gap="xs" style={{ rowGap: 4 }}>
              <Badge color="red" variant="light" tt="none" style={{ flexShrink: 0 }}>
                {row.code}
              </Badge>
              <Text size="sm" component="span">
                {exactCount(row.count)} {row.count === 1 ? 'message' : 'messages'}
                {sourceName !== undefined && ` ${sourceName(row)}`} · last <Time at={row.lastAt} relative />
              </Text>
            </Group>
            <Text size="sm">
              {rejectionSentence(row.code)}{' '}
              <Text span size="sm" c="dimmed">
                {rejectionAdvice(row.code)}
              </Text>
            </Text>
            {row.lastSample === '' ? (
              <Text size="xs" c="dimmed">
                No sample: the last rejected call had no body or one that could not be read, or privacy rules forbid keeping it.
              </Text>
            ) : (
              <Stack gap={2}>
                <Text size="xs" c="dimmed">
                  Start of the last rejected body
                </Text>
                <CodeBlock text={row.lastSample} label={`sample of ${row.code}`} maxHeight={140} />
              </Stack>
            )}
          </Stack>
        </Paper>
      ))}
    </Stack>
  )
}
