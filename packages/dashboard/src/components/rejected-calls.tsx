// Rejected calls by code: what the code means, what to do about it, and the start of the last rejected body as text.

import { Group, Paper, Stack, Text } from '@mantine/core'
import type { Answer } from '../api/client.ts'
import { plural } from '../text/format.ts'
import { rejectionAdvice, rejectionSentence } from '../text/rejections.ts'
import { CodeBlock } from './copyable.tsx'
import { Note, SmallNote, Tag, Time } from './styled.tsx'

export type RejectionRow = Answer<'GET /api/rejections'>['data'][number]

interface RejectedCallsProps {
  rows: readonly RejectionRow[]
  label: string
  sourceName?: (row: RejectionRow) => string
}

/** `sourceName` returns which source a row belongs to, for lists of several sources. */
export function RejectedCalls({ rows, label, sourceName }: RejectedCallsProps) {
  return (
    <Stack component="ul" gap="sm" p={0} m={0} style={{ listStyle: 'none' }} aria-label={label}>
      {rows.map((row) => (
        <Paper key={`${row.sourceId}:${row.code}`} component="li" withBorder p="sm">
          <Stack gap={6}>
            <Group gap="xs" style={{ rowGap: 4 }}>
              <Tag color="red" style={{ flexShrink: 0 }}>
                {row.code}
              </Tag>
              <Text size="sm" component="span">
                {plural(row.count, 'message')}
                {sourceName !== undefined && ` ${sourceName(row)}`} · last <Time at={row.lastAt} relative />
              </Text>
            </Group>
            <Text size="sm">
              {rejectionSentence(row.code)} <Note span>{rejectionAdvice(row.code)}</Note>
            </Text>
            {row.lastSample === '' ? (
              <SmallNote>
                No sample: the last rejected call had no body or one that could not be read, or privacy rules forbid keeping it.
              </SmallNote>
            ) : (
              <Stack gap={2}>
                <SmallNote>Start of the last rejected body</SmallNote>
                <CodeBlock text={row.lastSample} label={`sample of ${row.code}`} maxHeight={140} />
              </Stack>
            )}
          </Stack>
        </Paper>
      ))}
    </Stack>
  )
}
