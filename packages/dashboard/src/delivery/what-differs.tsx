// What separates the failed messages of a destination from delivered ones. It is asked for with a button, because the service reads messages for it.

import { Button, Stack, Table } from '@mantine/core'
import { useState } from 'react'
import { useApi } from '../api/queries.ts'
import { ErrorAlert, Loading } from '../components/page.tsx'
import { LongText, Note, Strong } from '../components/styled.tsx'
import { exactCount, share } from '../text/format.ts'

export interface WhatDiffersProps {
  destinationId: string
  state: 'failed' | 'expired'
  reason?: string | undefined
  event?: string | undefined
  from?: string | undefined
  to?: string | undefined
}

export function WhatDiffers(query: WhatDiffersProps) {
  const [isAsked, setAsked] = useState(false)
  if (isAsked) return <Differences {...query} />
  return (
    <Button size="xs" variant="default" style={{ alignSelf: 'flex-start' }} onClick={() => setAsked(true)}>
      What differs from delivered messages?
    </Button>
  )
}

function Differences(query: WhatDiffersProps) {
  const { data: answer, error, refetch } = useApi('GET /api/deliveries/differences', { query })
  if (error !== null) return <ErrorAlert problem={error} onRetry={() => void refetch()} />
  if (answer === undefined) return <Loading lines={3} label="Comparing messages" />
  const { type, event, examined, complete, data } = answer
  if (type === null) return <Note role="status">No message of these deliveries is stored any more, so there is nothing to compare.</Note>
  return (
    <Stack gap={4} component="section" aria-label="What differs">
      <LongText component="div">
        <Strong span>What differs:</Strong> the newest {exactCount(examined.failed)} failed and {exactCount(examined.delivered)} delivered
        messages <b>{event ?? type}</b>
      </LongText>
      {complete === 'too_few' && (
        <Note role="status">
          At least 3 failed and 3 delivered messages are needed to compare them. With fewer, a difference may be chance.
        </Note>
      )}
      {complete === 'out_of_time' && <Note>Reading the messages took too long, so fewer were compared.</Note>}
      {complete !== 'too_few' && data.length === 0 && (
        <Note role="status">
          Nothing in the messages separates the two: neither fields, types and values nor the source, the version or the size.
        </Note>
      )}
      {data.length > 0 && (
        <Table fz="sm" verticalSpacing={4} aria-label="What differs, the strongest difference first">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Messages in which</Table.Th>
              <Table.Th ta="right">Failed</Table.Th>
              <Table.Th ta="right">Delivered</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {data.map(({ field, kind, sentence, failed, delivered }) => (
              <Table.Tr key={`${kind} ${field}`}>
                <Table.Td style={{ overflowWrap: 'anywhere' }}>{conditionOf(sentence)}</Table.Td>
                <Table.Td ta="right">{share(failed / examined.failed)}</Table.Td>
                <Table.Td ta="right">{share(delivered / examined.delivered)}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Stack>
  )
}

/** The sentence without its counts, which have columns of their own. */
function conditionOf(sentence: string): string {
  return sentence.replace(/: \d+ of \d+ failed messages and \d+ of \d+ delivered ones\.$/, '')
}
