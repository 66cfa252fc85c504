// Batches, the timeout of an attempt and concurrency; the retry policy with a picture of the attempts; and the destination that gets the messages
// that could not be delivered.

import { NumberInput, Paper, Select, SimpleGrid, Stack, TagsInput, TextInput } from '@mantine/core'
import { useElementSize } from '@mantine/hooks'
import { useApi } from '../../api/queries.ts'
import { SmallNote, Strong } from '../../components/styled.tsx'
import { duration } from '../../text/format.ts'
import { type Draft, newDraft, retryTimesOf } from './draft.ts'
import { type FieldsProps, type KindForm, numberInput, textInput } from './field-state.ts'
import { labelsOf, positionOf, type RetryTimes, scheduleOf, scheduleText } from './retry-schedule.ts'

interface RetryProps extends FieldsProps {
  /** The id of the destination itself, which cannot be its own dead-letter destination; null if it is new. */
  id: string | null
}

export function RetryFields({ draft, state, id }: RetryProps) {
  const statuses = (field: 'retryStatuses' | 'failStatuses') => ({
    value: draft[field],
    onChange: (values: string[]) => state.set({ [field]: values }, `retry.${field}`),
    error: state.problem(`retry.${field}`),
    readOnly: state.isReadOnly,
    openOnFocus: false,
    acceptValueOnBlur: true,
    inputMode: 'numeric' as const,
  })
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <TextInput
          label="Retry window"
          description="Retries continue for 1 s to 14 d after the first attempt."
          {...textInput(state, 'retry.windowMs', draft.retryWindow, (retryWindow) => ({ retryWindow }))}
        />
        <TextInput
          label="First wait"
          description="100 ms to 1 h after the first attempt."
          {...textInput(state, 'retry.initialMs', draft.retryInitial, (retryInitial) => ({ retryInitial }))}
        />
        <NumberInput
          label="Factor"
          description="1 to 10. Each wait is this many times as long as the one before."
          {...numberInput(state, 'retry.factor', draft.retryFactor, (retryFactor) => ({ retryFactor }))}
          allowDecimal
        />
        <TextInput
          label="Longest wait"
          description="Waits grow up to this, at most 1 d."
          {...textInput(state, 'retry.maxMs', draft.retryMax, (retryMax) => ({ retryMax }))}
        />
      </SimpleGrid>
      <RetryPicture times={retryTimesOf(draft)} />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <TagsInput
          label="Also retry these statuses"
          description="By default, 408, 425, 429 and 5xx except 501 and 505 are retried. Press Enter after each."
          {...statuses('retryStatuses')}
        />
        <TagsInput
          label="Never retry these statuses"
          description="The delivery fails at once. Press Enter after each."
          {...statuses('failStatuses')}
        />
      </SimpleGrid>
      <DeadLetterField draft={draft} state={state} id={id} />
    </>
  )
}

function DeadLetterField({ draft: { deadLetter }, state, id }: RetryProps) {
  const destinations = useApi('GET /api/destinations/summary', {})
  const others = (destinations.data?.data ?? []).filter((each) => each.id !== id).map((each) => ({ value: each.id, label: each.name }))
  const isListed = deadLetter === null || others.some(({ value }) => value === deadLetter)
  return (
    <Select
      label="Dead-letter destination"
      description="Gets each message whose delivery to this destination fails or expires, with the reason."
      placeholder="None"
      data={isListed ? others : [...others, { value: deadLetter, label: deadLetter }]}
      value={deadLetter}
      onChange={(value) => state.set({ deadLetter: value }, 'deadLetter')}
      error={state.problem('deadLetter') ?? (destinations.error ? `Could not load destinations: ${destinations.error.message}` : null)}
      readOnly={state.isReadOnly}
      clearable={!state.isReadOnly}
      clearButtonProps={{ 'aria-label': 'No dead-letter destination' }}
      searchable
      openOnFocus={false}
      nothingFoundMessage="No matching destination"
    />
  )
}

export function isRetryUsed(draft: Draft): boolean {
  return retryNote(draft) !== retryNote(newDraft(0)) || draft.retryStatuses.length + draft.failStatuses.length > 0
}

export function retryNote({ retryWindow, retryInitial, deadLetter }: Draft): string {
  return `for ${retryWindow}, first after ${retryInitial}${deadLetter === null ? '' : ', with a dead-letter destination'}`
}

const HEIGHT = 56
const AXIS = 26
/** Room for half of the first and of the last label. */
const MARGIN = 24
const LABEL_WIDTH = 64

export function RetryPicture({ times }: { times: RetryTimes | null }) {
  const { ref, width } = useElementSize()
  return (
    <Paper withBorder p="sm">
      <Stack gap={6}>
        <Strong>Attempts if the receiver does not recover</Strong>
        <div ref={ref} style={{ height: HEIGHT }}>
          {times !== null && width > 0 && <Line times={times} width={width} />}
        </div>
        <SmallNote role="status">
          {times === null ? 'Correct the values above to see when the attempts are made.' : scheduleText(times)}
        </SmallNote>
      </Stack>
    </Paper>
  )
}

function Line({ times, width }: { times: RetryTimes; width: number }) {
  const { atMs } = scheduleOf(times)
  const inner = width - 2 * MARGIN
  const x = (ms: number): number => MARGIN + positionOf(ms, times) * inner
  return (
    <svg
      width={width}
      height={HEIGHT}
      role="img"
      aria-label="Attempts on a logarithmic time line. The text below says the same."
      data-attempts={atMs.length}
    >
      <line x1={MARGIN} x2={width - MARGIN} y1={AXIS} y2={AXIS} stroke="var(--mantine-color-default-border)" strokeWidth={2} />
      <line x1={width - MARGIN} x2={width - MARGIN} y1={AXIS - 12} y2={AXIS + 12} stroke="var(--mantine-color-dimmed)" strokeWidth={2} />
      {labelsOf(times, LABEL_WIDTH / inner).map((ms) => (
        <text key={ms} x={x(ms)} y={HEIGHT - 6} fontSize={11} textAnchor="middle" fill="var(--mantine-color-dimmed)">
          {ms === 0 ? 'now' : duration(ms)}
        </text>
      ))}
      {atMs.map((ms, at) => (
        <circle key={ms} cx={x(ms)} cy={AXIS} r={at === 0 ? 6 : 4.5} fill="var(--mantine-color-blue-6)" fillOpacity={at === 0 ? 1 : 0.75} />
      ))}
    </svg>
  )
}

export function DeliveryFields({ draft, state, descriptions }: FieldsProps & Pick<KindForm<Draft>, 'descriptions'>) {
  const isBatch = (draft.batchSize ?? 1) > 1
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }}>
      <NumberInput
        label="Batch size"
        description={descriptions.batchSize}
        {...numberInput(state, 'batch.size', draft.batchSize, (batchSize) => ({ batchSize }))}
      />
      <TextInput
        label="Batch wait"
        description={isBatch ? 'How long to wait for more messages, up to 60 s.' : 'Up to 60 s. No effect with a batch size of 1.'}
        {...textInput(state, 'batch.lingerMs', draft.linger, (linger) => ({ linger }))}
      />
      <NumberInput
        label="Batch bytes"
        description={
          isBatch
            ? 'Up to 5,242,880 bytes per request. A larger message is sent alone.'
            : 'Up to 5,242,880. No effect with a batch size of 1.'
        }
        {...numberInput(state, 'batch.bytes', draft.batchBytes, (batchBytes) => ({ batchBytes }))}
      />
      <NumberInput
        label="Concurrent requests"
        description={descriptions.maxInFlight ?? '1 to 1,000 requests in flight at the same time.'}
        {...numberInput(state, 'maxInFlight', draft.maxInFlight, (maxInFlight) => ({ maxInFlight }))}
      />
      <TextInput
        label="Timeout"
        description={descriptions.timeout}
        {...textInput(state, 'timeoutMs', draft.timeout, (timeout) => ({ timeout }))}
      />
    </SimpleGrid>
  )
}

export function deliveryNote({ batchSize, timeout, maxInFlight }: Draft): string {
  return `${(batchSize ?? 1) > 1 ? `batches of ${batchSize}` : 'one message per request'}, timeout ${timeout}, ${maxInFlight ?? '?'} concurrent`
}
