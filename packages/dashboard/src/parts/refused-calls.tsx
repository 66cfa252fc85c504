// Calls that were refused, by code: what the code means, what to do, and the start of the last such call as text.

import { Badge, Group, Paper, Stack, Text } from '@mantine/core'
import type { Answer } from '../api/client.ts'
import { Block } from './copy.tsx'
import { exactCount } from './format.ts'
import { refusalAdvice, refusalSentence } from './refusals.ts'
import { Time } from './time.tsx'

export type RefusedRow = Answer<'GET /api/rejections'>['data'][number]

/** `sourceName`: says from where, in a list of several sources. */
export function RefusedCalls({
  rows,
  label,
  sourceName,
}: {
  rows: readonly RefusedRow[]
  label: string
  sourceName?: (row: RefusedRow) => string
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
                {sourceName !== undefined && `, ${sourceName(row)}`}, the last <Time at={row.lastAt} relative />
              </Text>
            </Group>
            <Text size="sm">
              {refusalSentence(row.code)}{' '}
              <Text span size="sm" c="dimmed">
                {refusalAdvice(row.code)}
              </Text>
            </Text>
            {row.lastSample === '' ? (
              <Text size="xs" c="dimmed">
                Nothing of the last one was kept: it had no body, or none that could be read.
              </Text>
            ) : (
              <Stack gap={2}>
                <Text size="xs" c="dimmed">
                  The last one began with
                </Text>
                <Block text={row.lastSample} label={`the sample of ${row.code}`} maxHeight={140} />
              </Stack>
            )}
          </Stack>
        </Paper>
      ))}
    </Stack>
  )
}
